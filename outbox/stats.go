package outbox

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Stats is a snapshot of an outbox.
type Stats struct {
	// Messages and Groups count the messages in the outbox and their groups.
	Messages, Groups int64

	// OldestAge is the age of the oldest message, or 0 if the outbox is empty.
	OldestAge time.Duration

	// Late is the number of late messages; see [Outbox.Late].
	Late int64

	// Leader is the name of the leading relay, or "" if no lease is valid. Fence is the
	// number of takeovers so far.
	Leader string
	Fence  int64
}

// Stats reads the database. It makes one index lookup per group with messages, however
// many messages the group has.
func (o *Outbox) Stats(ctx context.Context) (s Stats, err error) {
	var age int64
	err = o.read(ctx, func(q queryer) error {
		err := q.QueryRowContext(ctx, o.sql.stats, "", o.config.ResendFor.Microseconds(), math.MaxInt32).Scan(&s.Groups, &s.Messages, &age, &s.Late)
		if err != nil {
			return err
		}
		return q.QueryRowContext(ctx, o.sql.leader).Scan(&s.Leader, &s.Fence)
	})
	if err != nil {
		return Stats{}, fmt.Errorf("outbox: stats: %w", err)
	}
	s.OldestAge = max(0, time.Duration(age)*time.Microsecond)
	return s, nil
}

// RelayStats has a relay's counts since NewRelay, and its current state.
type RelayStats struct {
	Holder  string
	Leading bool

	// Fence is the number of this relay's last takeover, or 0 before the first. The
	// takeovers of all relays are numbered together, from 1. Leaderships counts only the
	// takeovers of this relay.
	Fence       int64
	Leaderships int64

	// Duplicates counts messages that SQS had already stored at an earlier attempt. Sent
	// counts the other messages that SQS stored. The next commit removes the counted
	// messages from the outbox.
	Sent, Duplicates int64

	// InFlight is the number of groups with messages in flight.
	InFlight int

	// Commits counts commits and queries for new messages. Database is the total time of
	// both.
	Commits  int64
	Database time.Duration

	// ClockSteps counts how often this relay found the database clock set back by more
	// than five seconds. Earlier attempts then have an unknown age, and their messages
	// become late: see [Outbox.Late].
	ClockSteps int64

	DatabaseErrors    int64
	LastDatabaseError error

	// Stopped lists the groups that wait because of a failure, sorted by group.
	Stopped []StoppedGroup
}

// StoppedGroup is a message group whose first message failed, or is late and held. The relay
// checks this message again at the time in the field Until, and resends it if permitted.
type StoppedGroup struct {
	Group     string
	Position  int64
	DedupeKey string
	Fate      sqsfifo.Fate
	Err       error // the producer's error, [*LateError] or [*CorruptError]
	Since     time.Time
	Until     time.Time
	Times     int
}
