package input

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Whole reads each file as one text.
type Whole struct {
	names []string
	stdin io.Reader
	read  int64
}

// OpenWhole returns a reader of the files. An empty list, or the name "-", means standard
// input. The error names the first file that cannot be opened.
func OpenWhole(files []string, stdin io.Reader) (*Whole, error) {
	names, err := openable(files)
	return &Whole{names: names, stdin: stdin}, err
}

// Size returns the total size of the remaining files in bytes, or false if the size of any
// of them is unknown.
func (w *Whole) Size() (int64, bool) { return size(w.names) }

// Read returns the number of bytes read so far.
func (w *Whole) Read() int64 { return w.read }

// Next returns the whole text of the next file as one Line, with line number 1. It
// returns io.EOF after the last file. It trims white space around the text.
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
	text, err := os.ReadFile(name) // #nosec G304 -- the user names the file
	w.read += int64(len(text))
	return Line{name, 1, bytes.TrimSpace(text)}, err
}

// Close has no effect: each file is closed after its read.
func (w *Whole) Close() {}
