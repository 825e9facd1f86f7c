package memory

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// Another process crashed during its attempt, so the event is in doubt in the store. This
// process got a claim just in time, and its first attempt did not leave the machine. The
// memory of this process permits another attempt, but the store says that it is too late.
// The event is not sent.
func TestTheStoreSaysTooLate(t *testing.T) {
	policy := newPolicy(t)
	synctest.Test(t, func(t *testing.T) {
		options := Options{Store: new(idempotency.Memory), Policy: policy}
		crashed, m := New(options), New(options)
		defer func() { _, _ = crashed.Close(t.Context()) }()
		defer func() { _, _ = m.Close(t.Context()) }()
		require.Equal(t, verdict.KindGo, admit(t, crashed, submission(t, crashed, new(Record), "k", "b")).Kind)
		time.Sleep(policy.Terms().ResendFor - 1)
		r := submission(t, m, new(Record), "k", "b")
		require.Equal(t, verdict.KindGo, admit(t, m, r).Kind)
		m.Attempted([]Ended{{Record: r, Waiter: noWaiter{}, Answer: &attempt.Answer{Fate: attempt.FateNotStored}}}, Lead{})
		require.Equal(t, verdict.KindGo, admit(t, m, r).Kind, "nothing has changed")
		m.Attempted([]Ended{{Record: r, Waiter: noWaiter{}, Answer: &attempt.Answer{Fate: attempt.FateNotStored}}}, Lead{})
		time.Sleep(time.Nanosecond)
		assert.Equal(t, verdict.KindLate, admit(t, m, r).Kind)
		assert.Equal(t, verdict.StateInDoubt, m.Conclude(r, false, false, true).State)
	})
}
