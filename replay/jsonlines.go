package replay

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// maxLine is more than the largest message takes with each of its characters escaped.
const maxLine = 8 << 20

// Line is one line of [JSONLines]: a message as Build returned it, and next to its
// members what is known of it. All but the message may be left out.
type Line struct {
	sqsfifo.Message

	// BodyHash is the SHA-256 of the body in hexadecimal, as [sqsfifo.BodyHash] returns
	// it.
	BodyHash string `json:"body_hash,omitempty"`

	Status    Status `json:"status,omitzero"`
	Sent      Sent   `json:"sent,omitzero"`
	MessageID string `json:"message_id,omitempty"`
}

// JSONLines is a [Source] of JSON lines, each a [Line]. Blank lines are skipped; what
// is not a message, such as a line that was cut off, is an item that has drifted. It
// is safe for concurrent use if the reader is, as that of an *os.File is.
type JSONLines struct {
	name string
	r    io.ReaderAt
	size int64

	status Status
	sent   Sent
}

// NewJSONLines returns the source of the first size bytes of r.
func NewJSONLines(name string, r io.ReaderAt, size int64) *JSONLines {
	return &JSONLines{name: name, r: r, size: size}
}

// Assume says what is known of lines without a status, and returns s. Call it before
// the first Scan, and with the same arguments before each run of a plan.
//
// Without it such a line is Unknown, and may have been sent at any time until the plan is
// made, so that it is at the edge of the window and [WindowSkip] leaves it out. For
// messages that were never sent, assume Pending; for those of a file that nobody has
// written to since some time, Unknown or Delivered with that time as Sent.To.
func (s *JSONLines) Assume(status Status, sent Sent) *JSONLines {
	s.status, s.sent = status, sent
	return s
}

// Name implements [Source].
func (s *JSONLines) Name() string { return s.name }

// Scan implements [Source]. The position of an item is the offset of its line.
func (s *JSONLines) Scan(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		lines := bufio.NewReaderSize(io.NewSectionReader(s.r, 0, s.size), 1<<20)
		for at := int64(0); ; {
			if err := ctx.Err(); err != nil {
				yield(Item{}, context.Cause(ctx))
				return
			}
			line, n, err := readLine(lines)
			if err != nil {
				yield(Item{}, fmt.Errorf("replay: %s: line at offset %d: %w", s.name, at, err))
				return
			}
			if n == 0 {
				return
			}
			if len(bytes.TrimSpace(line)) > 0 && !yield(s.item(at, line), nil) {
				return
			}
			at += int64(n)
		}
	}
}

// Fetch implements [Source].
func (s *JSONLines) Fetch(ctx context.Context, positions []string) ([]Item, error) {
	out := make([]Item, len(positions))
	for i, position := range positions {
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
		at, err := strconv.ParseInt(position, 10, 64)
		if err != nil || at < 0 {
			return nil, fmt.Errorf("replay: %s: %q is not a position of JSON lines", s.name, position)
		}
		if at >= s.size {
			out[i].Position = position
			continue
		}
		lines := bufio.NewReaderSize(io.NewSectionReader(s.r, at, s.size-at), 16<<10)
		line, _, err := readLine(lines)
		if err != nil {
			return nil, fmt.Errorf("replay: %s: line at offset %d: %w", s.name, at, err)
		}
		out[i] = s.item(at, line)
	}
	return out, nil
}

var errLongLine = fmt.Errorf("longer than %d bytes, which no message is", maxLine)

// readLine returns a line, its end included in the count; 0 at the end of the file.
func readLine(r *bufio.Reader) (line []byte, n int, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, 0, errLongLine
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return nil, 0, err
		}
		return line, len(line), nil
	}
}

func (s *JSONLines) item(at int64, text []byte) Item {
	it := Item{Position: strconv.FormatInt(at, 10)}
	var line Line
	err := json.Unmarshal(text, &line)
	if err == nil && line.Body == "" {
		err = errors.New("it has no body")
	}
	if err != nil {
		it.Err = fmt.Errorf("not a message: %w", err)
		return it
	}
	it.Message, it.BodyHash = &line.Message, line.BodyHash
	it.Status, it.Sent, it.MessageID = line.Status, line.Sent, line.MessageID
	if line.Status == Unknown && line.Sent == (Sent{}) {
		it.Status, it.Sent = s.status, s.sent
	}
	return it
}
