package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// A submission waits while another submission attempts the event. Later the event has no
// record. Before the record's expiry time, this proves that SQS refused the attempt, so
// the waiting submission may send. After that time it must not send.
func TestWhatASubmissionKnows(t *testing.T) {
	r := newRig(t, process.Options{})
	first := r.submit("k", "g", "b")
	first.goes()
	waits := r.submit("k", "g", "b")
	assert.Equal(t, process.InDoubt, waits.sub.Known.State)
	since := r.Now()
	r.pass(time.Second)
	first.record(refused)
	first.release()
	r.until(since.Add(span - 1))
	waits.goes()
	waits.record(refused)
	assert.Equal(t, process.Clear, waits.sub.Known.State)
	waits.release()

	// The waiting submission tries one nanosecond later than above. The record may now
	// have expired, so the attempt is refused.
	first = r.submit("k", "g", "b")
	since = r.Now()
	first.goes()
	waits = r.submit("k", "g", "b")
	first.record(refused)
	first.release()
	r.until(since.Add(span))
	v := waits.admit()
	assert.Equal(t, process.LateInDoubt, v.Kind)
	assert.Equal(t, since, v.Known.Since)

	// While a submission waits, another submission makes an attempt without an answer, and
	// the memory forgets this attempt.
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
	assert.Equal(t, process.LateInDoubt, v.Kind)
	assert.Equal(t, since, v.Known.Since)

	// While a submission waits, the first attempt of another submission gets no answer,
	// and its second attempt proves that the event is stored.
	waits = r.submit("k", "g", "b")
	first = r.submit("k", "g", "b")
	first.try(lost)
	waits.refresh()
	first.try(stored("m1"))
	r.pass(10 * time.Minute)
	waits.refresh()
	assert.Equal(t, process.LateInDoubt, waits.admit().Kind, "nobody looked in time")
	waits = r.submit("k", "g", "b")
	first = r.submit("k", "g", "b")
	first.try(lost)
	waits.refresh()
	first.try(stored("m2"))
	for range 10 {
		waits.refresh()
		r.pass(time.Minute)
	}
	assert.Equal(t, process.LateStored, waits.admit().Kind)

	// While a submission waits, SQS forgets an attempt in doubt, and then stores the
	// event for another submission. The waiting submission learns that the event is
	// stored.
	first = r.submit("k", "g", "b")
	first.try(lost)
	waits = r.submit("k", "g", "b")
	r.pass(10 * time.Minute)
	first = r.submit("k", "g", "b")
	first.try(stored("m3"))
	v = waits.admit()
	assert.Equal(t, process.LateStored, v.Kind)
	assert.Equal(t, first.look(), v.Known)
}

// A submission's own attempt got no answer. The submission stays InDoubt, even after the
// memory has forgotten the attempt.
func TestOwnDoubtIsNotForgotten(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	s.try(lost)
	k := s.look()
	r.pass(time.Hour)
	assert.Zero(t, s.look())
	assert.Equal(t, process.Judgement{Kind: process.LateInDoubt, Known: k}, s.admit())
	s.refresh()
	assert.Equal(t, k, s.sub.Known)
}

func TestAnAttemptUnderWayIsNotForgotten(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	s.goes()
	r.clocks.Asleep += time.Hour
	assert.Equal(t, process.InDoubt, s.state())
	end := r.Now()
	s.record(stored("m1"))
	assert.Equal(t, end.Add(span), s.look().ForgottenAt())
}

// Several submissions of one event know of each other's attempts.
func TestCopies(t *testing.T) {
	r := newRig(t, process.Options{})
	a, b := r.submit("k", "g", "b"), r.submit("k", "g", "b")
	t0 := r.Now()
	a.goes()
	r.pass(time.Second)
	b.goes()
	a.record(refused)
	assert.Equal(t, process.InDoubt, a.state(), "the other copy is under way")
	assert.True(t, a.look().UnderWay)
	assert.Equal(t, t0, a.look().Since)
	a.release()
	assert.Equal(t, process.InDoubt, a.state())
	b.record(refused)
	assert.Equal(t, process.Clear, b.state())
	b.release()
	assert.Zero(t, b.look(), "the last one frees the record")
	assert.Zero(t, r.Len(r.Now()))

	// The requests of submissions a and b are under way at the same time. Request a gets
	// no answer, and SQS refuses request b.
	a, b = r.submit("k", "g", "b"), r.submit("k", "g", "b")
	a.goes()
	b.goes()
	a.record(lost)
	assert.True(t, b.look().UnderWay)
	end := r.pass(time.Second).Add(window.Request)
	b.record(refused)
	assert.Equal(t, process.InDoubt, b.state())
	assert.Equal(t, end.Add(span), b.look().ForgottenAt(), "the end of the last of attempts at one time")
	r.pass(time.Second)
	b.goes()
	r.pass(time.Second)
	b.record(refused)
	assert.Equal(t, end.Add(span), b.look().ForgottenAt(), "one at a time")

	// The requests of submissions a and b are under way at the same time. SQS confirms
	// request a. Whatever the result of request b, the event stays stored.
	r.pass(time.Hour)
	a, b = r.submit("k", "g", "b"), r.submit("k", "g", "b")
	a.goes()
	b.goes()
	assert.False(t, a.record(stored("m1")))
	for _, result := range []process.Result{refused, lost, altered} {
		b.record(result)
		assert.Equal(t, process.Stored, b.state())
		b.goes()
	}
	assert.True(t, b.record(stored("m1")), "the other copy was first")
	assert.Equal(t, r.Now().Add(span), b.look().ForgottenAt())
}

// After Conclude, no attempt of the submission begins. Conclude reports a duplicate only
// if an earlier submission stored the event.
func TestConclude(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	k, duplicate := r.Conclude(r.Now(), &s.ev, &s.sub)
	assert.Equal(t, process.Unknown, k.State)
	assert.False(t, duplicate)
	assert.Equal(t, process.Concluded.String(), s.admit().Kind.String())
	assert.Zero(t, r.Len(r.Now()), "nothing is remembered of it")

	s = r.submit("k", "g", "b")
	s.goes()
	k, _ = r.Conclude(r.Now(), &s.ev, &s.sub)
	assert.Equal(t, process.InDoubt, k.State, "the request is under way")

	s = r.submit("k2", "g", "b")
	s.try(stored("m1"))
	k, duplicate = r.Conclude(r.Now(), &s.ev, &s.sub)
	assert.Equal(t, process.Stored, k.State)
	assert.False(t, duplicate, "it stored the event itself")
	again := r.submit("k2", "g", "b")
	k, duplicate = r.Conclude(r.Now(), &again.ev, &again.sub)
	assert.Equal(t, process.Stored, k.State)
	assert.True(t, duplicate)
}
