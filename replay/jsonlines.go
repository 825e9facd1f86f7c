package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
)

// MessageLine is a line of [NewJSONLines]. It has a message, as returned by the producer's method
// Build. The other fields are optional facts about the message.
type MessageLine struct {
	sqsfifo.Message

	// BodyHash is the SHA-256 of the body in hexadecimal, like the result of
	// [sqsfifo.BodyHash].
	BodyHash string `json:"body_hash,omitempty"`

	Status    Status      `json:"status,omitzero"`
	Sent      SentBetween `json:"sent,omitzero"`
	MessageID string      `json:"message_id,omitempty"`
}

type jsonLines struct {
	name string
	r    io.ReaderAt
	size int64
}

// NewJSONLines returns a source of JSON lines in r, each a [MessageLine]. It reads only the
// first bytes of r, as many as `size`. Blank lines are skipped. An invalid line is an item with
// [ActionDrift]: a line cut off, with an unknown member, or over 8 MiB.
//
// A line without a status and a time has StatusUnknown: the message may have been sent at any
// time until the plan is made. SQS may suppress or deliver such a message ([LabelEdge]), so the
// default policy [WindowSkip] skips it. Add what is known to the lines: the status
// StatusPending if the messages were never sent, and otherwise the time before which they were
// sent.
func NewJSONLines(name string, r io.ReaderAt, size int64) Source {
	return &jsonLines{name: name, r: r, size: size}
}

// Name implements [Source].
func (s *jsonLines) Name() string { return s.name }

// Scan implements [Source]. An item's position is the offset of its line. If the first
// line is not a message, the file has another format, and Scan ends with an error.
func (s *jsonLines) Scan(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		lines := messageline.NewReader(io.NewSectionReader(s.r, 0, s.size), 1<<20)
		for first := true; ; first = false {
			if err := ctx.Err(); err != nil {
				yield(Item{}, context.Cause(ctx))
				return
			}
			it, err := s.next(lines, 0)
			if errors.Is(err, io.EOF) {
				return
			}
			if first && it.Err != nil && !errors.Is(it.Err, messageline.ErrTooLong) {
				err = fmt.Errorf("replay: %s: the first line is %w; want JSON lines of messages, as Producer.Build and sqsfifo send --dry-run make them", s.name, it.Err)
			}
			if !yield(it, err) || err != nil {
				return
			}
		}
	}
}

// Fetch implements [Source].
func (s *jsonLines) Fetch(ctx context.Context, positions []string) ([]Item, error) {
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
		it, err := s.next(messageline.NewReader(io.NewSectionReader(s.r, at, s.size-at), 16<<10), at)
		switch {
		case errors.Is(err, io.EOF) || err == nil && it.Position != position:
			it = Item{Position: position, Err: errors.New("not a message: the line is blank")}
		case err != nil:
			return nil, err
		}
		out[i] = it
	}
	return out, nil
}

// next returns the item of the next line, or io.EOF. Parameter `begin` is the source offset
// of the first line.
func (s *jsonLines) next(lines *messageline.Reader, begin int64) (Item, error) {
	t, err := lines.Next()
	at := begin + t.Offset
	switch {
	case err == nil:
		return s.item(at, t.Bytes), nil
	case errors.Is(err, messageline.ErrTooLong):
		return Item{Position: strconv.FormatInt(at, 10), Err: fmt.Errorf("not a message: %w", err)}, nil
	case errors.Is(err, io.EOF):
		return Item{}, err
	}
	return Item{}, fmt.Errorf("replay: %s: line at offset %d: %w", s.name, at, err)
}

func (s *jsonLines) item(at int64, text []byte) Item {
	it := Item{Position: strconv.FormatInt(at, 10)}
	line, err := messageline.Parse(text)
	if err == nil {
		err = line.Only(messageline.Stored)
	}
	if err == nil && line.Body == "" {
		err = errors.New("it has no body")
	}
	if err != nil {
		it.Err = fmt.Errorf("not a message: %w", err)
		return it
	}
	it.Message, it.BodyHash, it.MessageID = &line.Message, line.BodyHash, line.MessageID
	it.Status = cmp.Or(Status(line.Status), StatusUnknown)
	it.Sent = SentBetween{From: line.SentFrom, To: line.SentTo}
	if err := known("status", it.Status, statuses); err != nil {
		return Item{Position: it.Position, Err: fmt.Errorf("not a message: %w", err)}
	}
	return it
}
