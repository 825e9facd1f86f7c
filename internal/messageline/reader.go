package messageline

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxLine is the length of the longest accepted line, in bytes. The largest message of SQS
// fits in a line even if all its characters are escaped.
const MaxLine = 8 << 20

// ErrTooLong is the error of a line longer than [MaxLine].
var ErrTooLong = fmt.Errorf("the line is longer than %d bytes, which no message is", MaxLine)

// Text is one line of a file.
type Text struct {
	Bytes  []byte // without the line end; valid until the next call of Next
	Number int    // from 1
	Offset int64  // offset of the first byte in the file
	Ended  bool   // false for a last line without a line end
}

// Reader splits a file into lines. A Reader is not safe for concurrent use and holds at
// most one line in memory.
type Reader struct {
	r      *bufio.Reader
	long   []byte // beginning of a line that is longer than the buffer
	number int
	offset int64
}

// NewReader returns a reader with a buffer of the given number of bytes. Lines may be
// longer than the buffer.
func NewReader(r io.Reader, size int) *Reader { return &Reader{r: bufio.NewReaderSize(r, size)} }

// Offset returns the offset after the last line returned by Next.
func (r *Reader) Offset() int64 { return r.offset }

// Next returns the next line that is not blank, or io.EOF.
//
// For a line that is too long it returns [ErrTooLong], with the line's number and offset.
// The next call returns the following line. Other errors are from the underlying reader.
func (r *Reader) Next() (Text, error) {
	for {
		t, err := r.line()
		if err != nil || len(bytes.TrimSpace(t.Bytes)) > 0 {
			return t, err
		}
	}
}

func (r *Reader) line() (Text, error) {
	r.number++
	t := Text{Number: r.number, Offset: r.offset}
	r.long = r.long[:0]
	tooLong := false
	for {
		part, err := r.r.ReadSlice('\n')
		r.offset += int64(len(part))
		full := errors.Is(err, bufio.ErrBufferFull)
		tooLong = tooLong || len(r.long)+len(part) > MaxLine+1
		switch {
		case err != nil && !full && !errors.Is(err, io.EOF):
			return t, err
		case errors.Is(err, io.EOF) && r.offset == t.Offset:
			return t, io.EOF
		case tooLong && full:
			r.long = r.long[:0]
			continue
		case tooLong:
			return t, ErrTooLong
		case full:
			r.long = append(r.long, part...)
			continue
		}
		t.Bytes = part
		if len(r.long) > 0 {
			r.long = append(r.long, part...)
			t.Bytes = r.long
		}
		t.Ended = err == nil
		t.Bytes = bytes.TrimSuffix(t.Bytes, []byte("\n"))
		if len(t.Bytes) > MaxLine {
			return t, ErrTooLong
		}
		return t, nil
	}
}
