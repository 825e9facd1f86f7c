package sqstest_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Package sqstest depends only on the standard library, the AWS SDK, google/uuid, package
// idempotency and internal packages of this module. Modules whose tests import sqstest get
// the same dependencies.
func TestDependencies(t *testing.T) {
	const module = "github.com/kansas-frontier-matrix/sqsfifo"
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	require.Contains(t, packages, module+"/sqstest")
	for _, p := range packages {
		allowed := p == module+"/sqstest" || p == module+"/idempotency"
		for _, prefix := range []string{
			"github.com/aws/aws-sdk-go-v2", "github.com/aws/smithy-go", "github.com/google/uuid", module + "/internal/",
		} {
			allowed = allowed || strings.HasPrefix(p, prefix)
		}
		assert.True(t, allowed, p)
	}
}
