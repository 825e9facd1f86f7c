package outbox

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// leadership is the state of a leading relay until the lease ends or Run returns. Only
// Run's goroutine changes the fields. One other goroutine makes all calls of
// Sender.SendMessageAsync, because the calls may block until the sender's buffer has room.
type leadership struct {
	*Relay
	fence int64

	sends     context.Context // context of all sends; ends with the lease
	withdraw  context.CancelCauseFunc
	expiry    *clock.Timer  // cancels sends at the end of the lease
	renewedAt clock.Instant // start of the current lease
	ending    atomic.Bool   // no further message may be sent

	inFlight map[string]*rowBatch
	// readyBatches has the batches that wait for their next send. Its capacity is large
	// enough for all batches of the relay.
	readyBatches    chan *rowBatch
	finishedBatches chan *rowBatch
	// toUnmark maps a group to a position. The next commit removes the mark "possibly sent"
	// from the group's rows after this position.
	toUnmark    map[string]int64
	cursor      string // last group read by the method `pick`; the next call starts after it
	moreWaiting bool   // the database may have more rows to send
	failures    int    // consecutive database errors
}

func newLeadership(ctx context.Context, r *Relay, fence int64, until clock.Instant) *leadership {
	t := &leadership{
		Relay: r, fence: fence, renewedAt: until.Add(-r.config.Lease),
		inFlight: map[string]*rowBatch{}, toUnmark: map[string]int64{},
		// both channels have room for all batches, so a batch never blocks when it ends
		readyBatches: make(chan *rowBatch, r.config.Groups), finishedBatches: make(chan *rowBatch, r.config.Groups),
	}
	t.sends, t.withdraw = context.WithCancelCause(ctx)
	t.expiry = t.clock.AfterFunc(until, func() { t.withdraw(errLeaseOver) })
	return t
}

var errLeaseOver = errors.New("outbox: the lease is over")

// recordRenewal records that the database has renewed the lease. The new lease began at the
// time requestedAt, when the relay sent its request to the database.
func (t *leadership) recordRenewal(requestedAt clock.Instant) {
	t.failures = 0
	t.renewedAt = requestedAt
	t.expiry.Reset(requestedAt.Add(t.config.Lease))
}

// unmarkAfter makes the next commit remove the mark "possibly sent" from the group's rows
// after the given position. These rows then count as never sent.
func (t *leadership) unmarkAfter(group string, position int64) {
	if was, ok := t.toUnmark[group]; ok {
		position = min(position, was)
	}
	t.toUnmark[group] = position
}

// busy returns the groups that a commit must skip: groups with messages in flight, and
// groups that wait after a failure.
func (t *leadership) busy() []string {
	out := make([]string, 0, len(t.inFlight))
	for g := range t.inFlight {
		out = append(out, g)
	}
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for g, s := range t.stops {
		if now.Before(s.Until) && t.inFlight[g] == nil {
			out = append(out, g)
		}
	}
	return out
}

// A stopped group waits firstPause after its first failure, then twice as long each time,
// at most maxPause and at most an eighth of ResendFor.
const (
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// pickedRow is a row read by the method `pick`. The rows of its group from position
// `markedFrom` to markedTo were possibly sent, at the time firstAttempt or later. Some or all
// of these rows may have left the outbox. Without marked rows, markedTo is less than
// markedFrom, or both are 0.
type pickedRow struct {
	group string
	row
	markedFrom, markedTo, firstAttempt int64
}

// recordLate records that these rows stop their groups. A resend of a late row might not
// be recognised as a duplicate.
func (t *leadership) recordLate(late []pickedRow) {
	for _, f := range late {
		key := ""
		if m, err := decode(f.message, f.hash); err == nil {
			key = m.DedupeKey
		}
		t.recordStopped(StoppedGroup{
			Group: f.group, Position: f.position, DedupeKey: key, Fate: sqsfifo.FateInDoubt,
			Err: &LateError{Group: f.group, Position: f.position, DedupeKey: key, FirstAttempt: time.UnixMicro(f.firstAttempt).UTC()},
		})
	}
}

func (t *leadership) recordStopped(s StoppedGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	was, again := t.stops[s.Group]
	again = again && was.Position == s.Position
	s.Since, s.Times = time.Now(), 1
	if again {
		s.Since, s.Times = was.Since, was.Times+1
	}
	wait := min(firstPause<<min(s.Times-1, 10), maxPause, t.outbox.config.ResendFor/8)
	s.Until = time.Now().Add(wait)
	t.stops[s.Group] = s
	if !again {
		t.config.Logger.Warn("outbox: a message group waits", "group", s.Group, "position", s.Position, "fate", s.Fate.String(), "error", s.Err)
	}
}

func (t *leadership) resume(group string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.stops, group)
}
