package outboxtest

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

// isLate reports whether the relay has stopped exactly one group, because the group's first
// message is late: too old for a resend.
func isLate(r *outbox.Relay) bool {
	var late *outbox.LateError
	stopped := r.Stats().Stopped
	return len(stopped) == 1 && errors.As(stopped[0].Err, &late)
}

// The database's clock is set back while a message is in doubt, so a resend seems
// permitted. The message still becomes late (too old for a resend): neither the
// leader nor a new relay resends it.
func TestClockSetBack(t *testing.T) {
	const step = 300 * time.Second
	each(t, func(t *testing.T, d database) {
		for name, restart := range map[string]bool{"the same relay": false, "another relay": true} {
			t.Run(name, func(t *testing.T) {
				d := d
				if d.dialect == outbox.PostgreSQL {
					d = newPostgreSQL(t)
				} else {
					d = newSQLite(t)
				}
				box, db := d.box(t)
				add(t, box, db, build(t, "a", "g"))
				var attempts atomic.Int64
				inDoubt := senderFunc(func(_ context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
					attempts.Add(1)
					return sqsfifo.Receipt{}, doubt(m)
				})
				r, stop := start(t, box, inDoubt)
				eventually(t, "the message is in doubt", func() bool { return len(r.Stats().Stopped) == 1 })
				if restart {
					stop()
				}
				// Imitate this change: 400 s after the first attempt, the clock is set back
				// by 300 s.
				_, err := db.Exec(`UPDATE outbox_attempts SET first_attempt = first_attempt - $1`, (400*time.Second - step).Microseconds())
				require.NoError(t, err)
				_, err = db.Exec(`UPDATE outbox_leader SET seen_at = seen_at + $1, lease_until = CASE WHEN lease_until = 0 THEN seen_at + $2 ELSE lease_until + $1 END`,
					step.Microseconds(), (step + 200*time.Millisecond).Microseconds())
				require.NoError(t, err)
				if restart {
					attempts.Store(0)
					r, stop = start(t, box, inDoubt)
				}
				eventually(t, "the message is late", func() bool { return isLate(r) })
				before := attempts.Load()
				if restart {
					assert.Zero(t, before)
				}
				late, err := box.Late(t.Context())
				require.NoError(t, err)
				require.Len(t, late, 1)
				assert.True(t, late[0].FirstAttempt.Before(time.Now().Add(-outbox.DefaultResendFor)))
				add(t, box, db, build(t, "b", "h"))
				eventually(t, "the other group is sent", func() bool { return attempts.Load() > before })
				assert.EqualValues(t, 1, r.Stats().ClockSteps)
				require.NoError(t, box.Resolve(t.Context(), "g", 1, idempotency.ResolutionTookEffect))
				stop()
			})
		}
	})
}

// If the database's clock steps back by less than the tolerance, the relay still resends a
// message in doubt: the message does not become late (too old for a resend).
func TestClockSlews(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		add(t, box, db, build(t, "a", "g"))
		var attempts atomic.Int64
		r, stop := start(t, box, senderFunc(func(_ context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			attempts.Add(1)
			return sqsfifo.Receipt{}, doubt(m)
		}))
		eventually(t, "the message is in doubt", func() bool { return len(r.Stats().Stopped) == 1 })
		_, err := db.Exec(`UPDATE outbox_leader SET seen_at = seen_at + $1`, (3 * time.Second).Microseconds())
		require.NoError(t, err)
		before := attempts.Load()
		eventually(t, "the message is sent again", func() bool { return attempts.Load() > before+1 })
		assert.Zero(t, r.Stats().ClockSteps)
		assert.False(t, isLate(r))
		stop()
	})
}
