package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// SQS refuses an attempt of another submission, and the Memory frees the event's record.
// The waiting submission, the watcher, finds no record. Until the record could have
// expired, its absence proves the refusal, and the watcher may send the event.
func TestWhatASubmissionKnows(t *testing.T) {
	r := newRig(t, process.Options{})
	first := r.submit("k", "g", "b")
	first.goes()
	watcher := r.submit("k", "g", "b")
	assert.Equal(t, verdict.StateInDoubt, watcher.sub.Known.State)
	since := r.Now()
	r.pass(time.Second)
	first.record(refused)
	first.release()
	r.until(since.Add(span - 1))
	watcher.goes()
	watcher.record(refused)
	assert.Equal(t, verdict.StateClear, watcher.sub.Known.State)
	watcher.release()

	// The same, but the watcher calls Admit one nanosecond later. The record may have
	// expired. Its absence then proves nothing, so Admit must refuse the attempt.
	first = r.submit("k", "g", "b")
	since = r.Now()
	first.goes()
	watcher = r.submit("k", "g", "b")
	first.record(refused)
	first.release()
	r.until(since.Add(span))
	v := watcher.admit()
	assert.Equal(t, kindLateInDoubt, kindOf(v))
	assert.Equal(t, since, v.Known.Since)

	// The Memory forgets an attempt that got no answer. The watcher still knows of that
	// attempt from its earlier calls of Refresh, so Admit must refuse the watcher's own
	// attempt.
	watcher = r.submit("k", "g", "b")
	r.pass(time.Minute)
	first = r.submit("k", "g", "b")
	since = r.Now()
	first.try(lost)
	for range 10 {
		r.pass(time.Minute)
		watcher.refresh()
	}
	assert.Zero(t, watcher.look())
	v = watcher.admit()
	assert.Equal(t, kindLateInDoubt, kindOf(v))
	assert.Equal(t, since, v.Known.Since)

	// The first of two attempts gets no answer, and the second is stored. A watcher that
	// calls Refresh too late knows only the first.
	watcher = r.submit("k", "g", "b")
	first = r.submit("k", "g", "b")
	first.try(lost)
	watcher.refresh()
	first.try(stored("m1"))
	r.pass(10 * time.Minute)
	watcher.refresh()
	assert.Equal(t, kindLateInDoubt, kindOf(watcher.admit()), "nobody looked in time")
	watcher = r.submit("k", "g", "b")
	first = r.submit("k", "g", "b")
	first.try(lost)
	watcher.refresh()
	first.try(stored("m2"))
	for range 10 {
		watcher.refresh()
		r.pass(time.Minute)
	}
	assert.Equal(t, kindLateStored, kindOf(watcher.admit()))

	// The watcher knows an attempt that the Memory has forgotten. It must still learn
	// that another submission stored the event.
	first = r.submit("k", "g", "b")
	first.try(lost)
	watcher = r.submit("k", "g", "b")
	r.pass(10 * time.Minute)
	first = r.submit("k", "g", "b")
	first.try(stored("m3"))
	v = watcher.admit()
	assert.Equal(t, kindLateStored, kindOf(v))
	assert.Equal(t, first.look(), v.Known)
}

// An attempt of the submission gets no answer, so SQS may have stored the event. The Memory
// forgets the attempt after some minutes, but the submission must stay StateInDoubt.
func TestOwnDoubtIsNotForgotten(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	s.try(lost)
	k := s.look()
	r.pass(time.Hour)
	assert.Zero(t, s.look())
	assert.Equal(t, process.Judgement{Verdict: verdict.Verdict{Kind: verdict.KindLate}, Known: k}, s.admit())
	s.refresh()
	assert.Equal(t, k, s.sub.Known)
}

func TestAnAttemptUnderWayIsNotForgotten(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	s.goes()
	r.clocks.Asleep += time.Hour
	assert.Equal(t, verdict.StateInDoubt, s.state())
	end := r.Now()
	s.record(stored("m1"))
	assert.Equal(t, end.Add(span), s.look().ForgottenAt())
}

// Several submissions of one event know of each other's attempts. At any time, at most one
// attempt is under way.
func TestCopies(t *testing.T) {
	r := newRig(t, process.Options{})
	a, b := r.submit("k", "g", "b"), r.submit("k", "g", "b")
	t0 := r.Now()
	a.goes()
	r.pass(time.Second)
	v := b.admit()
	assert.Equal(t, kindRetained, kindOf(v))
	assert.True(t, v.Known.UnderWay)
	assert.Equal(t, t0, v.Known.Since)
	a.record(refused)
	b.goes()
	a.release()
	assert.Equal(t, verdict.StateInDoubt, a.state(), "the other copy is under way")
	b.record(refused)
	assert.Equal(t, verdict.StateClear, b.state())
	b.release()
	assert.Zero(t, b.look(), "the last one frees the record")
	assert.Zero(t, r.Len(r.Now()))

	// An attempt gets no answer, and SQS refuses the next.
	a, b = r.submit("k", "g", "b"), r.submit("k", "g", "b")
	a.goes()
	end := r.Now().Add(window.Request)
	a.record(lost)
	r.pass(time.Second)
	b.goes()
	assert.True(t, b.look().UnderWay)
	r.pass(time.Second)
	b.record(refused)
	assert.Equal(t, verdict.StateInDoubt, b.state())
	assert.Equal(t, end.Add(span), b.look().ForgottenAt())

	// The submission does not record the end of its first attempt: the attempt is in doubt.
	r.pass(time.Hour)
	a = r.submit("k", "g", "b")
	a.goes()
	end = r.pass(time.Second)
	a.goes()
	r.pass(time.Second)
	a.record(refused)
	assert.Equal(t, verdict.StateInDoubt, a.state())
	assert.Equal(t, end.Add(window.Request-time.Second+span), a.look().ForgottenAt())

	// The submission ends without a record of its attempt: another submission may go on.
	r.pass(time.Hour)
	a = r.submit("k", "g", "b")
	a.goes()
	a.release()
	assert.False(t, a.look().UnderWay)
	b = r.submit("k", "g", "b")
	b.goes()
	b.record(refused)
	assert.Equal(t, verdict.StateInDoubt, b.state())

	// Attempts of a stored event may overlap. The event stays stored.
	r.pass(time.Hour)
	a, b = r.submit("k", "g", "b"), r.submit("k", "g", "b")
	assert.False(t, a.try(stored("m1")))
	for _, result := range []process.Result{refused, lost, altered} {
		a.goes()
		b.goes()
		b.record(result)
		assert.Equal(t, verdict.StateStored, b.state())
	}
	b.goes()
	assert.True(t, b.record(stored("m1")), "the other copy was first")
}

// Conclude reports a duplicate only if another submission stored the event.
func TestConclude(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	k, duplicate, _ := r.Conclude(r.Now(), &s.ev, &s.sub, true)
	assert.Equal(t, verdict.StateUnknown, k.State)
	assert.False(t, duplicate)
	assert.Zero(t, r.Len(r.Now()), "nothing is remembered of it")

	s = r.submit("k", "g", "b")
	s.goes()
	k, _, _ = r.Conclude(r.Now(), &s.ev, &s.sub, true)
	assert.Equal(t, verdict.StateInDoubt, k.State, "the request is under way")

	s = r.submit("k2", "g", "b")
	s.try(stored("m1"))
	k, duplicate, _ = r.Conclude(r.Now(), &s.ev, &s.sub, true)
	assert.Equal(t, verdict.StateStored, k.State)
	assert.False(t, duplicate, "it stored the event itself")
	again := r.submit("k2", "g", "b")
	k, duplicate, _ = r.Conclude(r.Now(), &again.ev, &again.sub, true)
	assert.Equal(t, verdict.StateStored, k.State)
	assert.True(t, duplicate)
}
