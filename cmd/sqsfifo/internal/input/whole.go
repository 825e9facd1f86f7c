package input

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
)

// Whole reads files as one text each.
type Whole struct {
	names []string
	stdin io.Reader
}

// OpenWhole returns the files, none or "-" for standard input.
func OpenWhole(files []string, stdin io.Reader) (*Whole, error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	return &Whole{slices.Clone(files), stdin}, nil
}

// Next returns the next file as its first line, and io.EOF after the last one. White
// space around the text is not part of it.
func (w *Whole) Next() (Line, error) {
	if len(w.names) == 0 {
		return Line{}, io.EOF
	}
	name := w.names[0]
	w.names = w.names[1:]
	if name == "-" {
		text, err := io.ReadAll(w.stdin)
		if err != nil {
			return Line{}, fmt.Errorf("%s: %w", stdinName, err)
		}
		return Line{stdinName, 1, bytes.TrimSpace(text)}, nil
	}
	text, err := os.ReadFile(name) // #nosec G304 -- the file that was named
	return Line{name, 1, bytes.TrimSpace(text)}, err
}

// Close does nothing: each file is closed when it was read.
func (w *Whole) Close() {}
