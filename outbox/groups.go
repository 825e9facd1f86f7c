package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// GroupStats describes the messages of one group in an outbox.
type GroupStats struct {
	Group    string
	Messages int64

	// Position is the position of the first message, for [Outbox.Resolve]. DedupeKey and
	// EventID belong to the first message; they are empty if the message's row cannot be
	// decoded.
	Position  int64
	DedupeKey string
	EventID   uuid.UUID

	// Age is the time since Add stored the first message of the group that is still in the
	// outbox.
	Age time.Duration

	// FirstAttempt is the time at which the relay marked the group's first message as
	// possibly sent. The first attempt began then or later. FirstAttempt is zero unless the
	// message was possibly sent. A resend by [LateResend] sets it again. If the database's
	// clock was set back since then, FirstAttempt is an estimate.
	//
	// LateIn is the remaining time until this message is late. SQS might deliver a resend of
	// a late message as a second message. LateIn is 0 if the message is late or FirstAttempt
	// is zero.
	FirstAttempt time.Time
	LateIn       time.Duration
}

// Late reports whether the group's first message is late: see [Outbox.Late].
func (g GroupStats) Late() bool { return !g.FirstAttempt.IsZero() && g.LateIn <= 0 }

// groupsPage is the number of groups per read.
const groupsPage = 200

// Groups returns the message groups whose first message has at least the given age, oldest
// first. Age 0 selects all groups. An age above the relay's usual delay selects the stuck
// groups.
//
// Groups reads the database and needs no relay. The database does not have the reasons of
// failures: see [RelayStats].Stopped of the leading relay.
func (o *Outbox) Groups(ctx context.Context, age time.Duration) ([]GroupStats, error) {
	var out []GroupStats
	for cursor, more := "", true; more; {
		n := 0
		err := o.each(ctx, func(rows *sql.Rows) error {
			var g GroupStats
			var last, us, first, left int64
			var message []byte
			if err := rows.Scan(&g.Group, &g.Position, &last, &message, &us, &first, &left); err != nil {
				return err
			}
			n++
			cursor = g.Group
			if g.Age = max(0, time.Duration(us)*time.Microsecond); g.Age < age {
				return nil
			}
			g.Messages = last - g.Position + 1
			if m := new(sqsfifo.Message); json.Unmarshal(message, m) == nil {
				g.DedupeKey, g.EventID = m.DedupeKey, m.EventID
			}
			if first > 0 {
				g.FirstAttempt, g.LateIn = time.UnixMicro(first).UTC(), max(0, time.Duration(left)*time.Microsecond)
			}
			out = append(out, g)
			return nil
		}, o.sql.groups, cursor, o.config.ResendFor.Microseconds(), groupsPage)
		if err != nil {
			return nil, fmt.Errorf("outbox: groups: %w", err)
		}
		more = n == groupsPage
	}
	slices.SortStableFunc(out, func(a, b GroupStats) int { return cmp.Compare(b.Age, a.Age) })
	return out, nil
}
