package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

type noWaiter struct{}

func (noWaiter) MarkRecording() {}
func (noWaiter) Recorded(bool)  {}

func admit(t *testing.T, m *Memory, r *Record) verdict.Verdict {
	a := []Attempt{{Record: r, First: true}}
	m.Admit(t.Context(), a)
	return a[0].Verdict
}

// Right after a suspension, a new submission must wait: its new record would replace the
// old record of the event, which an earlier submission still needs. With a store, the new
// submission need not wait, because the store has recorded the event.
func TestSuspension(t *testing.T) {
	policy := newPolicy(t)
	for _, s := range []idempotency.Store{nil, new(idempotency.Memory)} {
		synctest.Test(t, func(t *testing.T) {
			at := clock.Reading{Wall: time.Now()}
			m := New(Options{Clock: clock.Simulated(func() clock.Reading { return at }), Store: s, Policy: policy})
			defer func() { _, _ = m.Close(t.Context()) }()
			submit := func() *Record { return submission(t, m, new(Record), "k", "b") }
			first, waits := submit(), submit()
			require.Equal(t, verdict.KindGo, admit(t, m, first).Kind)
			m.Attempted([]Ended{{Record: first, Waiter: noWaiter{}, Answer: &attempt.Answer{Fate: attempt.FateStored, MessageID: "m"}}}, Lead{})
			synctest.Wait()
			at.Asleep += time.Hour
			at.Wall = at.Wall.Add(time.Hour)
			later, ends := submit(), submit()
			for _, r := range []*Record{later, ends} {
				j := admit(t, m, r)
				if s != nil {
					assert.Equal(t, verdict.KindKnown, j.Kind, "the store knows the event")
					continue
				}
				assert.Equal(t, verdict.KindWait, j.Kind)
				assert.Positive(t, j.Delay)
			}
			k := m.Conclude(waits, false, false, true)
			assert.Equal(t, verdict.StateStored, k.State)
			assert.NoError(t, k.Err)
			if s == nil {
				k = m.Conclude(ends, false, false, true)
				assert.Equal(t, verdict.StateClear, k.State)
				assert.ErrorIs(t, k.Err, errRetained)
				at.Awake += 2 * time.Minute
				assert.Equal(t, verdict.KindGo, admit(t, m, later).Kind)
			}
		})
	}
}

// SendAnyway permits a submission to send its event in spite of a collision with another
// event. Right after a suspension, the submission must wait all the same. The collision is
// reported once, when the attempt starts.
func TestSuspensionAndCollision(t *testing.T) {
	at := clock.Reading{Wall: time.Now()}
	m := New(Options{Clock: clock.Simulated(func() clock.Reading { return at })})
	submit := func(body string) *Record { return submission(t, m, &Record{SendAnyway: true}, "k", body) }
	require.Equal(t, verdict.KindGo, admit(t, m, submit("under way")).Kind)
	other := submit("b")
	assert.NotZero(t, admit(t, m, other).Reuse)
	m.Attempted([]Ended{{Record: other, Answer: &attempt.Answer{Fate: attempt.FateInDoubt}}}, Lead{})
	submit("b") // waits
	at.Asleep += time.Hour
	at.Wall = at.Wall.Add(time.Hour)
	later := submit("b")
	for range 120 {
		j := admit(t, m, later)
		require.Equal(t, verdict.KindWait, j.Kind)
		require.Zero(t, j.Reuse)
		at.Awake += time.Second
	}
	j := admit(t, m, later)
	assert.Equal(t, verdict.KindGo, j.Kind)
	assert.NotZero(t, j.Reuse)
}

// With SendAnyway, a collision that the store found is reported once, even if the
// submission then has to wait because of a suspension. This is true also if this process
// found a collision at first, and has no collision at the end of the wait.
func TestSuspensionAndCollisionInStore(t *testing.T) {
	for _, also := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			at := clock.Reading{Wall: time.Now()}
			options := Options{Clock: clock.Simulated(func() clock.Reading { return at }), Store: new(idempotency.Memory), Policy: newPolicy(t)}
			otherProcess, m := New(options), New(options)
			defer func() { _, _ = otherProcess.Close(t.Context()) }()
			defer func() { _, _ = m.Close(t.Context()) }()
			submit := func(m *Memory, body string) *Record {
				return submission(t, m, &Record{SendAnyway: true}, "k", body)
			}
			require.Equal(t, verdict.KindGo, admit(t, otherProcess, submit(otherProcess, "x")).Kind)
			underWay := submit(m, "under way")
			if also {
				require.Equal(t, verdict.KindGo, admit(t, m, underWay).Kind)
			}
			earlier, waits := submit(m, "b"), submit(m, "b")
			require.Equal(t, verdict.ReuseOtherPayload, admit(t, m, earlier).Reuse)
			m.Attempted([]Ended{{Record: earlier, Answer: &attempt.Answer{Fate: attempt.FateInDoubt}}}, Lead{})
			at.Asleep += time.Hour
			at.Wall = at.Wall.Add(time.Hour)
			later := submit(m, "b")
			first := admit(t, m, later)
			require.Equal(t, verdict.KindWait, first.Kind)
			require.Equal(t, verdict.ReuseOtherPayload, first.Reuse)
			if also {
				m.Attempted([]Ended{{Record: underWay, Answer: &attempt.Answer{Fate: attempt.FateNotStored}}}, Lead{})
				m.Conclude(underWay, false, false, true)
				m.Release(underWay, false)
			}
			at.Awake += 2 * time.Minute
			last := admit(t, m, later)
			assert.Equal(t, verdict.KindGo, last.Kind)
			assert.Equal(t, verdict.ReuseNone, last.Reuse)
			assert.NotEqual(t, verdict.StateUnknown, m.Conclude(waits, false, false, true).State)
		})
	}
}

// submission makes the record r a submission of an event to m. If m has a store, the
// submission has a claim.
func submission(t *testing.T, m *Memory, r *Record, key, body string) *Record {
	if m.claims != nil {
		require.NoError(t, m.Claim(r, idempotency.Key{Scope: "s", Operation: "o", Value: key}, idempotency.FingerprintOf("test/1", []byte(body)), Message{}, idempotency.Dataset{}))
	}
	m.Identify(r, key, "g", body, body, [32]byte{})
	return r
}

type failingStore struct{ idempotency.Store }

var errDown = errors.New("down")

func (failingStore) ClaimBatch(context.Context, []idempotency.Claim) ([]idempotency.Outcome, error) {
	return nil, errDown
}

func (failingStore) Lookup(context.Context, ...idempotency.Key) ([]idempotency.Record, error) {
	return nil, errDown
}

// With FailOpen, Unclaimed counts the attempts that start while the store fails. Attempts
// that are held or refused do not count.
func TestUnclaimedCountsStartedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{MaxKeys: 1, Store: failingStore{new(idempotency.Memory)}, FailOpen: true, Policy: newPolicy(t)})
		defer func() { _, _ = m.Close(t.Context()) }()
		submit := func(key, body string) *Record { return submission(t, m, new(Record), key, body) }
		require.Equal(t, verdict.KindGo, admit(t, m, submit("k", "one")).Kind)
		refused, held := submit("k", "two"), submit("l", "three")
		a := []Attempt{{Record: refused, First: true}, {Record: held, First: true, Follows: true}}
		m.Admit(t.Context(), a)
		require.Equal(t, []verdict.Kind{verdict.KindRefuse, verdict.KindHold}, []verdict.Kind{a[0].Kind, a[1].Kind})
		require.ErrorIs(t, admit(t, m, held).Err, ErrFull)
		assert.EqualValues(t, 1, m.StoreStats().Unclaimed)
	})
}
