package outboxtest

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

// Of several relays only the leader sends. When the leader closes, another relay takes over
// immediately.
func TestOneOfManyWorks(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		q := newQueue(t)
		first, stop := start(t, box, newProducer(t, q, q.URL()))
		eventually(t, "the first leads", func() bool { return first.Stats().Leading })
		second, stopSecond := start(t, box, newProducer(t, q, q.URL()))
		for i := range 20 {
			addMany(t, box, db, fmt.Sprint("g", i), 5)
		}
		eventually(t, "the outbox is empty", empty(t, box))
		assert.False(t, second.Stats().Leading)
		assert.Zero(t, second.Stats().Sent)
		stop()
		eventually(t, "the second leads", func() bool { return second.Stats().Leading })
		addMany(t, box, db, "later", 5)
		eventually(t, "the outbox is empty", empty(t, box))
		stopSecond()
		assert.EqualValues(t, 2, second.Stats().Fence)
		assert.Len(t, q.Messages(), 105)
	})
}

// A relay that has lost the lead changes no rows, even if one of its sends ends later.
func TestADeposedRelayWritesNothing(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		add(t, box, db, build(t, "a", "g"))
		begun, goOn := make(chan bool, 1), make(chan bool)
		old, stopOld := start(t, box, senderFunc(func(_ context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			begun <- true
			<-goOn
			// If this relay were still the leader, it would now remove the row's mark
			// "possibly sent".
			return sqsfifo.Receipt{}, refused(m)
		}), func(c *outbox.RelayConfig) { c.Poll = time.Second; c.Lease = time.Minute })
		<-begun
		_, err := db.Exec(`UPDATE outbox_leader SET lease_until = 0`)
		require.NoError(t, err)
		young, stopYoung := start(t, box, senderFunc(func(_ context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			return sqsfifo.Receipt{}, doubt(m)
		}))
		eventually(t, "the young one has sent it", func() bool { return len(young.Stats().Stopped) == 1 })
		close(goOn)
		eventually(t, "the old one is deposed", func() bool { return !old.Stats().Leading })
		_, to := marked(t, db, "g")
		assert.EqualValues(t, 1, to, "the doubt of the young one")
		stopOld()
		assert.True(t, young.Stats().Leading, "the old one's end is not the young one's")
		s, err := box.Stats(t.Context())
		require.NoError(t, err)
		assert.NotEmpty(t, s.Leader)
		stopYoung()
	})
}

// If a relay cannot renew its lease, it sends no message after the end of the lease.
func TestTheLeaseEndsSends(t *testing.T) {
	d := newPostgreSQL(t)
	box, db := d.box(t)
	add(t, box, db, build(t, "a", "g"))
	withdrawn := make(chan error, 1)
	r, stop := start(t, box, senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
		<-ctx.Done()
		select {
		case withdrawn <- context.Cause(ctx):
		default:
		}
		return sqsfifo.Receipt{}, doubt(m)
	}), func(c *outbox.RelayConfig) { c.Lease = 500 * time.Millisecond })
	eventually(t, "it leads", func() bool { return r.Stats().Leading && r.Stats().InFlight == 1 })
	tx, err := db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(`SELECT 1 FROM outbox_leader FOR UPDATE`)
	require.NoError(t, err)
	require.ErrorContains(t, <-withdrawn, "the lease is over")
	require.NoError(t, tx.Rollback())
	stop()
}

// A relay that has lost the lead and resigns does not end the new leader's lease.
func TestADeposedRelayDoesNotResign(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		r, err := outbox.NewRelay(box, outbox.RelayConfig{
			Sender: senderFunc(func(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error) { return sqsfifo.Receipt{}, nil }),
			Lease:  time.Minute, Poll: time.Minute,
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- r.Run(ctx) }()
		eventually(t, "it leads", func() bool { return r.Stats().Leading })
		time.Sleep(20 * time.Millisecond) // the relay has checked for messages; the next check comes 15 s later
		_, err = db.Exec(`UPDATE outbox_leader SET fence = fence + 1, token = 'other', holder = 'other'`)
		require.NoError(t, err)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		s, err := box.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, outbox.Stats{Leader: "other", Fence: 2}, s)
	})
}

// Close waits for messages in flight and records their outcomes.
func TestClose(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		before := runtime.NumGoroutine()
		box, db := d.box(t)
		q := newQueue(t)
		addMany(t, box, db, "g", 5)
		p := newProducer(t, q, q.URL())
		begun, goOn := make(chan bool, 5), make(chan bool)
		r, stop := start(t, box, senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			begun <- true
			<-goOn
			return p.SendMessage(ctx, m)
		}))
		<-begun
		closed := make(chan bool)
		go func() {
			stop()
			close(closed)
		}()
		select {
		case <-closed:
			t.Fatal("Close did not wait")
		case <-time.After(50 * time.Millisecond):
		}
		close(goOn)
		<-closed
		assert.Len(t, positions(t, db, "g"), 4)
		from, to := marked(t, db, "g")
		assert.True(t, to <= 1, "%d to %d may have been sent", from, to)
		assert.False(t, r.Stats().Leading)
		require.NoError(t, r.Close(t.Context()), "again")

		// If a relay never ran, Close and a later Run return without an error.
		r, err := outbox.NewRelay(box, outbox.RelayConfig{Sender: p})
		require.NoError(t, err)
		require.NoError(t, r.Close(t.Context()))
		require.NoError(t, r.Run(t.Context()))
		require.NoError(t, p.Close(t.Context()))
		require.NoError(t, db.Close())
		eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before+1 })
	})
}

// When the context of Close or Run ends, the relay withdraws the messages in flight.
func TestCloseInAHurry(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		add(t, box, db, build(t, "a", "g"))
		begun := make(chan bool, 1)
		blocks := senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			begun <- true
			<-ctx.Done()
			return sqsfifo.Receipt{}, doubt(m)
		})
		r, err := outbox.NewRelay(box, outbox.RelayConfig{Sender: blocks})
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- r.Run(context.Background()) }()
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, r.Close(ctx), context.DeadlineExceeded)
		require.NoError(t, <-ended)
		_, to := marked(t, db, "g")
		assert.EqualValues(t, 1, to)

		r, err = outbox.NewRelay(box, outbox.RelayConfig{Sender: blocks})
		require.NoError(t, err)
		ctx, cancel = context.WithCancel(t.Context())
		go func() { ended <- r.Run(ctx) }()
		<-begun
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		s, err := box.Stats(t.Context())
		require.NoError(t, err)
		assert.Empty(t, s.Leader, "it resigned")
	})
}
