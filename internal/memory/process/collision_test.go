package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

func TestCollisions(t *testing.T) {
	r := newRig(t, process.Options{})
	first := r.submitWith("k", "g", "payload/1", "north")
	since := r.pass(time.Second)
	first.goes()
	for _, state := range []process.Result{refused, lost, stored("m1")} {
		if first.state() != verdict.StateInDoubt || !first.look().UnderWay {
			first.goes()
			since = first.look().Since
		}
		first.record(state)
		for _, tc := range []struct {
			want                         string
			key, group, body, attributes string
		}{
			{kindGo, "k2", "g", "payload/1", "north"},
			{kindConflict, "k", "g", "other/1", "north"},
			{kindDrift, "k", "g", "payload/2", "north"},
			{kindDrift, "k", "g2", "payload/2", "north"},
			{kindOtherGroup, "k", "g2", "payload/1", "north"},
			{kindOtherGroup, "k", "g2", "payload/1", "south"},
			{kindOtherAttributes, "k", "g", "payload/1", "south"},
		} {
			s := r.submitWith(tc.key, tc.group, tc.body, tc.attributes)
			v := s.admit()
			assert.Equal(t, tc.want, kindOf(v))
			assert.Equal(t, tc.want != kindGo, v.Reuse != verdict.ReuseNone)
			if v.Reuse != verdict.ReuseNone {
				assert.Equal(t, since, v.Known.Since, "when the first was sent")
				assert.Equal(t, first.look(), v.Known)
				assert.Zero(t, s.state(), "nothing is known of this event")
				assert.False(t, s.record(stored("m2")), "there was no attempt")
				s.release()
			} else {
				s.record(refused)
				s.release()
			}
		}
	}
	r.until(first.look().ForgottenAt() - 1)
	other := r.submit("k", "g", "other")
	assert.Equal(t, kindConflict, kindOf(other.admit()))
	r.pass(1)
	assert.Equal(t, kindConflict, kindOf(other.admit()), "what is submitted inside the interval is judged inside it")
	assert.Equal(t, kindGo, kindOf(r.submit("k", "g", "other").admit()))
}

// An event in doubt collides with a later event. Admit returns LateInDoubt and not the
// collision: the caller must know that SQS may have stored the first event.
func TestDoubtComesBeforeCollision(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submit("k", "g", "b")
	s.try(lost)
	r.pass(time.Hour)
	r.submit("k", "g", "other").try(stored("m1"))
	assert.Equal(t, kindLateInDoubt, kindOf(s.admit()))
	assert.Equal(t, kindLateInDoubt, kindOf(s.anyway()))
}

func TestAdmitAnyway(t *testing.T) {
	r := newRig(t, process.Options{})
	first := r.submitWith("k", "g", "b", "north")
	first.try(stored("m1"))
	known := first.look()

	r.pass(time.Second)
	south := r.submitWith("k", "g", "b", "south")
	require.Equal(t, kindOtherAttributes, kindOf(south.admit()))
	assert.Equal(t, verdict.ReuseOtherAttributes, south.anyway().Reuse)
	assert.True(t, south.record(stored("m1")), "SQS took it for the first")
	assert.Equal(t, verdict.StateStored, south.state())
	assert.Equal(t, known.Since, south.look().Since, "SQS forgets the only message that it has")

	other := r.submitWith("k", "g", "other", "north")
	require.Equal(t, kindConflict, kindOf(other.admit()))
	assert.Equal(t, verdict.ReuseOtherPayload, other.anyway().Reuse)
	assert.Equal(t, verdict.StateInDoubt, other.state())
	r.pass(time.Second)
	assert.False(t, other.record(stored("m2")))

	assert.Equal(t, known, first.look(), "the first one's record is untouched")
	assert.Equal(t, 3, r.Len(r.Now()))
	for body, id := range map[string]string{"b": "m1", "other": "m2"} {
		again := r.submitWith("k", "g", body, "north")
		assert.Equal(t, verdict.StateStored, again.goes().Known.State)
		assert.True(t, again.record(stored(id)))
		assert.Equal(t, kindGo, kindOf(again.anyway()))
		assert.True(t, again.record(stored(id)))
	}
	assert.Equal(t, 3, r.Len(r.Now()))
	assert.Equal(t, kindConflict, kindOf(r.submit("k", "g", "third").admit()))

	// The record of the first event expires. The record of the other event remains.
	r.until(known.ForgottenAt())
	assert.Zero(t, first.look())
	assert.Equal(t, verdict.StateStored, other.state())
	assert.Equal(t, kindLateStored, kindOf(r.submitWith("k", "g", "other", "north").admit()))
	r.pass(time.Hour)
	assert.True(t, r.Sweep(r.Now()))
	assert.Zero(t, other.look())
}

// Two events in one request differ only in their attributes. SQS stores only the first
// event, and answers both with the same message ID. The second event therefore counts as
// a duplicate.
func TestAdmitAnywayInOneRequest(t *testing.T) {
	r := newRig(t, process.Options{})
	north, south := r.submitWith("k", "g", "b", "north"), r.submitWith("k", "g", "b", "south")
	north.goes()
	require.Equal(t, kindGo, kindOf(south.anyway()))
	assert.False(t, north.record(stored("m1")))
	assert.True(t, south.record(stored("m1")))

	// SQS answers a request with the event `south` with m2, the message ID of `north`.
	// During this request, the Memory forgets `north`. It must still detect the duplicate.
	north = r.submitWith("k2", "g", "b", "north")
	north.try(stored("m2"))
	r.until(north.look().ResendBefore())
	south = r.submitWith("k2", "g", "b", "south")
	require.Equal(t, kindGo, kindOf(south.anyway()))
	r.until(north.look().ForgottenAt())
	require.Zero(t, north.look())
	assert.True(t, south.record(stored("m2")))
}

func TestAltered(t *testing.T) {
	r := newRig(t, process.Options{})
	s := r.submitWith("k", "g", "b", "north")
	since := r.Now()
	s.goes()
	end := r.pass(time.Second)
	assert.False(t, s.record(altered))
	assert.Equal(t, verdict.StateAltered, s.state())
	again := r.submitWith("k", "g", "b", "north")
	for _, v := range []process.Judgement{s.admit(), again.admit(), again.anyway()} {
		assert.Equal(t, kindAlteredBefore, kindOf(v))
		assert.Equal(t, since, v.Known.Since)
		assert.Equal(t, end.Add(span), v.Known.ForgottenAt(), "until when")
	}
	south := r.submitWith("k", "g", "b", "south")
	assert.Equal(t, kindOtherAttributes, kindOf(south.admit()))
	assert.Equal(t, kindAlteredBefore, kindOf(south.anyway()), "SQS looks at the body alone")
	assert.Equal(t, kindGo, kindOf(r.submit("k", "g", "other").anyway()))
	r.until(end.Add(span) - 1)
	assert.Equal(t, kindAlteredBefore, kindOf(again.admit()))
	r.pass(1)
	again.goes()
	again.record(stored("m1"))
	known := again.look()
	again.goes()
	again.record(altered)
	assert.Equal(t, known, again.look(), "SQS has the event from an earlier send")

	// SQS stored the changed message under another deduplication ID, so it would not drop
	// a resend of the event. The attempt therefore counts as not stored.
	s = r.submit("k2", "g", "b")
	s.try(alteredOther)
	assert.Equal(t, verdict.StateClear, s.state())
	s.try(lost)
	known = s.look()
	s.try(alteredOther)
	assert.Equal(t, known, s.look())
	since = known.Since
	s.try(altered)
	assert.Equal(t, verdict.StateAltered, s.state())
	assert.Equal(t, since, s.look().Since)
}
