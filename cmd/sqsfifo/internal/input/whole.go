package input

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Whole reads files as one text each.
type Whole struct {
	names []string
	stdin io.Reader
	read  int64
}

// OpenWhole returns the files, none or "-" for standard input. That a file cannot be
// opened is found out here, for all files.
func OpenWhole(files []string, stdin io.Reader) (*Whole, error) {
	names, err := openable(files)
	return &Whole{names: names, stdin: stdin}, err
}

// Size returns the bytes of the files that are left, and false if one of them has no
// known size.
func (w *Whole) Size() (int64, bool) { return size(w.names) }

// Read returns how many bytes the files had so far.
func (w *Whole) Read() int64 { return w.read }

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
		w.read += int64(len(text))
		return Line{stdinName, 1, bytes.TrimSpace(text)}, nil
	}
	text, err := os.ReadFile(name) // #nosec G304 -- the file that was named
	w.read += int64(len(text))
	return Line{name, 1, bytes.TrimSpace(text)}, err
}

// Close does nothing: each file is closed when it was read.
func (w *Whole) Close() {}
