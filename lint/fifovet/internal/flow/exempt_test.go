package flow

import (
	"go/parser"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestExemptFile(t *testing.T) {
	for _, c := range []struct {
		name, file, constraint string
		want                   bool
	}{
		{"plain", "a.go", "", false},
		{"test", "a_test.go", "", true},
		{"integration", "a.go", "//go:build integration", true},
		{"end to end", "a.go", "//go:build linux && e2e", true},
		{"one of several", "a.go", "//go:build integration_aws || e2e", true},
		{"another constraint", "a.go", "//go:build linux && !windows", false},
		{"not only for tests", "a.go", "//go:build integration || linux", false},
		{"what tests leave out", "a.go", "//go:build !integration", false},
		{"old form", "a.go", "// +build integration", true},
		{"latest", "a.go", "//go:build latest", false},
		{"contest", "a.go", "//go:build contest || attestation", false},
		{"a word of several", "a.go", "//go:build aws_test", true},
		{"integration in a word", "a.go", "//go:build disintegration", false},
		{"below the package clause", "a.go", "package a\n\n//go:build integration", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := c.constraint + "\n\npackage a\n"
			if c.name == "below the package clause" {
				src = c.constraint + "\n"
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, c.file, src, parser.ParseComments)
			require.NoError(t, err)
			assert.Equal(t, c.want, exemptFile(fset, f))
		})
	}
}
