package replay

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

// Archive is a [Source] of the messages that left an outbox whose Config.Sent is
// ArchiveSent, until they are purged. What is still in the outbox is its relay's to
// send.
//
// A message that was sent is Delivered. One that was settled without a confirmation of
// SQS is InDoubt, and one that was discarded Discarded.
type Archive struct {
	name string
	box  *outbox.Outbox
}

// NewArchive returns the source of the archive.
func NewArchive(name string, box *outbox.Outbox) *Archive { return &Archive{name, box} }

// Name implements [Source].
func (s *Archive) Name() string { return s.name }

// Scan implements [Source]. It yields one group after the other.
func (s *Archive) Scan(ctx context.Context) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for row, err := range s.box.Archived(ctx) {
			if err != nil {
				yield(Item{}, fmt.Errorf("replay: %s: %w", s.name, err))
				return
			}
			if !yield(archived(&row), nil) {
				return
			}
		}
	}
}

// Fetch implements [Source].
func (s *Archive) Fetch(ctx context.Context, positions []string) ([]Item, error) {
	places := make([]outbox.Place, len(positions))
	for i, position := range positions {
		number, group, ok := strings.Cut(position, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("replay: %s: %q is not a position of an archive", s.name, position)
		}
		places[i] = outbox.Place{Group: group, Position: n}
	}
	rows, err := s.box.ArchivedAt(ctx, places)
	if err != nil {
		return nil, fmt.Errorf("replay: %s: %w", s.name, err)
	}
	out := make([]Item, len(positions))
	for i := range out {
		if out[i].Position = positions[i]; rows[i].Position > 0 {
			out[i] = archived(&rows[i])
		}
	}
	return out, nil
}

func archived(r *outbox.ArchivedRow) Item {
	it := Item{
		Position: strconv.FormatInt(r.Position, 10) + " " + r.Group,
		Message:  r.Message, Err: r.Err, Group: r.Group, BodyHash: r.BodyHash, MessageID: r.MessageID,
		Sent: Sent{From: r.Added, To: r.Settled},
	}
	switch r.Outcome {
	case outbox.OutcomeSent, outbox.OutcomeDuplicate:
		it.Status = Delivered
	case outbox.OutcomeDiscarded:
		it.Status = Discarded
	default:
		it.Status = InDoubt
	}
	return it
}
