package process_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
)

// The machine is suspended for an hour after an event is stored. A submission waiting
// during the suspension still learns of the stored event. A later submission does not,
// because SQS has forgotten the event.
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
			waits, collides := r.submit("k", "g", "b"), r.submit("k", "g", "other")
			r.submit("k", "g", "b").try(stored("m1"))
			r.submit("k2", "g", "b").try(altered)
			altered := r.submit("k2", "g", "b")
			suspend(r)
			r.Sweep(r.Now())
			r.submit("k3", "g", "b").try(stored("m3")) // frees expired records, but must keep the record of k
			assert.Equal(t, process.LateStored, waits.admit().Kind)
			assert.Equal(t, process.Conflict, collides.admit().Kind)
			// SQS has forgotten the changed message, so an attempt of the event may start.
			altered.goes()
			// A later submission waits until the memory no longer keeps the record for the
			// earlier submissions.
			again := r.submit("k", "g", "b")
			assert.Equal(t, process.Unknown, again.sub.Known.State)
			assert.Equal(t, process.Retained, again.admit().Kind)
			assert.Equal(t, process.LateStored, waits.admit().Kind)
			r.pass(2 * time.Minute)
			again.goes()
		})
	}
}

// After a suspension of the machine, the memory keeps the records of earlier events for
// two more minutes if a submission waits. If no submission waits, the memory frees the
// records immediately.
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

// A submission waits during a suspension of the machine. Right after it, a later
// submission of another event with the same dedupe key must not replace the record, even
// if SQS then refuses the later event: the waiting submission would take the missing
// record for a refusal.
func TestOtherEventRightAfterASuspension(t *testing.T) {
	r := newRig(t, process.Options{})
	r.submit("k", "g", "b").try(lost)
	waits := r.submit("k", "g", "b")
	since := waits.look().Since
	r.clocks.Asleep += time.Hour
	other := r.submitWith("k", "g", "b", "south")
	for range 120 {
		assert.Equal(t, process.Retained, other.admit().Kind)
		assert.True(t, other.sub.Retained)
		r.pass(time.Second)
	}
	waits.refresh()
	assert.Equal(t, process.InDoubt, waits.sub.Known.State)
	assert.Equal(t, since, waits.sub.Known.Since)
	other.try(refused)
	assert.False(t, other.sub.Retained)
	other.release()
	known, duplicate := r.Conclude(r.Now(), &waits.ev, &waits.sub)
	assert.False(t, duplicate)
	assert.Equal(t, process.InDoubt, known.State)
}
