package outboxtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// lateOutbox returns an outbox after a crash, with two groups of five rows. The first two
// rows of group "late" are late (too old for a resend), and SQS stored only the first row.
func lateOutbox(t *testing.T, d database, policy outbox.LatePolicy) (*outbox.Outbox, database, *sqstest.Queue) {
	box, db := d.box(t, func(c *outbox.Config) { c.Late, c.Sent = policy, outbox.SentArchive })
	q := newQueue(t)
	addMany(t, box, db, "late", 5)
	addMany(t, box, db, "good", 5)
	_, err := newProducer(t, q, q.URL()).SendMessage(t.Context(), build(t, "late-0000", "late"))
	require.NoError(t, err)
	_, err = db.Exec(`INSERT INTO outbox_attempts (message_group, from_position, to_position, first_attempt) VALUES ('late', 1, 2, $1)`,
		time.Now().Add(-outbox.DefaultResendFor).UnixMicro())
	require.NoError(t, err)
	q.Advance(5*time.Minute + time.Second)
	return box, d, q
}

// archived returns the rows of the archive, each as "group position outcome".
func archived(t *testing.T, d database) (out []string) {
	t.Helper()
	rows, err := d.open(t).Query(`SELECT message_group, position, outcome, message_id, sequence_number FROM outbox_archive ORDER BY message_group, position`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var group, outcome, id, number string
		var position int64
		require.NoError(t, rows.Scan(&group, &position, &outcome, &id, &number))
		if outcome == "sent" {
			assert.NotEmpty(t, id)
			assert.NotEmpty(t, number)
		}
		out = append(out, fmt.Sprint(group, " ", position, " ", outcome))
	}
	require.NoError(t, rows.Err())
	return out
}

func goodSent() (out []string) {
	for i := range 5 {
		out = append(out, fmt.Sprintf("good %d sent", i+1))
	}
	return out
}

// With LateHold, the relay reports a late row (too old for a resend). Until a call of
// Resolve, the relay sends neither this row nor the next rows of the group.
func TestLateHold(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, d, q := lateOutbox(t, d, outbox.LateHold)
		r, stop := start(t, box, newProducer(t, q, q.URL()))
		remain := func(n int64) func() bool {
			return func() bool {
				s, err := box.Stats(t.Context())
				require.NoError(t, err)
				return s.Messages == n && len(r.Stats().Stopped) == 1
			}
		}
		eventually(t, "the other group is sent", remain(5))
		s, err := box.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 2, s.Late)
		late, err := box.Late(t.Context())
		require.NoError(t, err)
		require.Len(t, late, 2)
		for i, l := range late {
			assert.Equal(t, "late", l.Group)
			assert.EqualValues(t, i+1, l.Position)
			assert.Equal(t, fmt.Sprintf("late-%04d", i), l.Message.DedupeKey)
			assert.InDelta(t, time.Now().Add(-outbox.DefaultResendFor).Unix(), l.FirstAttempt.Unix(), 60)
		}
		var named *outbox.LateError
		require.ErrorAs(t, r.Stats().Stopped[0].Err, &named)
		assert.Equal(t, "late-0000", named.DedupeKey)
		assert.EqualValues(t, 1, named.Position)
		assert.NotContains(t, named.Error(), named.DedupeKey)

		require.ErrorIs(t, box.Resolve(t.Context(), "late", 2, idempotency.ResolutionTookEffect), outbox.ErrNotFirst)
		require.ErrorIs(t, box.Resolve(t.Context(), "none", 1, idempotency.ResolutionTookEffect), outbox.ErrNotFirst)
		var setting *idempotency.InvalidError
		require.ErrorAs(t, box.Resolve(t.Context(), "late", 1, "delivered"), &setting)
		require.NoError(t, box.Resolve(t.Context(), "late", 1, idempotency.ResolutionTookEffect))
		eventually(t, "the second is held", func() bool {
			s := r.Stats().Stopped
			return len(s) == 1 && s[0].Position == 2
		})
		assert.Len(t, q.Messages(), 6)
		require.NoError(t, box.Resolve(t.Context(), "late", 2, idempotency.ResolutionNoEffect))
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		assert.Equal(t, []string{"late-0000", "late-0001", "late-0002", "late-0003", "late-0004"}, sent(t, q)["late"])
		assert.Equal(t, append(goodSent(), "late 1 assumed_sent", "late 2 sent", "late 3 sent", "late 4 sent", "late 5 sent"), archived(t, d))
	})
}

// With LateResend, the relay resends a late row, although SQS may have forgotten the first
// attempt and store the message twice. ResendFor then counts from this resend.
func TestLateResend(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, d, q := lateOutbox(t, d, outbox.LateResend)
		_, stop := start(t, box, newProducer(t, q, q.URL()))
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		assert.Equal(t, []string{"late-0000", "late-0000", "late-0001", "late-0002", "late-0003", "late-0004"}, sent(t, q)["late"])
		assert.Equal(t, append(goodSent(), "late 1 sent", "late 2 sent", "late 3 sent", "late 4 sent", "late 5 sent"), archived(t, d))
	})
}

// With LateResend, the relay resends a late row, and SQS refuses the resend. The row stays
// in doubt, because the first attempt may have stored the message.
func TestLateResendAndRefused(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, d, _ := lateOutbox(t, d, outbox.LateResend)
		r, stop := start(t, box, senderFunc(func(_ context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			return sqsfifo.Receipt{}, refused(m)
		}))
		eventually(t, "both are refused", func() bool { return len(r.Stats().Stopped) == 2 })
		stop()
		_, to := marked(t, d.open(t), "late")
		assert.EqualValues(t, 2, to)
		late, err := box.Late(t.Context())
		require.NoError(t, err)
		assert.Empty(t, late, "its interval began again")
	})
}

// With LateAssumeSent, the relay treats a late row (too old for a resend) as sent.
func TestLateAssumeSent(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, d, q := lateOutbox(t, d, outbox.LateAssumeSent)
		_, stop := start(t, box, newProducer(t, q, q.URL()))
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		assert.Equal(t, []string{"late-0000", "late-0002", "late-0003", "late-0004"}, sent(t, q)["late"])
		assert.Equal(t, append(goodSent(), "late 1 assumed_sent", "late 2 assumed_sent", "late 3 sent", "late 4 sent", "late 5 sent"), archived(t, d))
	})
}

// The relay ends a running send when the time ResendFor is over, and the row is then late.
// If the send continued, the sender could retry when SQS may already have forgotten the first
// attempt. SQS could then store the message twice.
func TestSendsEndWithTheInterval(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		add(t, box, db, build(t, "a", "g"))
		_, err := db.Exec(`INSERT INTO outbox_attempts (message_group, from_position, to_position, first_attempt) VALUES ('g', 1, 1, $1)`,
			time.Now().Add(-outbox.DefaultResendFor+700*time.Millisecond).UnixMicro())
		require.NoError(t, err)
		r, stop := start(t, box, senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			<-ctx.Done()
			return sqsfifo.Receipt{}, doubt(m)
		}))
		eventually(t, "it is late", func() bool {
			s := r.Stats().Stopped
			var late *outbox.LateError
			return len(s) == 1 && errors.As(s[0].Err, &late)
		})
		stop()
	})
}

// Resolve refuses a row that a relay may be sending.
func TestResolveNotUnderWay(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		q := newQueue(t)
		addMany(t, box, db, "g", 2)
		begun, goOn := make(chan bool, 2), make(chan bool)
		p := newProducer(t, q, q.URL())
		_, stop := start(t, box, senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			begun <- true
			<-goOn
			return p.SendMessage(ctx, m)
		}))
		<-begun
		for _, r := range []idempotency.Resolution{idempotency.ResolutionTookEffect, idempotency.ResolutionNoEffect, idempotency.ResolutionGiveUp} {
			require.ErrorIs(t, box.Resolve(t.Context(), "g", 1, r), outbox.ErrUnderWay)
		}
		close(goOn)
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		assert.Len(t, q.Messages(), 2)
	})
}

// If a row's content differs from the content that Add stored, the row stops its group
// until the row is discarded.
func TestCorruptRow(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t, func(c *outbox.Config) { c.Sent = outbox.SentArchive })
		q := newQueue(t)
		addMany(t, box, db, "g", 3)
		addMany(t, box, db, "h", 3)
		_, err := db.Exec(`UPDATE outbox SET message = (SELECT message FROM outbox WHERE message_group = 'h' AND position = 3) WHERE message_group = 'g' AND position = 1`)
		require.NoError(t, err)
		_, err = db.Exec(`UPDATE outbox SET message = (SELECT message FROM outbox WHERE message_group = 'h' AND position = 3),
			body_hash = (SELECT body_hash FROM outbox WHERE message_group = 'h' AND position = 3) WHERE message_group = 'g' AND position = 2`)
		require.NoError(t, err)
		r, stop := start(t, box, newProducer(t, q, q.URL()))
		for position := int64(1); position <= 2; position++ {
			eventually(t, "the group is stopped", func() bool {
				s := r.Stats().Stopped
				return len(s) == 1 && s[0].Position == position
			})
			var corrupt *outbox.CorruptError
			require.ErrorAs(t, r.Stats().Stopped[0].Err, &corrupt)
			eventually(t, "the mark is taken back", func() bool {
				return box.Resolve(t.Context(), "g", position, idempotency.ResolutionGiveUp) == nil
			})
		}
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		assert.Equal(t, map[string][]string{"g": {"g-0002"}, "h": {"h-0000", "h-0001", "h-0002"}}, sent(t, q))
		assert.Equal(t, []string{"g 1 discarded", "g 2 discarded", "g 3 sent", "h 1 sent", "h 2 sent", "h 3 sent"}, archived(t, d))
	})
}

// With SentArchive, the archive keeps the sent messages, byte for byte, until a call of
// Purge.
func TestArchive(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t, func(c *outbox.Config) { c.Sent = outbox.SentArchive })
		q := newQueue(t)
		var before []byte
		addMany(t, box, db, "g", 1500)
		require.NoError(t, db.QueryRow(`SELECT message FROM outbox WHERE position = 7`).Scan(&before))
		_, stop := start(t, box, newProducer(t, q, q.URL()), func(c *outbox.RelayConfig) { c.GroupRows = 500 })
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		var after []byte
		var id string
		require.NoError(t, db.QueryRow(`SELECT message, message_id FROM outbox_archive WHERE position = 7`).Scan(&after, &id))
		assert.Equal(t, before, after)
		assert.Equal(t, q.Messages()[6].MessageID, id)
		n, err := box.Purge(t.Context(), time.Hour)
		require.NoError(t, err)
		assert.Zero(t, n)
		n, err = box.Purge(t.Context(), 0)
		require.NoError(t, err)
		assert.EqualValues(t, 1500, n)
	})
}
