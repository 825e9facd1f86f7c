package outbox

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// GroupStats is what an outbox holds of one message group.
type GroupStats struct {
	Group    string
	Messages int64

	// Position is that of the first message, the one that [Outbox.Settle] settles.
	// DedupeKey and EventID are its; they are empty if its row cannot be decoded.
	Position  int64
	DedupeKey string
	EventID   uuid.UUID

	// Age is how long ago the first message was added.
	Age time.Duration

	// FirstAttempt is when a relay first began to send the first message without an
	// answer since, or zero. The message is late LateIn after the call; it is late
	// now if FirstAttempt is set and LateIn is 0.
	FirstAttempt time.Time
	LateIn       time.Duration
}

// Late reports whether the first message may have been stored so long ago that SQS may
// not recognise it.
func (g GroupStats) Late() bool { return !g.FirstAttempt.IsZero() && g.LateIn <= 0 }

// groupsPage is how many groups are read at a time.
const groupsPage = 200

// Groups returns the message groups whose first message was added at least age ago, the
// oldest first: with 0 the lag of all groups, with a time in which the relay
// otherwise sends everything those that are stuck. It reads the database and needs no
// relay; why a relay did not send a message is in its [RelayStats].Stopped.
func (o *Outbox) Groups(ctx context.Context, age time.Duration) ([]GroupStats, error) {
	var out []GroupStats
	for cursor, more := "", true; more; {
		n := 0
		err := o.read(ctx, func(q queryer) error {
			rows, err := q.QueryContext(ctx, o.sql.groups, cursor, o.config.ResendFor.Microseconds(), groupsPage)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
				var g GroupStats
				var last, us, first, left int64
				var message []byte
				if err := rows.Scan(&g.Group, &g.Position, &last, &message, &us, &first, &left); err != nil {
					return err
				}
				n++
				cursor = g.Group
				if g.Age = max(0, time.Duration(us)*time.Microsecond); g.Age < age {
					continue
				}
				g.Messages = last - g.Position + 1
				if m := new(sqsfifo.Message); json.Unmarshal(message, m) == nil {
					g.DedupeKey, g.EventID = m.DedupeKey, m.EventID
				}
				if first > 0 {
					g.FirstAttempt, g.LateIn = time.UnixMicro(first).UTC(), max(0, time.Duration(left)*time.Microsecond)
				}
				out = append(out, g)
			}
			return rows.Err()
		})
		if err != nil {
			return nil, fmt.Errorf("outbox: groups: %w", err)
		}
		more = n == groupsPage
	}
	slices.SortStableFunc(out, func(a, b GroupStats) int { return cmp.Compare(b.Age, a.Age) })
	return out, nil
}
