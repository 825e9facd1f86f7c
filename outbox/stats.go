package outbox

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Stats is what an outbox holds.
type Stats struct {
	// Messages and Groups have not left the outbox.
	Messages, Groups int64

	// OldestAge is how long ago the oldest of the first messages of the groups was added; 0
	// without one.
	OldestAge time.Duration

	// Late is how many messages are late, see [Outbox.Late].
	Late int64

	// Leader names the relay that leads, "" if no lease is alive. Fence is the number of
	// takeovers so far.
	Leader string
	Fence  int64
}

// Stats reads the database. It takes one look at the index for each group that has
// messages, however many they are.
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

// RelayStats is what one relay did since it was made, and what it does now.
type RelayStats struct {
	Holder  string
	Leading bool
	Fence   int64 // of its last term
	Terms   int64

	// Sent and Duplicates left the outbox; of the latter SQS had a message from an
	// earlier attempt, as far as the producer knows.
	Sent, Duplicates int64

	// InFlight is how many groups have messages under way.
	InFlight int

	// Waves counts commits and looks for messages, Database the time that they took.
	Waves    int64
	Database time.Duration

	DatabaseErrors    int64
	LastDatabaseError error

	// Stopped are the groups that wait because of a failure, in order.
	Stopped []Stopped
}

// Stopped is a message group that waits because its first message failed or is held.
// The relay tries again at Until; what it must not send again it only looks at.
type Stopped struct {
	Group     string
	Position  int64
	DedupeKey string
	Fate      sqsfifo.Fate
	Err       error // the producer's, or a [*LateError] or [*CorruptError]
	Since     time.Time
	Until     time.Time
	Times     int
}
