package outbox

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
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
	err = o.config.DB.QueryRowContext(ctx, o.sql.stats, "", o.config.ResendFor.Microseconds(), math.MaxInt32).Scan(&s.Groups, &s.Messages, &age, &s.Late)
	if err != nil {
		return Stats{}, fmt.Errorf("outbox: stats: %w", err)
	}
	s.OldestAge = max(0, time.Duration(age)*time.Microsecond)
	if err := o.config.DB.QueryRowContext(ctx, o.sql.leader).Scan(&s.Leader, &s.Fence); err != nil {
		return Stats{}, fmt.Errorf("outbox: stats: %w", err)
	}
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

// Stats returns what the relay did. It does not read the database.
func (r *Relay) Stats() RelayStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stats
	for _, stopped := range r.stops {
		s.Stopped = append(s.Stopped, stopped)
	}
	slices.SortFunc(s.Stopped, func(a, b Stopped) int { return strings.Compare(a.Group, b.Group) })
	return s
}

func (t *term) leads(yes bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Leading = yes
	if yes {
		t.stats.Fence = t.fence
		t.stats.Terms++
	} else {
		t.stats.InFlight = 0
		clear(t.stops) // another relay may go on with the groups
	}
}

func (t *term) spent(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Waves++
	t.stats.Database += d
}

func (t *term) count(done []completion, inFlight int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.InFlight = inFlight
	for _, c := range done {
		if c.Outcome == outcomeDuplicate {
			t.stats.Duplicates++
		} else {
			t.stats.Sent++
		}
	}
}
