package outboxtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
)

// senderFunc is a Sender that calls the function in another goroutine.
type senderFunc func(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error)

func (f senderFunc) SendMessageAsync(ctx context.Context, m *sqsfifo.Message, done func(sqsfifo.Receipt, error)) {
	go func() { done(f(ctx, m)) }()
}

// doubt returns the error of a send with an unknown outcome.
func doubt(m *sqsfifo.Message) error {
	return &sqsfifo.InDoubtError{DedupeKey: m.DedupeKey, Attempts: 1, Err: errors.New("no answer")}
}

func refused(m *sqsfifo.Message) error {
	return &sqsfifo.NotStoredError{DedupeKey: m.DedupeKey, Attempts: 1, Err: errors.New("refused")}
}

// marked returns the first and last position of a group's rows that are marked as possibly
// sent. It returns 0 and 0 if no row is marked.
func marked(t testing.TB, db *sql.DB, group string) (from, to int64) {
	t.Helper()
	err := db.QueryRow(`SELECT from_position, to_position FROM outbox_attempts WHERE message_group = $1`, group).Scan(&from, &to)
	if errors.Is(err, sql.ErrNoRows) || from > to {
		return 0, 0
	}
	require.NoError(t, err)
	return from, to
}

func TestRelaySendsInOrder(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		q := newQueue(t)
		want := map[string][]string{}
		for g := range 7 {
			name := fmt.Sprintf("g%d", g)
			addMany(t, box, db, name, 25)
			for i := range 25 {
				want[name] = append(want[name], fmt.Sprintf("%s-%04d", name, i))
			}
		}
		s, err := box.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 175, s.Messages)
		assert.EqualValues(t, 7, s.Groups)
		assert.Positive(t, s.OldestAge)
		assert.Zero(t, s.Late)
		assert.Empty(t, s.Leader)
		r, stop := start(t, box, newProducer(t, q, q.URL()), func(c *outbox.RelayConfig) { c.Holder = "me" })
		eventually(t, "the outbox is empty", empty(t, box))
		s, err = box.Stats(t.Context())
		require.NoError(t, err)
		assert.Equal(t, outbox.Stats{Leader: "me", Fence: 1}, s)
		assert.ErrorIs(t, r.Run(t.Context()), outbox.ErrRunTwice)
		stop()
		assert.Equal(t, want, sent(t, q))
		assert.EqualValues(t, 175, r.Stats().Sent)
	})
}

// Before the relay sends a row, a commit marks the row as possibly sent. With GroupRows 5,
// at most 5 rows of a group are marked at a time.
func TestMarkedBeforeSent(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		q := newQueue(t)
		addMany(t, box, db, "a", 12)
		addMany(t, box, db, "b", 12)
		p := newProducer(t, q, q.URL())
		check := d.open(t)
		_, stop := start(t, box, senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			var position int64
			fmt.Sscanf(m.DedupeKey[2:], "%d", &position)
			position++
			from, to := marked(t, check, m.Group)
			assert.True(t, from <= position && position <= to, "%d is not in %d to %d", position, from, to)
			assert.LessOrEqual(t, to-from, int64(4))
			return p.SendMessage(ctx, m)
		}), func(c *outbox.RelayConfig) { c.GroupRows = 5 })
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
	})
}

// A failed send stops only its group and is reported. The group continues when the cause of
// the failure has ended.
func TestAFailureStopsItsGroup(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		for name, failure := range map[string]func(*sqsfifo.Message) error{"refused": refused, "doubt": doubt} {
			t.Run(name, func(t *testing.T) {
				box, db := d.box(t)
				q := newQueue(t)
				bad, good := "bad-"+name, "good-"+name
				addMany(t, box, db, bad, 5)
				addMany(t, box, db, good, 5)
				p := newProducer(t, q, q.URL())
				var mu sync.Mutex
				fails := true
				var last time.Time
				r, stop := start(t, box, senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
					mu.Lock()
					defer mu.Unlock()
					if fails && strings.HasSuffix(m.DedupeKey, "0002") && m.Group == bad {
						assert.Greater(t, time.Since(last), 90*time.Millisecond, "it waits before it tries again")
						last = time.Now()
						return sqsfifo.Receipt{}, failure(m)
					}
					return p.SendMessage(ctx, m)
				}))
				eventually(t, "the group is stopped twice, and the other empty", func() bool {
					s := r.Stats()
					left, err := box.Stats(t.Context())
					require.NoError(t, err)
					return len(s.Stopped) == 1 && s.Stopped[0].Times > 1 && left.Messages == 3
				})
				s := r.Stats().Stopped[0]
				assert.Equal(t, bad, s.Group)
				assert.EqualValues(t, 3, s.Position)
				assert.Equal(t, bad+"-0002", s.DedupeKey)
				assert.Equal(t, sqsfifo.FateOf(failure(&sqsfifo.Message{})), s.Fate)
				assert.Len(t, sent(t, q)[bad], 2)
				assert.Len(t, sent(t, q)[good], 5)
				stop()
				from, to := marked(t, db, bad)
				if name == "refused" {
					assert.True(t, to < 3, "%d to %d may have been sent", from, to)
				} else {
					assert.True(t, from <= 3 && to == 3, "%d to %d may have been sent", from, to)
				}
				mu.Lock()
				fails = false
				mu.Unlock()
				r, stop = start(t, box, newProducer(t, q, q.URL()))
				eventually(t, "the outbox is empty", empty(t, box))
				stop()
				assert.Empty(t, r.Stats().Stopped)
				assert.Len(t, q.Messages(), 10)
				assert.True(t, slices.IsSorted(sent(t, q)[bad]))
			})
		}
	})
}

// If SQS refuses a resend, the message stays in doubt, because an earlier attempt may have
// been stored.
func TestARefusalLeavesTheEarlierDoubt(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		add(t, box, db, build(t, "a", "g"))
		for i, failure := range []func(*sqsfifo.Message) error{doubt, refused} {
			r, stop := start(t, box, senderFunc(func(_ context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
				return sqsfifo.Receipt{}, failure(m)
			}))
			eventually(t, "it failed", func() bool { return len(r.Stats().Stopped) == 1 })
			stop()
			_, to := marked(t, db, "g")
			assert.EqualValues(t, 1, to, "after failure %d", i)
		}
	})
}

// After a crash, a relay first resends the rows marked as possibly sent, and then sends
// other rows.
func TestResendsBeforeLaterRows(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		q := newQueue(t)
		addMany(t, box, db, "g", 9)
		_, err := db.Exec(`INSERT INTO outbox_attempts (message_group, from_position, to_position, first_attempt) VALUES ('g', 1, 3, $1)`, time.Now().UnixMicro())
		require.NoError(t, err)
		p := newProducer(t, q, q.URL())
		for i := range 2 { // the previous relay sent these rows
			_, err := p.SendMessage(t.Context(), build(t, fmt.Sprintf("g-%04d", i), "g"))
			require.NoError(t, err)
		}
		var order []string
		_, stop := start(t, box, senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			order = append(order, m.DedupeKey[2:])
			if m.DedupeKey == "g-0003" {
				from, _ := marked(t, db, "g")
				assert.EqualValues(t, 4, from, "a later row has a later mark")
			}
			return newProducer(t, q, q.URL()).SendMessage(ctx, m)
		}))
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		assert.Equal(t, []string{"0000", "0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008"}, order)
		assert.Len(t, q.Messages(), 9)
	})
}

// If there are more groups than concurrent sends, each group gets its turn, even if other
// groups fail permanently.
func TestNoGroupStarves(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		q := newQueue(t)
		var msgs []*sqsfifo.Message
		for g := range 60 {
			for i := range 3 {
				msgs = append(msgs, build(t, fmt.Sprintf("%02d-%d", g, i), fmt.Sprintf("g%02d", g)))
			}
		}
		add(t, box, db, msgs...)
		p := newProducer(t, q, q.URL())
		_, stop := start(t, box, senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			if m.Group < "g20" {
				return sqsfifo.Receipt{}, refused(m)
			}
			return p.SendMessage(ctx, m)
		}), func(c *outbox.RelayConfig) { c.Groups = 4; c.GroupRows = 1 })
		eventually(t, "the others are sent", func() bool { return len(q.Messages()) == 120 })
		stop()
		for g, ids := range sent(t, q) {
			assert.True(t, slices.IsSorted(ids), g)
		}
	})
}

// One commit marks only messages of a limited total size as possibly sent. These messages
// exceed the limit, so several commits mark them.
func TestBigMessages(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		q := newQueue(t)
		big, err := sqsfifo.NewProducer(q, sqsfifo.Config[map[string]string]{
			QueueURL: q.URL(), Source: "kfm.test.outbox",
			Identify: func(m map[string]string) (sqsfifo.Identity, error) {
				return sqsfifo.Identity{DedupeKey: m["id"], Group: m["group"], Time: time.Unix(1, 0)}, nil
			},
		})
		require.NoError(t, err)
		for g := range 5 {
			var msgs []*sqsfifo.Message
			for i := range 5 {
				m, err := big.Build(map[string]string{"id": fmt.Sprintf("%d-%d", g, i), "group": fmt.Sprint("g", g), "text": strings.Repeat("x", 900_000)})
				require.NoError(t, err)
				msgs = append(msgs, m)
			}
			add(t, box, db, msgs...)
		}
		r, stop := start(t, box, big, func(c *outbox.RelayConfig) { c.Poll = time.Minute })
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		assert.Len(t, q.Messages(), 25)
		assert.Greater(t, r.Stats().Commits, int64(2))
	})
}

// One commit marks three rows of a group as possibly sent, and the send of the first row
// takes long. Another commit then marks the other rows with a later time. Otherwise they
// would become too old for a resend.
func TestASlowMessageDoesNotAgeTheOthers(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t, func(c *outbox.Config) { c.ResendFor = 2 * time.Second })
		q := newQueue(t)
		addMany(t, box, db, "g", 3)
		p := newProducer(t, q, q.URL())
		_, stop := start(t, box, senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			if m.DedupeKey == "g-0000" {
				time.Sleep(700 * time.Millisecond)
			} else {
				from, _ := marked(t, db, "g")
				assert.EqualValues(t, 2, from)
			}
			return p.SendMessage(ctx, m)
		}), func(c *outbox.RelayConfig) { c.Lease = time.Second })
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		assert.Len(t, q.Messages(), 3)
	})
}

// A group with many messages does not starve other groups.
func TestGroupsTakeTurns(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		q := newQueue(t)
		for g := range 8 {
			addMany(t, box, db, fmt.Sprint("g", g), 30)
		}
		_, stop := start(t, box, newProducer(t, q, q.URL()), func(c *outbox.RelayConfig) { c.Groups = 2; c.GroupRows = 1 })
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
		first := map[string]int{}
		for i, m := range q.Messages() {
			if _, seen := first[m.GroupID]; !seen {
				first[m.GroupID] = i
			}
		}
		for g, i := range first {
			assert.Less(t, i, 30, "the first message of %s", g)
		}
	})
}

// A relay has the same number of goroutines for a thousand groups and for one group.
func TestGoroutinesAreBounded(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		box, db := d.box(t)
		const groups = 1000
		var msgs []*sqsfifo.Message
		for g := range groups {
			msgs = append(msgs, build(t, fmt.Sprintf("%04d-0", g), fmt.Sprintf("g%04d", g)), build(t, fmt.Sprintf("%04d-1", g), fmt.Sprintf("g%04d", g)))
		}
		add(t, box, db, msgs...)
		h := &holder{confirms: make(chan func(), groups)}
		before := runtime.NumGoroutine()
		_, stop := start(t, box, h, func(c *outbox.RelayConfig) { c.Groups = groups })
		eventually(t, "all groups are under way", func() bool { return len(h.confirms) == groups })
		assert.Less(t, runtime.NumGoroutine(), before+20)
		for range 2 * groups {
			(<-h.confirms)()
		}
		eventually(t, "the outbox is empty", empty(t, box))
		stop()
	})
}

// holder is a Sender that delays answers. Each send puts a function into the channel
// `confirms`, and the test calls the function to confirm the send.
type holder struct{ confirms chan func() }

func (h *holder) SendMessageAsync(_ context.Context, m *sqsfifo.Message, done func(sqsfifo.Receipt, error)) {
	h.confirms <- func() { done(sqsfifo.Receipt{MessageID: m.DedupeKey, SequenceNumber: "1"}, nil) }
}
