package outboxtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// positions returns the positions of a group's rows.
func positions(t testing.TB, db *sql.DB, group string) (out []int64) {
	t.Helper()
	rows, err := db.Query(`SELECT position FROM outbox WHERE message_group = $1 ORDER BY position`, group)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var p int64
		require.NoError(t, rows.Scan(&p))
		out = append(out, p)
	}
	require.NoError(t, rows.Err())
	return out
}

// A message is in the outbox if and only if its transaction committed. A rollback leaves no
// gap in the positions.
func TestAddIsPartOfTheTransaction(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		for i := range 6 {
			tx, err := db.Begin()
			require.NoError(t, err)
			require.NoError(t, box.Add(t.Context(), tx, build(t, fmt.Sprint("a", i), "g"), build(t, fmt.Sprint("b", i), "g")))
			if i%2 == 0 {
				require.NoError(t, tx.Commit())
			} else {
				require.NoError(t, tx.Rollback())
			}
		}
		assert.Equal(t, []int64{1, 2, 3, 4, 5, 6}, positions(t, db, "g"))
	})
}

// Add uses the database's clock like all other statements, so no message is from the
// future.
func TestAddReadsTheClockOfTheDatabase(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		for i := range 20 {
			tx, err := db.Begin()
			require.NoError(t, err)
			require.NoError(t, box.Add(t.Context(), tx, build(t, fmt.Sprint(i), "g")))
			var ahead int64
			require.NoError(t, tx.QueryRow(d.dialect.Render(`SELECT max(added_at) - {now} FROM outbox`)).Scan(&ahead))
			require.NoError(t, tx.Rollback())
			require.LessOrEqual(t, ahead, int64(0), "microseconds")
		}
	})
}

// The queue gets exactly the bytes from Build, even if event, group and attributes
// contain unusual characters.
func TestBytesOfBuild(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		q := newQueue(t)
		odd := "<caf\u00e9> & \u2028 \U0001f600 \\ \" ' %3f {} NULL"
		attributes := func(c *sqsfifo.Config[Event]) {
			c.Attributes = func(Event) map[string]string { return map[string]string{"hint": "<\u00e9\"\\>"} }
		}
		group := `p';DROP_TABLE"\{,}`
		p := newProducer(t, q, q.URL(), attributes)
		built, err := p.Build(Event{odd, group})
		require.NoError(t, err)
		big, err := p.Build(Event{strings.Repeat("k", 1000), group})
		require.NoError(t, err)
		add(t, box, db, built, big)
		_, stop := start(t, box, newProducer(t, q, q.URL()))
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		m := q.Messages()
		require.Len(t, m, 2)
		assert.Equal(t, built.Body, m[0].Body)
		assert.Equal(t, big.Body, m[1].Body)
		assert.Equal(t, group, m[0].GroupID)
		require.Len(t, m[0].Attributes, 1)
		assert.Equal(t, "<\u00e9\"\\>", *m[0].Attributes["hint"].StringValue)
	})
}

// If a message cannot be stored unchanged, Add stores no message of the call and returns
// an error with the message's index and field. The transaction can continue.
func TestAddRefuses(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		good := build(t, "good", "g")
		with := func(f func(*sqsfifo.Message)) *sqsfifo.Message {
			m := *good
			f(&m)
			return &m
		}
		for field, m := range map[string]*sqsfifo.Message{
			"Message":    nil,
			"Group":      with(func(m *sqsfifo.Message) { m.Group = "a b" }),
			"DedupeKey":  with(func(m *sqsfifo.Message) { m.DedupeKey = "" }),
			"Body":       with(func(m *sqsfifo.Message) { m.Body = "\xff" }),
			"Attributes": with(func(m *sqsfifo.Message) { m.Attributes = map[string]string{"a": "\xff"} }),
		} {
			tx, err := db.Begin()
			require.NoError(t, err)
			var wrong *idempotency.InvalidError
			require.ErrorAs(t, box.Add(t.Context(), tx, good, m), &wrong)
			assert.Equal(t, "msgs[1]."+field, wrong.Field)
			require.NoError(t, box.Add(t.Context(), tx, build(t, "after-"+field, "g")))
			require.NoError(t, box.Add(t.Context(), tx))
			require.NoError(t, tx.Commit())
		}
		assert.Len(t, positions(t, db, "g"), 5)
	})
}

// An Add waits for an open transaction with an Add to the same group, and not for a
// transaction with another group.
func TestAddWaitsForItsGroupOnly(t *testing.T) {
	d := newPostgreSQL(t)
	box, db := d.box(t)
	first, err := db.Begin()
	require.NoError(t, err)
	defer first.Rollback()
	require.NoError(t, box.Add(t.Context(), first, build(t, "first", "g")))
	add(t, box, db, build(t, "other", "other"))
	second := make(chan error, 1)
	go func() {
		tx, err := db.Begin()
		if err == nil {
			err = errors.Join(box.Add(context.Background(), tx, build(t, "second", "g")), tx.Commit())
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("the second transaction did not wait: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	require.NoError(t, first.Commit())
	require.NoError(t, <-second)
	q := newQueue(t)
	_, stop := start(t, box, newProducer(t, q, q.URL()))
	eventually(t, "the outbox is empty", empty(t, box))
	stop()
	assert.Equal(t, map[string][]string{"g": {"first", "second"}, "other": {"other"}}, sent(t, q))
}

// Calls of Add with the same groups in different orders do not deadlock.
func TestAddDoesNotDeadlock(t *testing.T) {
	d := newPostgreSQL(t)
	box, db := d.box(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var wg sync.WaitGroup
	for w := range 8 {
		rng := rand.New(rand.NewPCG(seed, uint64(w)))
		wg.Go(func() {
			for n := range 25 {
				var msgs []*sqsfifo.Message
				for i, g := range rng.Perm(10) {
					msgs = append(msgs, build(t, fmt.Sprintf("%d-%d-%d", w, n, i), fmt.Sprint("g", g)))
				}
				tx, err := db.Begin()
				if !assert.NoError(t, err) {
					return
				}
				err = box.Add(context.Background(), tx, msgs...)
				var pg *pgconn.PgError
				if errors.As(err, &pg) {
					t.Errorf("SQLSTATE %s", pg.Code)
				}
				assert.NoError(t, errors.Join(err, tx.Commit()))
			}
		})
	}
	wg.Wait()
	assert.Len(t, positions(t, db, "g3"), 200)
}

// A cancelled call of Add leaves no messages.
func TestAddHonoursTheContext(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		tx, err := db.Begin()
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, box.Add(ctx, tx, build(t, "a", "g")), context.Canceled)
		require.NoError(t, tx.Rollback())
		assert.Empty(t, positions(t, db, "g"))
	})
}
