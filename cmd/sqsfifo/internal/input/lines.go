package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Wrong wraps err in a [*LineError] with the line's file and number. If the line is a whole
// array, or the beginning of an object or array over several lines, the text of err is
// replaced by a jq command that converts the file to one object on each line.
func (l Line) Wrong(err error) error { return l.wrong(err) }

func (l Line) wrong(err error) *LineError {
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

// Source yields texts, each with its file and line number. A text is a line or a whole file
// (see [Open]).
type Source interface {
	// Next returns io.EOF at the end.
	Next() (Line, error)

	// Size returns the size of the input in bytes, or false if it is unknown. Read returns
	// the number of bytes read so far.
	Size() (int64, bool)
	Read() int64

	Close()
}

// Open returns the lines of the files or, if whole, each file as one text.
func Open(files []string, stdin io.Reader, whole bool) (Source, error) {
	if whole {
		w, err := OpenWhole(files, stdin)
		if err != nil {
			return nil, err
		}
		return w, nil
	}
	l, err := OpenLines(files, stdin)
	if err != nil {
		return nil, err
	}
	return l, nil
}

// Lines reads the lines of files, one file after another. It is not safe for concurrent
// use.
type Lines struct {
	names []string
	stdin io.Reader
	file  io.Closer
	name  string
	lines *messageline.Reader // nil between two files
	read  int64               // bytes of earlier files
}

// OpenLines returns a reader of the files' lines. An empty list, or the name "-", means
// standard input. The error names the first file that cannot be opened.
func OpenLines(files []string, stdin io.Reader) (*Lines, error) {
	names, err := openable(files)
	if err != nil {
		return nil, err
	}
	return &Lines{names: names, stdin: stdin}, nil
}

// openable checks that each file can be opened, and returns the file names. For an empty
// list it returns "-".
func openable(files []string) ([]string, error) {
	if len(files) == 0 {
		return []string{"-"}, nil
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
	return slices.Clone(files), nil
}

// Size returns the total size of all files in bytes, or false if the size of any of them
// is unknown.
func (l *Lines) Size() (int64, bool) { return size(l.names) }

func size(names []string) (int64, bool) {
	var total int64
	for _, name := range names {
		info, err := os.Stat(name)
		if name == "-" || err != nil || !info.Mode().IsRegular() {
			return 0, false
		}
		total += info.Size()
	}
	return total, true
}

// Read returns the number of bytes read so far.
func (l *Lines) Read() int64 {
	if l.lines == nil {
		return l.read
	}
	return l.read + l.lines.Offset()
}

// Next returns the next line, or io.EOF at the end. The caller owns the text.
func (l *Lines) Next() (Line, error) {
	for {
		if l.lines == nil {
			if err := l.open(); err != nil {
				return Line{}, err
			}
		}
		t, err := l.lines.Next()
		switch {
		case err == nil:
			return Line{l.name, t.Number, bytes.Clone(t.Bytes)}, nil
		case !errors.Is(err, io.EOF):
			return Line{}, &LineError{l.name, t.Number, err}
		}
		l.Close()
	}
}

func (l *Lines) open() error {
	if len(l.names) == 0 {
		return io.EOF
	}
	var r io.Reader = l.stdin
	l.name = stdinName
	if name := l.names[0]; name != "-" {
		f, err := os.Open(name) // #nosec G304 -- the user names the file
		if err != nil {
			return err
		}
		r, l.file, l.name = f, f, name
	}
	l.names = l.names[1:]
	l.lines = messageline.NewReader(r, 64<<10)
	return nil
}

// Close closes the open file.
func (l *Lines) Close() {
	l.read = l.Read()
	l.lines = nil
	if l.file != nil {
		_ = l.file.Close() // the error has no effect: the file was only read
		l.file = nil
	}
}
