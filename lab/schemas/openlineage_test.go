package schemas

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The golden run events of package provenance follow the published schema of OpenLineage.
// SQSFIFO_OPENLINEAGE names a copy of spec/OpenLineage.json of github.com/OpenLineage/OpenLineage.
func TestOpenLineage(t *testing.T) {
	file := os.Getenv("SQSFIFO_OPENLINEAGE")
	if file == "" {
		t.Skip("SQSFIFO_OPENLINEAGE names no copy of the schema")
	}
	file, err := filepath.Abs(file)
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile(file + "#/$defs/RunEvent")
	require.NoError(t, err)
	lines, err := os.ReadFile("../../provenance/testdata/openlineage.jsonl")
	require.NoError(t, err)
	for line := range strings.Lines(string(lines)) {
		assert.NoError(t, validate(t, schema, line))
		assert.Error(t, validate(t, schema, strings.Replace(line, `"runId":"0`, `"runId":"x`, 1)))
	}
}
