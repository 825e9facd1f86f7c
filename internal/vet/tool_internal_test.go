package vet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request about an imported package of the main module gets diagnostics, because the go
// command may use the cached result when the user checks that package. The go command says in
// two ways which module a package belongs to.
func TestRequestsForFacts(t *testing.T) {
	for request, want := range map[string][3]bool{ // by "go vet", by Run, by "go vet -fix"
		`{"VetxOnly": true, "ModulePath": "m"}`:                                   {true, true, false},
		`{"VetxOnly": true, "ModulePath": "m", "ModuleVersion": "v1.0.0"}`:        {false, true, false},
		`{"VetxOnly": true, "Module": {"Path": "m", "Main": true}}`:               {true, true, false},
		`{"VetxOnly": true, "Module": {"Path": "m", "Version": "v1.0.0"}}`:        {false, true, false},
		`{"VetxOnly": true, "Module": null, "ModulePath": "", "Standard": null}`:  {false, true, false},
		`{"VetxOnly": false, "Module": {"Path": "m", "Main": true, "Dir": "/m"}}`: {false, false, false},
	} {
		for i, call := range []struct{ all, fix bool }{{false, false}, {true, false}, {false, true}} {
			file := filepath.Join(t.TempDir(), "vet.cfg")
			require.NoError(t, os.WriteFile(file, []byte(request), 0o600))
			got, err := withDiagnostics(file, call.all, call.fix)
			require.NoError(t, err)
			assert.Equal(t, want[i], got != file, "%s, %+v", request, call)
			text, err := os.ReadFile(got)
			require.NoError(t, err)
			if got != file {
				assert.Contains(t, string(text), `"VetxOnly":false`)
			}
		}
	}
}
