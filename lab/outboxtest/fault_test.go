package outboxtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"modernc.org/sqlite"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

var faultRounds = flag.Int("fault.rounds", 3, "rounds of TestFaultyDatabase")

var errFault = errors.New("the connection broke")

// faults makes database calls fail at random: before the call, or after a commit.
type faults struct {
	source string

	mu          sync.Mutex
	rng         *rand.Rand
	rate        float64
	broken      int
	unconfirmed int // number of commits that succeeded but returned an error
}

func (f *faults) isHit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rng.Float64() >= f.rate {
		return false
	}
	f.broken++
	return true
}

func (f *faults) Driver() driver.Driver { return &sqlite.Driver{} }

func (f *faults) Connect(context.Context) (driver.Conn, error) {
	if f.isHit() {
		return nil, errFault
	}
	conn, err := f.Driver().Open(f.source)
	if err != nil {
		return nil, err
	}
	return &faultyConn{conn, f}, nil
}

// faultyConn is a connection of modernc.org/sqlite whose calls fail at random.
type faultyConn struct {
	driver.Conn
	faults *faults
}

func (c *faultyConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if c.faults.isHit() {
		return nil, errFault
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	return &faultyTx{tx, c.faults}, err
}

func (c *faultyConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.faults.isHit() {
		return nil, errFault
	}
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *faultyConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.faults.isHit() {
		return nil, errFault
	}
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

type faultyTx struct {
	driver.Tx
	faults *faults
}

// Commit fails at random, either after a rollback or after a successful commit.
func (x *faultyTx) Commit() error {
	if x.faults.isHit() {
		return errors.Join(errFault, x.Rollback())
	}
	if err := x.Tx.Commit(); err != nil {
		return err
	}
	if x.faults.isHit() {
		x.faults.mu.Lock()
		x.faults.unconfirmed++
		x.faults.mu.Unlock()
		return errFault
	}
	return nil
}

// Database calls and sends fail at random. Each message is in the queue once, in order,
// and no unsent message stays marked as possibly sent.
func TestFaultyDatabase(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	broken, after, again := 0, 0, 0
	// Continue until at least one commit succeeded but returned an error.
	for round := 0; round < *faultRounds || after == 0 && round < 100; round++ {
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		d := newSQLite(t)
		_, db := d.box(t)
		f := &faults{source: d.source, rng: rand.New(rand.NewPCG(seed, uint64(round)+1000))}
		faulty := sql.OpenDB(f)
		policy := []outbox.SentPolicy{outbox.SentDelete, outbox.SentArchive}[round%2]
		box, err := outbox.Open(t.Context(), outbox.Config{DB: faulty, Dialect: outbox.SQLite, Sent: policy})
		require.NoError(t, err)
		f.mu.Lock()
		f.rate = 0.02 + 0.1*rng.Float64()
		f.mu.Unlock()

		const groups, each = 12, 15
		want := map[string][]string{}
		for g := range groups {
			name := fmt.Sprintf("g%02d", g)
			var msgs []*sqsfifo.Message
			for i := range each {
				id := fmt.Sprintf("%s-%04d", name, i)
				msgs = append(msgs, build(t, id, name))
				want[name] = append(want[name], id)
			}
			for {
				tx, err := faulty.Begin()
				if err != nil {
					continue
				}
				if err = box.Add(t.Context(), tx, msgs...); err == nil {
					err = tx.Commit()
				}
				_ = tx.Rollback()
				if err == nil || len(positions(t, db, name)) > 0 { // after an error, the rows show whether the transaction committed
					break
				}
			}
		}
		q := newQueue(t)
		p := newProducer(t, q, q.URL())
		var mu sync.Mutex
		sends := map[string]int{}
		sender := senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			mu.Lock()
			chance, n := rng.IntN(20), sends[m.DedupeKey]
			sends[m.DedupeKey]++
			mu.Unlock()
			// A row must be marked as possibly sent before its first send.
			if from, to := marked(t, db, m.Group); n == 0 {
				var position int64
				fmt.Sscanf(m.DedupeKey[4:], "%d", &position)
				assert.True(t, from <= position+1 && position+1 <= to, "%s is not in %d to %d", m.DedupeKey, from, to)
			}
			switch chance {
			case 0:
				return sqsfifo.Receipt{}, refused(m)
			case 1:
				return sqsfifo.Receipt{}, doubt(m)
			case 2:
				if _, err := p.SendMessage(ctx, m); err != nil {
					return sqsfifo.Receipt{}, err
				}
				return sqsfifo.Receipt{}, doubt(m)
			}
			return p.SendMessage(ctx, m)
		})
		_, stop := start(t, box, sender, func(c *outbox.RelayConfig) { c.GroupRows = 1 + rng.IntN(6); c.Groups = 1 + rng.IntN(15) })
		eventually(t, "all is sent", func() bool { return len(q.Messages()) == groups*each })
		eventually(t, "the outbox is empty", func() bool {
			var n int
			require.NoError(t, db.QueryRow(`SELECT count(*) FROM outbox`).Scan(&n))
			return n == 0
		})
		stop()
		assert.Equal(t, want, sent(t, q))
		if policy == outbox.SentArchive {
			var n int
			require.NoError(t, db.QueryRow(`SELECT count(*) FROM outbox_archive`).Scan(&n))
			assert.Equal(t, groups*each, n)
		}
		broken, after, again = broken+f.broken, after+f.unconfirmed, again+len(q.Suppressed())
		require.NoError(t, faulty.Close())
	}
	t.Logf("%d calls failed, %d commits were made and not confirmed, %d messages sent again", broken, after, again)
	assert.Positive(t, after)
}

// A commit marks rows as possibly sent, but the database reports an error. The relay does
// not send the rows. A later commit removes the marks; otherwise the rows would become too
// old for a resend.
func TestUnconfirmedMarks(t *testing.T) {
	d := newSQLite(t)
	_, db := d.box(t)
	addMany(t, must(outbox.Open(t.Context(), outbox.Config{DB: db, Dialect: outbox.SQLite})), db, "g", 3)
	f := &faults{source: d.source, rng: rand.New(rand.NewPCG(1, 1))}
	faulty := sql.OpenDB(&unconfirmedConnector{faults: f, match: "INSERT INTO outbox_attempts"})
	defer faulty.Close()
	box, err := outbox.Open(t.Context(), outbox.Config{DB: faulty, Dialect: outbox.SQLite})
	require.NoError(t, err)
	r, stop := start(t, box, senderFunc(func(_ context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
		t.Error("it was sent, although no commit with a mark was confirmed")
		return sqsfifo.Receipt{}, refused(m)
	}))
	eventually(t, "some commits failed", func() bool { return r.Stats().DatabaseErrors > 3 })
	stop()
	_, to := marked(t, db, "g")
	assert.Zero(t, to)
	assert.ErrorIs(t, r.Stats().LastDatabaseError, errFault)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// unconfirmedConnector is a driver.Connector. If a transaction of one of its connections has
// executed a statement with the text in the field `match`, Commit commits and then returns
// an error.
type unconfirmedConnector struct {
	*faults
	match string
}

func (u *unconfirmedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := u.faults.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &unconfirmedConn{faultyConn: conn.(*faultyConn), match: u.match}, nil
}

type unconfirmedConn struct {
	*faultyConn
	match string
	seen  bool
}

func (c *unconfirmedConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	c.seen = false
	tx, err := c.faultyConn.BeginTx(ctx, o)
	return unconfirmedTx{tx, c}, err
}

func (c *unconfirmedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.seen = c.seen || strings.Contains(query, c.match)
	return c.faultyConn.ExecContext(ctx, query, args)
}

type unconfirmedTx struct {
	driver.Tx
	conn *unconfirmedConn
}

func (x unconfirmedTx) Commit() error {
	if err := x.Tx.Commit(); err != nil {
		return err
	}
	if x.conn.seen {
		return errFault
	}
	return nil
}

// A program sends a PostgreSQL notification after its commit. A listener (LISTEN) calls
// Relay.Wake, and the relay sends at once instead of polling after a minute.
func TestNotify(t *testing.T) {
	d := newPostgreSQL(t)
	box, db := d.box(t)
	q := newQueue(t)
	channel := "outbox_" + fmt.Sprint(rand.Uint64())
	r, _ := start(t, box, newProducer(t, q, q.URL()), func(c *outbox.RelayConfig) { c.Poll, c.Lease = time.Minute, time.Minute })
	ctx, cancel := context.WithCancel(t.Context())
	listening := listen(t, ctx, d, channel, r.Wake)
	eventually(t, "it leads", func() bool { return r.Stats().Leading })
	time.Sleep(50 * time.Millisecond) // the relay has checked for messages; the next check comes 15 s later
	begin := time.Now()
	for i := range 100 {
		add(t, box, db, build(t, fmt.Sprintf("%03d", i), "g"))
		_, err := db.Exec(`SELECT pg_notify($1, '')`, channel)
		require.NoError(t, err)
	}
	eventually(t, "all is sent", func() bool { return len(q.Messages()) == 100 })
	assert.Less(t, time.Since(begin), 14*time.Second, "the relay polled")
	assert.True(t, slices.IsSorted(sent(t, q)["g"]))
	cancel()
	<-listening
}
