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
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Bodies returns the body with the SHA-256, in hexadecimal, that a provenance record
// names, and whether there is one. It is called by one goroutine at a time.
type Bodies func(ctx context.Context, hash string) (body string, ok bool, err error)

// MapBodies returns the bodies of a map from their hashes, see [sqsfifo.BodyHash].
func MapBodies(m map[string]string) Bodies {
	return func(_ context.Context, hash string) (string, bool, error) {
		body, ok := m[hash]
		return body, ok, nil
	}
}

// Provenance is a [Source] of the records of a producer, joined with bodies that were
// kept elsewhere. Attributes are in neither. All records of one message are one item,
// at the place of the first.
//
// A record says when an outcome was known, and not since when SQS might have had
// the message. No item is therefore Inside the window; one of the last minutes is at
// its edge.
type Provenance struct {
	name    string
	records func(context.Context) iter.Seq2[sqsfifo.ProvenanceRecord, error]
	bodies  Bodies
}

// NewProvenance returns the source of the records that the function yields, in the
// order in which the producer reported them. See [ProvenanceLines].
func NewProvenance(name string, records func(context.Context) iter.Seq2[sqsfifo.ProvenanceRecord, error], bodies Bodies) *Provenance {
	return &Provenance{name, records, bodies}
}

// ProvenanceLines returns the records that [sqsfifo.ProvenanceWriter] wrote to the first
// size bytes of r. A last line that was cut off is left out.
func ProvenanceLines(r io.ReaderAt, size int64) func(context.Context) iter.Seq2[sqsfifo.ProvenanceRecord, error] {
	return func(ctx context.Context) iter.Seq2[sqsfifo.ProvenanceRecord, error] {
		return func(yield func(sqsfifo.ProvenanceRecord, error) bool) {
			lines := bufio.NewReader(io.NewSectionReader(r, 0, size))
			for n := 1; ; n++ {
				var record sqsfifo.ProvenanceRecord
				line, _, err := readLine(lines)
				if err == nil && ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				if err == nil {
					if !bytes.HasSuffix(line, []byte("\n")) {
						return
					}
					if len(bytes.TrimSpace(line)) == 0 {
						continue
					}
					err = json.Unmarshal(line, &record)
				}
				if err != nil {
					yield(record, fmt.Errorf("line %d: %w", n, err))
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
func (s *Provenance) Name() string { return s.name }

// Scan implements [Source]. It asks for a body once for each message and not for each
// record.
func (s *Provenance) Scan(ctx context.Context) iter.Seq2[Item, error] {
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
				it.Status, it.Sent.To = Delivered, r.Time
			case sqsfifo.ProvenanceNotStored:
				it.Status = Pending
			default: // also altered: SQS has something, and may take this for it
				it.Status, it.Sent.To = InDoubt, r.Time
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

// join adds what another record says of the message.
func (it *Item) join(other *Item) {
	a := PlannedItem{Status: it.Status, Sent: it.Sent, MessageID: it.MessageID}
	a.join(&PlannedItem{Status: other.Status, Sent: other.Sent, MessageID: other.MessageID})
	it.Status, it.Sent, it.MessageID = a.Status, a.Sent, a.MessageID
}

// Fetch implements [Source].
func (s *Provenance) Fetch(ctx context.Context, positions []string) ([]Item, error) {
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

// fill adds the message, or why there is none.
func (s *Provenance) fill(ctx context.Context, it *Item) error {
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
		it.Message, it.Err = rebuild(body, it.Group)
	}
	return nil
}
