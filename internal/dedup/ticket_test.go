package dedup_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/dedup"
)

// A doubt in the ticket ends by proof. That the memory knows nothing is proof only
// while it cannot have forgotten.
func TestWhatATicketKnows(t *testing.T) {
	r := newRig(t, dedup.Options{})
	first := r.submit("k", "g", "b")
	first.goes()
	waits := r.submit("k", "g", "b")
	assert.Equal(t, dedup.InDoubt, waits.tk.Known.State)
	since := r.Now()
	r.pass(time.Second)
	first.settle(refused)
	first.release()
	r.until(since.Add(span - 1))
	waits.goes()
	waits.settle(refused)
	assert.Equal(t, dedup.Clear, waits.tk.Known.State)
	waits.release()

	// The same, too late to know.
	first = r.submit("k", "g", "b")
	since = r.Now()
	first.goes()
	waits = r.submit("k", "g", "b")
	first.settle(refused)
	first.release()
	r.until(since.Add(span))
	v := waits.admit()
	assert.Equal(t, dedup.LateInDoubt, v.Kind)
	assert.Equal(t, since, v.Known.Since)

	// A doubt that begins and expires while the submission waits.
	waits = r.submit("k", "g", "b")
	r.pass(time.Minute)
	first = r.submit("k", "g", "b")
	since = r.Now()
	first.try(lost)
	for range 10 {
		r.pass(time.Minute)
		waits.refresh()
	}
	assert.Zero(t, waits.look())
	v = waits.admit()
	assert.Equal(t, dedup.LateInDoubt, v.Kind)
	assert.Equal(t, since, v.Known.Since)

	// A doubt that is resolved while the submission waits.
	waits = r.submit("k", "g", "b")
	first = r.submit("k", "g", "b")
	first.try(lost)
	waits.refresh()
	first.try(stored("m1"))
	r.pass(10 * time.Minute)
	waits.refresh()
	assert.Equal(t, dedup.LateInDoubt, waits.admit().Kind, "nobody looked in time")
	waits = r.submit("k", "g", "b")
	first = r.submit("k", "g", "b")
	first.try(lost)
	waits.refresh()
	first.try(stored("m2"))
	for range 10 {
		waits.refresh()
		r.pass(time.Minute)
	}
	assert.Equal(t, dedup.LateStored, waits.admit().Kind)

	// An event that was stored once more since: it is stored, whatever came before.
	first = r.submit("k", "g", "b")
	first.try(lost)
	waits = r.submit("k", "g", "b")
	r.pass(10 * time.Minute)
	first = r.submit("k", "g", "b")
	first.try(stored("m3"))
	v = waits.admit()
	assert.Equal(t, dedup.LateStored, v.Kind)
	assert.Equal(t, first.look(), v.Known)
}

// The submission's own attempts are doubts like those of others.
func TestOwnDoubtIsNotForgotten(t *testing.T) {
	r := newRig(t, dedup.Options{})
	s := r.submit("k", "g", "b")
	s.try(lost)
	k := s.look()
	r.pass(time.Hour)
	assert.Zero(t, s.look())
	assert.Equal(t, dedup.Verdict{Kind: dedup.LateInDoubt, Known: k}, s.admit())
	s.refresh()
	assert.Equal(t, k, s.tk.Known)
}

func TestAnAttemptUnderWayIsNotForgotten(t *testing.T) {
	r := newRig(t, dedup.Options{})
	s := r.submit("k", "g", "b")
	s.goes()
	r.clocks.Asleep += time.Hour
	assert.Equal(t, dedup.InDoubt, s.state())
	end := r.Now()
	s.settle(stored("m1"))
	assert.Equal(t, end.Add(span), s.look().Over())
}

// Copies of one event share what is known.
func TestCopies(t *testing.T) {
	r := newRig(t, dedup.Options{})
	a, b := r.submit("k", "g", "b"), r.submit("k", "g", "b")
	t0 := r.Now()
	a.goes()
	r.pass(time.Second)
	b.goes()
	a.settle(refused)
	assert.Equal(t, dedup.InDoubt, a.state(), "the other copy is under way")
	assert.True(t, a.look().UnderWay)
	assert.Equal(t, t0, a.look().Since)
	a.release()
	assert.Equal(t, dedup.InDoubt, a.state())
	b.settle(refused)
	assert.Equal(t, dedup.Clear, b.state())
	b.release()
	assert.Zero(t, b.look(), "the last one frees the record")
	assert.Zero(t, r.Len(r.Now()))

	// One is lost while the other is under way, which is refused.
	a, b = r.submit("k", "g", "b"), r.submit("k", "g", "b")
	a.goes()
	b.goes()
	a.settle(lost)
	assert.True(t, b.look().UnderWay)
	end := r.pass(time.Second).Add(dedup.AttemptTimeout)
	b.settle(refused)
	assert.Equal(t, dedup.InDoubt, b.state())
	assert.Equal(t, end.Add(span), b.look().Over(), "the end of the last of attempts at one time")
	r.pass(time.Second)
	b.goes()
	r.pass(time.Second)
	b.settle(refused)
	assert.Equal(t, end.Add(span), b.look().Over(), "one at a time")

	// One is stored while the other is under way.
	r.pass(time.Hour)
	a, b = r.submit("k", "g", "b"), r.submit("k", "g", "b")
	a.goes()
	b.goes()
	assert.False(t, a.settle(stored("m1")))
	for _, result := range []dedup.Result{refused, lost, altered} {
		b.settle(result)
		assert.Equal(t, dedup.Stored, b.state())
		b.goes()
	}
	assert.True(t, b.settle(stored("m1")), "the other copy was first")
	assert.Equal(t, r.Now().Add(span), b.look().Over())
}

// What is said of a submission stays true: no attempt of it begins afterwards. And what
// its own attempt stored is not a duplicate.
func TestConclude(t *testing.T) {
	r := newRig(t, dedup.Options{})
	s := r.submit("k", "g", "b")
	k, duplicate := r.Conclude(r.Now(), &s.ev, &s.tk)
	assert.Equal(t, dedup.Unknown, k.State)
	assert.False(t, duplicate)
	assert.Equal(t, dedup.Concluded.String(), s.admit().Kind.String())
	assert.Zero(t, r.Len(r.Now()), "nothing is remembered of it")

	s = r.submit("k", "g", "b")
	s.goes()
	k, _ = r.Conclude(r.Now(), &s.ev, &s.tk)
	assert.Equal(t, dedup.InDoubt, k.State, "the request is under way")

	s = r.submit("k2", "g", "b")
	s.try(stored("m1"))
	k, duplicate = r.Conclude(r.Now(), &s.ev, &s.tk)
	assert.Equal(t, dedup.Stored, k.State)
	assert.False(t, duplicate, "it stored the event itself")
	again := r.submit("k2", "g", "b")
	k, duplicate = r.Conclude(r.Now(), &again.ev, &again.tk)
	assert.Equal(t, dedup.Stored, k.State)
	assert.True(t, duplicate)
}
