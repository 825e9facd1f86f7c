package outbox

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
)

// The machine is suspended beyond the end of the lease, or beyond the time in which a
// message may be sent again. Then the relay sends no further message, and cancels the
// running sends within a second.
func TestSuspension(t *testing.T) {
	for name, tc := range map[string]struct {
		asleep     time.Duration
		lease, run bool // whether the lease is over, and the time for sends
	}{
		"within both":   {asleep: 13 * time.Second},
		"the lease":     {asleep: 15 * time.Second, lease: true},
		"the deadlines": {asleep: DefaultResendFor, lease: true, run: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asleep, start := new(atomic.Int64), time.Now()
				s := &Relay{outbox: &Outbox{config: Config{ResendFor: DefaultResendFor}}, config: RelayConfig{Lease: 15 * time.Second, Groups: 1}}
				s.clock = clock.Simulated(func() clock.Reading {
					return clock.Reading{Awake: time.Since(start), Asleep: time.Duration(asleep.Load()), Wall: time.Now()}
				})
				term := newLeadership(t.Context(), s, 1, s.clock.Now().Add(s.config.Lease))
				u := &run{group: "g", deadline: s.clock.Now().Add(DefaultResendFor)}
				term.start([]*run{u})
				require.True(t, term.mayBegin(u, 0))

				asleep.Store(int64(tc.asleep))
				assert.Equal(t, !tc.lease, term.mayBegin(u, 0))
				if tc.run {
					assert.Equal(t, context.DeadlineExceeded, u.ctx.Err())
				}
				time.Sleep(time.Second)
				synctest.Wait()
				assert.Equal(t, tc.lease, term.sends.Err() != nil)
				assert.Equal(t, tc.lease, u.ctx.Err() != nil)
				switch {
				case tc.run:
					assert.Equal(t, errTooLate, context.Cause(u.ctx))
				case tc.lease:
					assert.Equal(t, errLeaseOver, context.Cause(u.ctx))
				}
				term.expiry.Stop()
				u.end()
			})
		})
	}
}
