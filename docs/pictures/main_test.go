package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pictures equal the output of the code, are well-formed, and have a description.
func TestPicturesAreCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the go command")
	}
	all, err := pictures("../..")
	require.NoError(t, err)
	for name, svg := range all {
		stored, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, svg, string(stored), "%s is out of date; run: go run ./docs/pictures", name)
		assert.Contains(t, svg, "<desc id=\"d\">")
		assert.Contains(t, svg, "prefers-color-scheme:dark")
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(name, err)
			}
		}
	}
}
