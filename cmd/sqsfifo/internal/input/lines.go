package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
)

// stdinName is the name of standard input in errors and receipts.
const stdinName = "standard input"

// Line is a line of a file. Blank lines are skipped.
type Line struct {
	File   string
	Number int // from 1
	Text   []byte
}

// LineError is an error about one line of a file.
type LineError struct {
	File string
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// Wrong wraps err in a [*LineError] with the line's file and number.
//
// If the line is an array, or line 1 is only the beginning of an object or array, the file
// does not have one JSON object per line. The error then says so, with a jq command that
// rewrites the file.
func (l Line) Wrong(err error) *LineError {
	if way := l.wayOut(err); way != "" {
		err = messageline.Reword(way, err)
	}
	return &LineError{l.File, l.Number, err}
}

func (l Line) wayOut(err error) string {
	text := bytes.TrimSpace(l.Text)
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return ""
	}
	file := l.File
	if file == stdinName {
		file = "FILE"
	}
	var rest json.RawMessage
	cut := errors.Is(json.NewDecoder(bytes.NewReader(text)).Decode(&rest), io.ErrUnexpectedEOF)
	switch {
	case text[0] == '[' && (cut && l.Number == 1 || errors.Is(err, messageline.ErrNotObject)):
		return fmt.Sprintf("an array, want one JSON object on each line; write them with: jq -c '.[]' %s", file)
	case text[0] == '{' && cut && l.Number == 1:
		return fmt.Sprintf("the object does not end on its line, want one JSON object on each line; write them with: jq -c . %s", file)
	}
	return ""
}

// Texts are the texts of an input: the lines of files, or whole files. Texts is not safe for
// concurrent use.
type Texts struct {
	names      []string
	stdin      io.Reader
	wholeFiles bool
	read       int64
}

// Open returns the texts of the files. Each line is a text; with wholeFiles, each file is
// one text with line number 1.
//
// The name "-" and an empty list mean standard input. The error names the first file that
// cannot be opened.
func Open(files []string, stdin io.Reader, wholeFiles bool) (*Texts, error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		if name == "-" {
			continue
		}
		f, err := os.Open(name) // #nosec G304 -- the user names the file
		if err != nil {
			return nil, err
		}
		_ = f.Close()
	}
	return &Texts{names: slices.Clone(files), stdin: stdin, wholeFiles: wholeFiles}, nil
}

// Size returns the total size of all files in bytes, or 0 if the size of any of them is
// unknown.
func (t *Texts) Size() (total int64) {
	for _, name := range t.names {
		info, err := os.Stat(name)
		if name == "-" || err != nil || !info.Mode().IsRegular() {
			return 0
		}
		total += info.Size()
	}
	return total
}

// Read returns the number of bytes read so far.
func (t *Texts) Read() int64 { return t.read }

// All returns an iterator over the texts, file by file. The input can be read only once.
// The caller may keep and change a text. An overlong line gives a [*LineError], and the
// next line follows. Any other error is the last element.
func (t *Texts) All() iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		for _, name := range t.names {
			if !t.file(name, yield) {
				return
			}
		}
	}
}

// file yields the texts of one file. It returns false to end the iteration over all files.
func (t *Texts) file(name string, yield func(Line, error) bool) bool {
	shown, from := stdinName, t.stdin
	if name != "-" {
		f, err := os.Open(name) // #nosec G304 -- the user names the file
		if err != nil {
			yield(Line{}, err)
			return false
		}
		defer f.Close()
		shown, from = name, f
	}
	if t.wholeFiles {
		text, err := io.ReadAll(from)
		t.read += int64(len(text))
		if err != nil && name == "-" { // an error about a named file already contains the name
			err = fmt.Errorf("%s: %w", shown, err)
		}
		return yield(Line{shown, 1, bytes.TrimSpace(text)}, err) && err == nil
	}
	before, lines := t.read, messageline.NewReader(from, 64<<10)
	for {
		l, err := lines.Next()
		t.read = before + lines.Offset()
		if errors.Is(err, io.EOF) {
			return true
		}
		last := err != nil && !errors.Is(err, messageline.ErrTooLong)
		switch {
		case last:
			err = fmt.Errorf("%s:%d: %w", shown, l.Number, err)
		case err != nil:
			err = &LineError{shown, l.Number, err}
		}
		if !yield(Line{shown, l.Number, bytes.Clone(l.Bytes)}, err) || last {
			return false
		}
	}
}
