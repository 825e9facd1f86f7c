package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// A submission waits while another submission of the event is in doubt. Later the memory
// has no record of the event. This proves that SQS did not store the event, unless so
// much time has passed that the memory may have freed the record.
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

	// The steps are repeated, but more time passes, so the memory may have freed the
	// record.
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

	// While a submission waits, a doubt about its event begins and expires.
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

	// While a submission waits, another submission's later attempt proves that the event
	// is stored.
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

	// A doubt expires while a submission waits, and then SQS stores the event for another
	// submission. The waiting submission learns that the event is stored.
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

// A doubt from the submission's own attempt stays in the ticket, like a doubt from another
// submission.
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

	// The request of one submission gets no answer while the other submission's request is
	// under way. SQS refuses the other request.
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

	// SQS stores the event by one submission while the other submission's request is under
	// way.
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

// Conclude's answer stays true: no attempt of the submission begins afterwards. A
// submission's own stored attempt is not a duplicate.
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
