package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func Example() {
	if err := run(context.Background(), nil, os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 5 scenes are stored, each with its event; the queue has 0 messages
	// a transaction that fails leaves no event: 5 are in the outbox
	// the drain dies after a send in each group: the queue has 2 messages, the outbox still 5
	// the next one sends all 5; SQS knows 2 of them and has 5 messages
}

// bench is an outbox with all that is around it.
type bench struct {
	*Outbox
	t        *testing.T
	queue    *sqstest.Queue
	producer *sqsfifo.Producer[Scene]
}

func newBench(t *testing.T) *bench {
	t.Helper()
	db, err := open(t.Context(), filepath.Join(t.TempDir(), "a folder?", "..", "events.db"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, db.Close()) })
	box, err := New(t.Context(), db)
	require.NoError(t, err)
	queue, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	b := &bench{Outbox: box, t: t, queue: queue}
	b.restart()
	return b
}

// restart replaces the producer with one that knows nothing.
func (b *bench) restart() {
	b.t.Helper()
	var err error
	b.producer, err = newProducer(b.queue, b.queue.URL())
	require.NoError(b.t, err)
}

// announce stores n scenes in groups a, b, c... in turn.
func (b *bench) announce(n, groups int) (built []*sqsfifo.Message) {
	b.t.Helper()
	for i := range n {
		s := Scene{fmt.Sprintf("scene-%03d", i), string(rune('a' + i%groups)), time.Date(2025, 12, 4, 0, 0, i, 0, time.UTC)}
		require.NoError(b.t, announce(b.t.Context(), b.Outbox, b.producer, s))
		msg, err := b.producer.Build(s)
		require.NoError(b.t, err)
		built = append(built, msg)
	}
	return built
}

// tried returns the dedupe keys of the rows that have a first attempt.
func (b *bench) tried() (keys []string) {
	b.t.Helper()
	rows, err := b.db.Query(`SELECT json_extract(message, '$.dedupe_key') FROM outbox WHERE first_attempt IS NOT NULL ORDER BY seq`)
	require.NoError(b.t, err)
	defer rows.Close()
	for rows.Next() {
		var k string
		require.NoError(b.t, rows.Scan(&k))
		keys = append(keys, k)
	}
	return keys
}

func (b *bench) age(by time.Duration) {
	b.t.Helper()
	_, err := b.db.Exec(`UPDATE outbox SET first_attempt = first_attempt - ?`, by.Milliseconds())
	require.NoError(b.t, err)
}

// sent returns the IDs of the scenes in the queue.
func (b *bench) sent() (ids []string) {
	b.t.Helper()
	for _, m := range b.queue.Messages() {
		e, err := sqsfifo.DecodeEnvelope[Scene](m.Body)
		require.NoError(b.t, err)
		ids = append(ids, e.Payload.ID)
	}
	return ids
}

// The scene and its event are stored or neither is.
func TestOneTransaction(t *testing.T) {
	b := newBench(t)
	count := func() (scenes, events int) {
		require.NoError(t, b.db.QueryRow(`SELECT (SELECT count(*) FROM scenes), (SELECT count(*) FROM outbox)`).Scan(&scenes, &events))
		return scenes, events
	}
	scene := Scene{"a", "p", time.Unix(0, 0)}
	var violation *sqsfifo.ViolationError
	require.ErrorAs(t, announce(t.Context(), b.Outbox, b.producer, Scene{ID: "no time", PathRow: "p"}), &violation)
	_, err := b.db.Exec(`CREATE TRIGGER full BEFORE INSERT ON outbox BEGIN SELECT raise(ABORT, 'disk full'); END`)
	require.NoError(t, err)
	require.ErrorContains(t, announce(t.Context(), b.Outbox, b.producer, scene), "disk full")
	scenes, events := count()
	assert.Zero(t, scenes)
	assert.Zero(t, events)

	_, err = b.db.Exec(`DROP TRIGGER full`)
	require.NoError(t, err)
	require.NoError(t, announce(t.Context(), b.Outbox, b.producer, scene))
	require.Error(t, announce(t.Context(), b.Outbox, b.producer, scene), "the scene is there already")
	scenes, events = count()
	assert.Equal(t, 1, scenes)
	assert.Equal(t, 1, events)
}

// What arrives is what was built, whatever characters it has.
func TestBytesOfBuild(t *testing.T) {
	b := newBench(t)
	tx, err := b.db.Begin()
	require.NoError(t, err)
	s := Scene{"<caf\u00e9> & \u2028 \U0001f600 \\ \" '%3f", "p';DROP_TABLE", time.Date(1950, 1, 1, 0, 0, 0, 1, time.UTC)}
	built, err := b.producer.Build(s)
	require.NoError(t, err)
	require.NoError(t, b.Add(t.Context(), tx, built))
	require.NoError(t, tx.Commit())

	b.restart()
	got, err := b.Drain(t.Context(), b.producer)
	require.NoError(t, err)
	assert.Equal(t, Drained{Sent: 1}, got)
	m := b.queue.Messages()
	require.Len(t, m, 1)
	assert.Equal(t, built.Body, m[0].Body)
	assert.Equal(t, built.Group, m[0].GroupID)
	require.Len(t, m[0].Attributes, 1)
	assert.Equal(t, built.Attributes["path_row"], *m[0].Attributes["path_row"].StringValue)
}

// A message that SQS refuses stops its group and no other, and is not taken for
// one that may be stored.
func TestRefusedStopsItsGroup(t *testing.T) {
	b := newBench(t)
	b.announce(6, 2)
	b.queue.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 1)
	only := onlyGroup{b.producer, "a"}
	_, err := b.Drain(t.Context(), only)
	var refused *sqsfifo.NotStoredError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "row 1:")
	assert.Empty(t, b.tried())

	got, err := b.Drain(t.Context(), b.producer)
	require.NoError(t, err)
	assert.Equal(t, Drained{Sent: 6}, got)
	assert.ElementsMatch(t, []string{"scene-000", "scene-002", "scene-004", "scene-001", "scene-003", "scene-005"}, b.sent())
	inOrder(t, b.queue.Messages())

	b = newBench(t)
	b.announce(6, 2)
	b.queue.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 1)
	got, err = b.Drain(t.Context(), b.producer)
	require.ErrorAs(t, err, &refused)
	assert.Contains(t, []int{0, 3}, got.Sent, "both groups met the fault, or one")
	assert.Len(t, b.sent(), got.Sent)
}

// onlyGroup sends what is of one group, and refuses the rest as a closed producer
// does.
type onlyGroup struct {
	Sender
	group string
}

func (o onlyGroup) SendMessage(ctx context.Context, msg *sqsfifo.Message) (sqsfifo.Receipt, error) {
	if msg.Group != o.group {
		return sqsfifo.Receipt{}, &sqsfifo.NotStoredError{Err: sqsfifo.ErrClosed}
	}
	return o.Sender.SendMessage(ctx, msg)
}

// What may be stored keeps the time of its first attempt and is sent again, and
// SQS recognises it, also for a process that knows nothing of the first.
func TestUnsureIsSentAgain(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprint("restart ", restart), func(t *testing.T) {
			b := newBench(t)
			b.announce(4, 2)
			_, err := b.Drain(t.Context(), crash{b.producer})
			var unsure *sqsfifo.InDoubtError
			require.ErrorAs(t, err, &unsure)
			assert.Equal(t, []string{"landsat|scene-000", "landsat|scene-001"}, b.tried())
			assert.Len(t, b.sent(), 2)
			if restart {
				b.restart()
			}
			b.age(resendFor - time.Minute)
			got, err := b.Drain(t.Context(), b.producer)
			require.NoError(t, err)
			assert.Equal(t, 4, got.Sent)
			assert.Zero(t, got.Late)
			assert.Len(t, b.sent(), 4)
			assert.Len(t, b.queue.Suppressed(), 2)
		})
	}
}

// A refusal does not undo the doubt of an earlier attempt.
func TestARefusalLeavesTheEarlierDoubt(t *testing.T) {
	b := newBench(t)
	b.announce(1, 1)
	_, err := b.Drain(t.Context(), crash{b.producer})
	require.Error(t, err)
	b.restart() // a process that knows nothing of the first attempt
	b.queue.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 1)
	_, err = b.Drain(t.Context(), b.producer)
	var refused *sqsfifo.NotStoredError
	require.ErrorAs(t, err, &refused)
	assert.Len(t, b.tried(), 1)
}

// What SQS may have forgotten stops its group; with ResendLate it is sent, and its
// five minutes begin anew.
func TestLate(t *testing.T) {
	b := newBench(t)
	b.announce(4, 2)
	_, err := b.Drain(t.Context(), onlyGroup{crash{b.producer}, "a"})
	require.Error(t, err)
	b.age(resendFor)
	b.queue.Advance(6 * time.Minute)
	b.restart()

	got, err := b.Drain(t.Context(), b.producer)
	var late *LateError
	require.ErrorAs(t, err, &late)
	assert.Equal(t, "landsat|scene-000", late.DedupeKey)
	assert.EqualValues(t, 1, late.Seq)
	assert.InDelta(t, time.Now().Add(-resendFor).Unix(), late.FirstAttempt.Unix(), 60)
	assert.Equal(t, Drained{Sent: 2}, got, "the other group")
	assert.Equal(t, []string{"scene-000", "scene-001", "scene-003"}, b.sent())

	b.ResendLate = true
	_, err = b.Drain(t.Context(), crash{b.producer})
	require.Error(t, err)
	assert.Equal(t, []string{"scene-000", "scene-001", "scene-003", "scene-000"}, b.sent(), "at least once")
	b.restart()
	b.ResendLate = false
	got, err = b.Drain(t.Context(), b.producer)
	require.NoError(t, err, "no longer late")
	assert.Equal(t, 2, got.Sent)
	assert.Equal(t, []string{"scene-000", "scene-001", "scene-003", "scene-000", "scene-002"}, b.sent())
}

func TestLateIsCounted(t *testing.T) {
	b := newBench(t)
	b.announce(2, 1)
	_, err := b.Drain(t.Context(), crash{b.producer})
	require.Error(t, err)
	b.age(time.Hour)
	b.ResendLate = true
	got, err := b.Drain(t.Context(), b.producer)
	require.NoError(t, err)
	assert.Equal(t, Drained{Sent: 2, Duplicates: 1, Late: 1}, got)
}

// However long the producer would try, a row is not sent when its own first
// attempt is too long ago.
func TestRetriesEndInTheIntervalOfTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.announce(1, 1)
		_, err := b.Drain(t.Context(), crash{b.producer})
		require.Error(t, err)
		time.Sleep(4 * time.Minute)
		b.restart()
		b.queue.Inject(sqstest.ServerError(), 1000)
		begin := time.Now()
		_, err = b.Drain(t.Context(), b.producer)
		var unsure *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &unsure)
		assert.Equal(t, 30*time.Second, time.Since(begin).Round(time.Second))
		assert.Greater(t, unsure.Attempts, 2)
		assert.Less(t, b.queue.PendingFaults(), 1000-2)

		_, err = b.Drain(t.Context(), b.producer)
		var late *LateError
		require.ErrorAs(t, err, &late)
		require.NoError(t, b.producer.Close(t.Context()))
	})
}

// A receipt counts although nobody waits for it any more.
func TestReceiptOfACancelledDrain(t *testing.T) {
	b := newBench(t)
	b.announce(2, 1)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := b.Drain(ctx, cancelling{b.producer, cancel})
	require.ErrorIs(t, err, context.Canceled)
	n, err := b.Len(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 1, n)
	assert.Empty(t, b.tried())
}

// cancelling cancels while the answer is on its way.
type cancelling struct {
	Sender
	cancel func()
}

func (c cancelling) SendMessage(ctx context.Context, msg *sqsfifo.Message) (sqsfifo.Receipt, error) {
	r, err := c.Sender.SendMessage(ctx, msg)
	c.cancel()
	return r, err
}

// A row is noted as tried before it is sent.
func TestMarkedBeforeSent(t *testing.T) {
	b := newBench(t)
	b.announce(3, 3)
	n, err := b.Drain(t.Context(), probe(func(ctx context.Context, msg *sqsfifo.Message) (sqsfifo.Receipt, error) {
		assert.Contains(t, b.tried(), msg.DedupeKey)
		return b.producer.SendMessage(ctx, msg)
	}))
	require.NoError(t, err)
	assert.Equal(t, 3, n.Sent)
}

type probe func(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error)

func (p probe) SendMessage(ctx context.Context, msg *sqsfifo.Message) (sqsfifo.Receipt, error) {
	return p(ctx, msg)
}

// What is added while the outbox is drained is sent, too.
func TestDrainTakesWhatIsAdded(t *testing.T) {
	b := newBench(t)
	b.announce(1, 1)
	added := false
	n, err := b.Drain(t.Context(), probe(func(ctx context.Context, msg *sqsfifo.Message) (sqsfifo.Receipt, error) {
		if !added {
			added = true
			require.NoError(t, announce(ctx, b.Outbox, b.producer, Scene{"more", "new-group", time.Unix(1, 0)}))
		}
		return b.producer.SendMessage(ctx, msg)
	}))
	require.NoError(t, err)
	assert.Equal(t, 2, n.Sent)
}

func TestErrorsOfTheDatabase(t *testing.T) {
	b := newBench(t)
	b.announce(1, 1)
	_, err := b.db.Exec(`UPDATE outbox SET message = 'no JSON'`)
	require.NoError(t, err)
	_, err = b.Drain(t.Context(), b.producer)
	require.ErrorContains(t, err, "outbox: row 1 is no message")

	require.NoError(t, b.db.Close())
	_, err = b.Drain(t.Context(), b.producer)
	require.ErrorContains(t, err, "outbox: list groups")
	_, err = New(t.Context(), b.db)
	require.ErrorContains(t, err, "outbox: create the table")
	_, err = open(t.Context(), filepath.Join(t.TempDir(), "missing", "events.db"))
	require.Error(t, err)
	require.Error(t, run(t.Context(), []string{filepath.Join(t.TempDir(), "missing", "events.db")}, &strings.Builder{}))
	assert.False(t, errors.Is(err, context.Canceled))
}

// inOrder checks that the messages of each group came in the order of their IDs.
func inOrder(t *testing.T, messages []sqstest.Message) {
	t.Helper()
	last := map[string]string{}
	for _, m := range messages {
		e, err := sqsfifo.DecodeEnvelope[Scene](m.Body)
		require.NoError(t, err)
		assert.Less(t, last[m.GroupID], e.Payload.ID, "group %s", m.GroupID)
		last[m.GroupID] = e.Payload.ID
	}
}
