package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// After a suspension, an earlier submission still finds the event's record, so that it does
// not send the event twice. A new submission does not find it: SQS has forgotten the event.
func TestSuspensionDuringAWait(t *testing.T) {
	for name, suspend := range map[string]func(r *rig){
		"once": func(r *rig) { r.clocks.Asleep += time.Hour },
		"often": func(r *rig) {
			for range 60 {
				r.clocks.Asleep += time.Minute
				r.pass(time.Second)
			}
		},
		"again just before the next Refresh": func(r *rig) {
			r.clocks.Asleep += 4 * time.Minute
			r.submit("other", "g", "b").release()
			r.pass(59 * time.Second)
			r.clocks.Asleep += 4 * time.Minute
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, process.Options{})
			watcher, collides := r.submit("k", "g", "b"), r.submit("k", "g", "other")
			r.submit("k", "g", "b").try(stored("m1"))
			r.submit("k2", "g", "b").try(altered)
			altered := r.submit("k2", "g", "b")
			suspend(r)
			r.Sweep(r.Now())
			// This Admit frees expired records. It must keep the record with the key k.
			r.submit("k3", "g", "b").try(stored("m3"))
			assert.Equal(t, kindLateStored, kindOf(watcher.admit()))
			assert.Equal(t, kindConflict, kindOf(collides.admit()))
			// SQS has forgotten the changed message with the key k2, and would now store
			// the event. An attempt may therefore start.
			altered.goes()
			// The Memory still keeps the old record with the key k for the earlier
			// submissions. A new submission must wait.
			again := r.submit("k", "g", "b")
			assert.Equal(t, verdict.StateUnknown, again.sub.Known.State)
			assert.Equal(t, kindRetained, kindOf(again.admit()))
			assert.Equal(t, kindLateStored, kindOf(watcher.admit()))
			r.pass(2 * time.Minute)
			again.goes()
		})
	}
}

// A record expires during a suspension of the machine. If a submission is waiting, the
// Memory keeps the record for two more minutes, so that the submission can still read it.
// Otherwise, the Memory frees the record immediately.
func TestRecordsAfterASuspension(t *testing.T) {
	for _, waits := range []bool{true, false} {
		r := newRig(t, process.Options{})
		r.submit("k", "g", "b").try(stored("m1"))
		r.Leave()
		if waits {
			r.submit("k2", "g", "b")
		}
		r.clocks.Asleep += time.Hour
		assert.Equal(t, !waits, r.Sweep(r.Now()))
		r.pass(time.Minute)
		assert.Equal(t, !waits, r.Sweep(r.Now()))
		r.clocks.Asleep += time.Hour
		r.Sweep(r.Now())
		r.pass(time.Minute)
		assert.True(t, r.Sweep(r.Now()), "a second suspension does not keep the records of the first")
	}
}

// During a suspension of the machine, a submission waits, and its event's record expires.
// Another event with the same dedupe key must not replace this record. If SQS refused the
// other event, the Memory would free the new record. The waiting submission would then find
// no record, and conclude that SQS had refused its own event.
func TestOtherEventRightAfterASuspension(t *testing.T) {
	r := newRig(t, process.Options{})
	r.submit("k", "g", "b").try(lost)
	watcher := r.submit("k", "g", "b")
	since := watcher.look().Since
	r.clocks.Asleep += time.Hour
	other := r.submitWith("k", "g", "b", "south")
	for range 120 {
		assert.Equal(t, kindRetained, kindOf(other.admit()))
		assert.True(t, other.sub.IsRetained())
		r.pass(time.Second)
	}
	watcher.refresh()
	assert.Equal(t, verdict.StateInDoubt, watcher.sub.Known.State)
	assert.Equal(t, since, watcher.sub.Known.Since)
	other.try(refused)
	assert.False(t, other.sub.IsRetained())
	other.release()
	known, duplicate, _ := r.Conclude(r.Now(), &watcher.ev, &watcher.sub, true)
	assert.False(t, duplicate)
	assert.Equal(t, verdict.StateInDoubt, known.State)
}

// Two events, "b" and "other", have the same dedupe key. Event "b" got the record under this
// key, and "other" got a separate record, under another key. SQS refused "b", and the
// Memory freed its record. A submission of "other" waits. Right after a suspension, a later
// submission of "other" must not get a new record under the dedupe key: the Memory would
// find the new record instead of the separate record.
func TestSeparateRecordRightAfterASuspension(t *testing.T) {
	r := newRig(t, process.Options{})
	first := r.submit("k", "g", "b")
	first.goes()
	other := r.submit("k", "g", "other")
	assert.Equal(t, kindGo, kindOf(other.anyway()))
	other.record(lost)
	first.record(refused)
	first.release()
	waits := r.submit("k", "g", "other")
	r.clocks.Asleep += time.Hour
	later := r.submit("k", "g", "other")
	assert.Equal(t, kindRetained, kindOf(later.admit()))
	assert.Equal(t, kindRetained, kindOf(later.anyway()))
	assert.Equal(t, kindLateInDoubt, kindOf(waits.admit()))
	r.pass(2 * time.Minute)
	later.goes()
}
