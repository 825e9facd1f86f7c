package replay

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

type archive struct {
	name string
	box  *outbox.Outbox
}

// NewArchive returns a source of the messages in an outbox's archive. With the setting
// [outbox.SentArchive], an outbox keeps finished messages in the archive until a purge.
// Unfinished messages are not in the archive; the relay sends them.
//
// The Status of a message depends on how it left the outbox:
//
//   - sent: StatusDelivered
//   - assumed sent, by an operator or by [outbox.LateAssumeSent]: StatusInDoubt
//   - discarded: StatusDiscarded
func NewArchive(name string, box *outbox.Outbox) Source { return &archive{name, box} }

// Name implements [Source].
func (s *archive) Name() string { return s.name }

// Scan implements [Source]. It yields one group after another.
func (s *archive) Scan(ctx context.Context) iter.Seq2[Item, error] {
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
func (s *archive) Fetch(ctx context.Context, positions []string) ([]Item, error) {
	places := make([]outbox.RowPlace, len(positions))
	for i, position := range positions {
		number, group, ok := strings.Cut(position, " ")
		n, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("replay: %s: %q is not a position of an archive", s.name, position)
		}
		places[i] = outbox.RowPlace{Group: group, Position: n}
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
		Sent: SentBetween{From: r.Added, To: r.Left},
	}
	switch r.Outcome {
	case outbox.OutcomeSent, outbox.OutcomeDuplicate:
		it.Status = StatusDelivered
	case outbox.OutcomeDiscarded:
		it.Status = StatusDiscarded
	default:
		it.Status = StatusInDoubt
	}
	return it
}
