package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
)

// FindBody returns the body with the given SHA-256 in hexadecimal; ok is false if there is
// none. Only one goroutine at a time calls it.
type FindBody func(ctx context.Context, hash string) (body string, ok bool, err error)

type provenance struct {
	name    string
	records func(context.Context) iter.Seq2[sqsfifo.ProvenanceRecord, error]
	bodies  FindBody
}

// NewProvenance returns a source of the messages in a producer's provenance records (see
// [ProvenanceLines]). The order of the records is kept, and several records of a message
// make one item, in the place of the first. The records have no bodies; the parameter
// `bodies` finds a body by its hash. The messages have no attributes.
//
// A recent item has [LabelEdge], never [LabelInside]. SQS may have accepted the message
// long before the recorded time of the outcome, and may have forgotten it.
func NewProvenance(name string, records func(context.Context) iter.Seq2[sqsfifo.ProvenanceRecord, error], bodies FindBody) Source {
	return &provenance{name, records, bodies}
}

// ProvenanceLines returns the records written to r by [sqsfifo.ProvenanceWriter]. It reads
// only the first bytes of r, as many as `size`. An incomplete last line is ignored.
func ProvenanceLines(r io.ReaderAt, size int64) func(context.Context) iter.Seq2[sqsfifo.ProvenanceRecord, error] {
	return func(ctx context.Context) iter.Seq2[sqsfifo.ProvenanceRecord, error] {
		return func(yield func(sqsfifo.ProvenanceRecord, error) bool) {
			lines := messageline.NewReader(io.NewSectionReader(r, 0, size), 64<<10)
			for {
				var record sqsfifo.ProvenanceRecord
				line, err := lines.Next()
				if errors.Is(err, io.EOF) || err == nil && !line.Ended {
					return
				}
				if err == nil && ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				if err == nil {
					err = json.Unmarshal(line.Bytes, &record)
				}
				if err != nil {
					yield(record, fmt.Errorf("line %d: %w", line.Number, err))
					return
				}
				if !yield(record, nil) {
					return
				}
			}
		}
	}
}

// Name implements [Source].
func (s *provenance) Name() string { return s.name }

// Scan implements [Source]. It reads each message's body once, even if the message has
// several records.
func (s *provenance) Scan(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		at := map[string]int{}
		var items []Item
		for r, err := range s.records(ctx) {
			if err != nil {
				yield(Item{}, fmt.Errorf("replay: %s: %w", s.name, err))
				return
			}
			it := Item{
				Position: r.BodyHash + " " + r.MessageGroup,
				Group:    r.MessageGroup, DedupeKey: r.DedupeKey, BodyHash: r.BodyHash, MessageID: r.MessageID,
			}
			switch r.Outcome {
			case sqsfifo.ProvenanceStored, sqsfifo.ProvenanceDuplicate:
				it.Status, it.Sent.To = StatusDelivered, r.Time
			case sqsfifo.ProvenanceNotStored:
				it.Status = StatusPending
			default: // SQS may have stored the message or an altered one
				it.Status, it.Sent.To = StatusInDoubt, r.Time
			}
			if first, again := at[it.Position]; again {
				items[first].join(&it)
				continue
			}
			at[it.Position] = len(items)
			items = append(items, it)
		}
		for i := range items {
			it := items[i]
			if err := s.fill(ctx, &it); err != nil {
				yield(Item{}, err)
				return
			}
			if !yield(it, nil) {
				return
			}
		}
	}
}

// join adds the status, send times and message ID of another item of the same message.
func (it *Item) join(other *Item) {
	a := PlannedItem{Status: it.Status, Sent: it.Sent, MessageID: it.MessageID}
	a.join(&PlannedItem{Status: other.Status, Sent: other.Sent, MessageID: other.MessageID})
	it.Status, it.Sent, it.MessageID = a.Status, a.Sent, a.MessageID
}

// Fetch implements [Source].
func (s *provenance) Fetch(ctx context.Context, positions []string) ([]Item, error) {
	out := make([]Item, len(positions))
	for i, position := range positions {
		hash, group, ok := strings.Cut(position, " ")
		if !ok {
			return nil, fmt.Errorf("replay: %s: %q is not a position of provenance records", s.name, position)
		}
		out[i] = Item{Position: position, Group: group, BodyHash: hash}
		if err := s.fill(ctx, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// fill sets the item's message, or the reason for a missing message.
func (s *provenance) fill(ctx context.Context, it *Item) error {
	if it.BodyHash == "" {
		it.Err = errors.New("the event never had a body")
		return nil
	}
	body, ok, err := s.bodies(ctx, it.BodyHash)
	switch {
	case err != nil:
		return fmt.Errorf("replay: %s: body %s: %w", s.name, it.BodyHash, err)
	case !ok:
		it.Err = errors.New("there is no body with the recorded hash")
	default:
		it.Message, it.Err = messageOf(body, it.Group)
	}
	return nil
}
