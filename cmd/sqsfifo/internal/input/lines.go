package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// MaxLine is more than the largest message takes with each of its characters
// escaped.
const MaxLine = 8 << 20

// stdinName is how standard input is called in errors and receipts.
const stdinName = "standard input"

// Line is one line that is not blank.
type Line struct {
	File   string
	Number int // from 1
	Text   []byte
}

// LineError is what is wrong with a line.
type LineError struct {
	File string
	Line int
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// Wrong returns what is wrong with the line as a [*LineError].
func (l Line) Wrong(err error) error { return &LineError{l.File, l.Number, err} }

// Source yields texts with the places where they stand.
type Source interface {
	// Next returns io.EOF at the end.
	Next() (Line, error)

	// Size returns the bytes of what is to be read, if that is known, and Read how many
	// have been.
	Size() (int64, bool)
	Read() int64

	Close()
}

// Open returns the lines of the files, or with whole the files as one text each.
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

// Lines reads the lines of files, one file after the other. It is not safe for
// concurrent use.
type Lines struct {
	names   []string
	stdin   io.Reader
	file    io.Closer
	name    string
	number  int
	scanner *bufio.Scanner
	read    int64
}

// OpenLines returns the lines of the files, none or "-" for standard input. That a file
// cannot be opened is found out here, for all files.
func OpenLines(files []string, stdin io.Reader) (*Lines, error) {
	names, err := openable(files)
	if err != nil {
		return nil, err
	}
	return &Lines{names: names, stdin: stdin}, nil
}

// openable returns the names of files that can be opened, "-" if there is none.
func openable(files []string) ([]string, error) {
	if len(files) == 0 {
		return []string{"-"}, nil
	}
	for _, name := range files {
		if name == "-" {
			continue
		}
		f, err := os.Open(name) // #nosec G304 -- the file that was named
		if err != nil {
			return nil, err
		}
		_ = f.Close()
	}
	return slices.Clone(files), nil
}

// Size returns the bytes of all files, and false if one of them has no known size.
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

// Read returns how many bytes the lines had so far.
func (l *Lines) Read() int64 { return l.read }

// Next returns io.EOF at the end. The text is the caller's.
func (l *Lines) Next() (Line, error) {
	for {
		if l.scanner == nil {
			if err := l.open(); err != nil {
				return Line{}, err
			}
		}
		for l.scanner.Scan() {
			l.number++
			text := l.scanner.Bytes()
			l.read += int64(len(text)) + 1
			if len(bytes.TrimSpace(text)) > 0 {
				return Line{l.name, l.number, bytes.Clone(text)}, nil
			}
		}
		err := l.scanner.Err()
		if errors.Is(err, bufio.ErrTooLong) {
			return Line{}, &LineError{l.name, l.number + 1, fmt.Errorf("the line is longer than %d bytes, which no message is", MaxLine)}
		}
		if err != nil {
			return Line{}, fmt.Errorf("%s: after line %d: %w", l.name, l.number, err)
		}
		l.Close()
	}
}

func (l *Lines) open() error {
	if len(l.names) == 0 {
		return io.EOF
	}
	var r io.Reader = l.stdin
	l.name, l.number = stdinName, 0
	if name := l.names[0]; name != "-" {
		f, err := os.Open(name) // #nosec G304 -- the file that was named
		if err != nil {
			return err
		}
		r, l.file, l.name = f, f, name
	}
	l.names = l.names[1:]
	l.scanner = bufio.NewScanner(r)
	l.scanner.Buffer(make([]byte, 64<<10), MaxLine)
	return nil
}

// Close closes the file that is open.
func (l *Lines) Close() {
	l.scanner = nil
	if l.file != nil {
		_ = l.file.Close() // it was only read
		l.file = nil
	}
}
