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
		asleep                  time.Duration
		leaseOver, deadlineOver bool // expected after the suspension
	}{
		"within both":   {asleep: 13 * time.Second},
		"the lease":     {asleep: 15 * time.Second, leaseOver: true},
		"the deadlines": {asleep: DefaultResendFor, leaseOver: true, deadlineOver: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asleep, start := new(atomic.Int64), time.Now()
				s := &Relay{outbox: &Outbox{config: Config{ResendFor: DefaultResendFor}}, config: RelayConfig{Lease: 15 * time.Second, Groups: 1}}
				s.clock = clock.Simulated(func() clock.Reading {
					return clock.Reading{Awake: time.Since(start), Asleep: time.Duration(asleep.Load()), Wall: time.Now()}
				})
				leader := newLeadership(t.Context(), s, 1, s.clock.Now().Add(s.config.Lease))
				b := &rowBatch{group: "g", deadline: s.clock.Now().Add(DefaultResendFor)}
				leader.start([]*rowBatch{b})
				require.True(t, leader.mayBegin(b, 0))

				asleep.Store(int64(tc.asleep))
				assert.Equal(t, !tc.leaseOver, leader.mayBegin(b, 0))
				if tc.deadlineOver {
					assert.Equal(t, context.DeadlineExceeded, b.ctx.Err())
				}
				time.Sleep(time.Second)
				synctest.Wait()
				assert.Equal(t, tc.leaseOver, leader.sends.Err() != nil)
				assert.Equal(t, tc.leaseOver, b.ctx.Err() != nil)
				switch {
				case tc.deadlineOver:
					assert.Equal(t, errTooLate, context.Cause(b.ctx))
				case tc.leaseOver:
					assert.Equal(t, errLeaseOver, context.Cause(b.ctx))
				}
				leader.expiry.Stop()
				b.end()
			})
		})
	}
}
