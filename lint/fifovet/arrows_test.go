package fifovet

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The internal packages of the analyzer import each other in one direction only: rules
// may import message and flow, and message may import flow.
func TestArrows(t *testing.T) {
	const internal = "github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet/internal/"
	order := []string{"flow", "message", "rules"}
	found, err := os.ReadDir("internal")
	require.NoError(t, err)
	require.Len(t, found, len(order))
	for _, dir := range found {
		at := slices.Index(order, dir.Name())
		require.GreaterOrEqual(t, at, 0, "%s has no place in the order", dir.Name())
		files, err := filepath.Glob(filepath.Join("internal", dir.Name(), "*.go"))
		require.NoError(t, err)
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
			require.NoError(t, err)
			for _, spec := range file.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				require.NoError(t, err)
				if imported, ok := strings.CutPrefix(path, internal); ok {
					assert.Less(t, slices.Index(order, imported), at, "%s imports %s", name, imported)
				}
			}
		}
	}
}
