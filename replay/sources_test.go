package replay_test

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// scanned returns all items, and compares each with the result of Fetch for its position.
func scanned(t *testing.T, s replay.Source) (out []replay.Item) {
	t.Helper()
	var positions []string
	for it, err := range s.Scan(t.Context()) {
		require.NoError(t, err)
		out = append(out, it)
		positions = append(positions, it.Position)
	}
	fetched, err := s.Fetch(t.Context(), positions)
	require.NoError(t, err)
	require.Len(t, fetched, len(out))
	for i := range out {
		assert.Equal(t, out[i].Message, fetched[i].Message)
		assert.Equal(t, out[i].Position, fetched[i].Position)
	}
	return out
}

func TestJSONLines(t *testing.T) {
	lines := []replay.MessageLine{
		line(t, "a", "g", deliveredAt(noon), func(l *replay.MessageLine) { l.MessageID, l.Attributes = "m-1", map[string]string{"x": "y"} }),
		line(t, "b", "g", func(l *replay.MessageLine) { l.Body += strings.Repeat(" ", 100_000) }),
	}
	text := append([]byte("\n"), encode(t, lines)...)
	text = append(text, " \n"...)
	plain, err := builder.Build(Event{ID: "c", Group: "h"})
	require.NoError(t, err)
	text = append(text, bytes.TrimSpace(encode(t, []replay.MessageLine{{Message: *plain}}))...) // the last line has no line break
	s := replay.NewJSONLines("x", bytes.NewReader(text), int64(len(text)))
	got := scanned(t, s)
	require.Len(t, got, 3)
	assert.Equal(t, lines[0].Message, *got[0].Message)
	assert.Equal(t, replay.Item{Position: "1", Message: got[0].Message, BodyHash: lines[0].BodyHash, Status: replay.StatusDelivered, Sent: lines[0].Sent, MessageID: "m-1"}, got[0])
	assert.Equal(t, plain, got[2].Message)
	assert.Equal(t, replay.StatusUnknown, got[2].Status)

	gone, err := s.Fetch(t.Context(), []string{"999999999"})
	require.NoError(t, err)
	assert.Equal(t, []replay.Item{{Position: "999999999"}}, gone)
	for _, bad := range []string{"", "-1", "x"} {
		_, err = s.Fetch(t.Context(), []string{bad})
		require.ErrorContains(t, err, "not a position")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Scan(ctx) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// A line over 8 MiB makes one unusable item. The lines before and after it are read.
func TestLongLine(t *testing.T) {
	first, last := encode(t, []replay.MessageLine{line(t, "a", "g")}), encode(t, []replay.MessageLine{line(t, "b", "g")})
	text := append(append(bytes.Clone(first), strings.Repeat("x", 9<<20)+"\n"...), last...)
	got := scanned(t, replay.NewJSONLines("x", bytes.NewReader(text), int64(len(text))))
	require.Len(t, got, 3)
	assert.NotNil(t, got[0].Message)
	assert.Nil(t, got[1].Message)
	require.ErrorContains(t, got[1].Err, "longer than 8388608 bytes")
	assert.Equal(t, strconv.Itoa(len(first)), got[1].Position)
	assert.NotNil(t, got[2].Message)
	assert.Equal(t, strconv.Itoa(len(text)-len(last)), got[2].Position)

	plan, err := replay.NewPlan(t.Context(), replay.NewJSONLines("x", bytes.NewReader(text), int64(len(text))), replay.Options{}, noon)
	require.NoError(t, err)
	assert.Len(t, plan.Items, 3)

	// Now the first line is too long. Unlike other invalid first lines, it does not end
	// the scan.
	text = text[len(first):]
	assert.Len(t, scanned(t, replay.NewJSONLines("x", bytes.NewReader(text), int64(len(text)))), 2)
}

// All functions that read lines refuse the same lines.
func TestLinesAreStrict(t *testing.T) {
	good := string(bytes.TrimSpace(encode(t, []replay.MessageLine{line(t, "a", "g")})))
	for text, says := range map[string]string{
		`{"group":"g","body":"a","body":"b"}`:           "duplicate member name",
		good[:len(good)-1] + `,"statsu":"pending"}`:     `unknown member "statsu"`,
		good[:len(good)-1] + `,"deduplication_id":"x"}`: "deduplication_id: not a member of a message to send",
		good + good: "trailing data",
	} {
		text = good + "\n" + text
		got := scanned(t, replay.NewJSONLines("x", strings.NewReader(text), int64(len(text))))
		require.Len(t, got, 2, text)
		require.ErrorContains(t, got[1].Err, says)
	}
}

// A file of plain messages does not say whether and when they were sent, unless its lines do.
func TestPlainLines(t *testing.T) {
	sentBefore := func(s replay.Status, before time.Duration) func(*replay.MessageLine) {
		return func(l *replay.MessageLine) {
			l.Status, l.Sent = s, replay.SentBetween{To: noon.Add(-before)}
		}
	}
	for want, change := range map[string]func(*replay.MessageLine){
		"a edge skip window":       func(l *replay.MessageLine) { l.Status = replay.StatusUnknown },
		"a new send":               func(*replay.MessageLine) {},
		"a outside send":           sentBefore(replay.StatusUnknown, time.Hour),
		"a edge skip delivered":    sentBefore(replay.StatusDelivered, time.Minute),
		"a outside skip delivered": sentBefore(replay.StatusDelivered, time.Hour),
	} {
		assert.Equal(t, []string{want}, actions(newPlan(t, sourceOf(t, line(t, "a", "g", change)), replay.Options{}, noon)))
	}
}

// A store has records in each state. The items come in the order in which the records
// were claimed.
func TestStoreSource(t *testing.T) {
	now := noon
	store := &idempotency.Memory{Now: func() time.Time { return now }}
	claim := func(id, group string, settle func(idempotency.Ref) error) {
		t.Helper()
		now = now.Add(time.Second)
		m, err := builder.Build(Event{ID: id, Group: group})
		require.NoError(t, err)
		out, err := store.Claim(t.Context(), idempotency.Claim{
			Key: idempotency.Key{Scope: "s\xff", Operation: "send", Value: id}, Token: idempotency.NewToken(),
			Fingerprint: idempotency.FingerprintOf("test/1", []byte(m.Body)), ExactHash: idempotency.ExactHashOf([]byte(m.Body), group), Group: group, Body: []byte(m.Body),
			Terms:   idempotency.Terms{Lease: time.Minute, TTL: time.Hour, ResendFor: time.Minute},
			Dataset: idempotency.Dataset{ID: "storms", Version: "v1.0.0"},
		})
		require.NoError(t, err)
		if settle != nil {
			require.NoError(t, settle(out.Ref()))
		}
	}
	claim("z", "g", func(r idempotency.Ref) error {
		return store.Finish(t.Context(), r, idempotency.Completed(idempotency.Result{MessageID: "m-1"}))
	})
	claim("y", "g", nil)
	claim("x", "h", func(r idempotency.Ref) error {
		return store.Finish(t.Context(), r, idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll}))
	})
	claim("w", "g", func(r idempotency.Ref) error { return store.Finish(t.Context(), r, idempotency.Released()) })
	s := replay.NewStore("the store", store, idempotency.Filter{})
	got := scanned(t, s)
	require.Len(t, got, 3)
	begun := noon.Add(time.Second)
	for i, want := range []struct {
		key     string
		status  replay.Status
		message string
		sent    replay.SentBetween
	}{
		{"z", replay.StatusDelivered, "m-1", replay.SentBetween{From: begun, To: begun.Add(time.Minute)}},
		{"y", replay.StatusInDoubt, "", replay.SentBetween{From: begun.Add(time.Second), To: begun.Add(time.Second + time.Minute)}},
		{"x", replay.StatusPending, "", replay.SentBetween{}},
	} {
		it := got[i]
		require.NoError(t, it.Err)
		assert.Equal(t, want.key, it.Message.DedupeKey)
		assert.Equal(t, "storms", it.Message.Dataset.ID)
		assert.Equal(t, want.status, it.Status, want.key)
		assert.Equal(t, want.message, it.MessageID)
		assert.True(t, want.sent.From.Equal(it.Sent.From) && want.sent.To.Equal(it.Sent.To), "%s %v", want.key, it.Sent)
	}

	plan := newPlan(t, s, replay.Options{}, now)
	assert.Equal(t, []string{"z inside skip delivered", "y inside send", "x new send"}, actions(plan))
	q := newQueue(t)
	clock := func() time.Time { return now }
	// Operation "y" is completed after the plan was made. The run finds its record and
	// does not send the item.
	records, err := store.Lookup(t.Context(), idempotency.Key{Scope: "s\xff", Operation: "send", Value: "y"})
	require.NoError(t, err)
	require.NoError(t, store.Finish(t.Context(), idempotency.Ref{Key: records[0].Key, Fence: records[0].Fence}, idempotency.Completed(idempotency.Result{})))
	report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Now: clock})
	assert.Equal(t, 1, report.Sent)
	assert.Equal(t, map[string]int{"delivered": 2}, report.SkippedFor)
	assert.Equal(t, map[string][]string{"h": {"x"}}, sent(t, q))

	filtered := scanned(t, replay.NewStore("the store", store, idempotency.Filter{Statuses: []idempotency.Status{idempotency.StatusFailed}}))
	require.Len(t, filtered, 1)
	for _, bad := range []string{"", "a.b", "!.b.c"} {
		_, err := s.Fetch(t.Context(), []string{bad})
		require.ErrorContains(t, err, "not a position")
	}
	empty, err := s.Fetch(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, empty)
}

// Several records of a message make one item. A run skips stored messages, even without a
// body. It reports another message without a body as drift. It sends the message with the ID
// "refused", because its first send did not reach SQS.
func TestProvenanceSource(t *testing.T) {
	q := newQueue(t)
	var ledger bytes.Buffer
	bodies := map[string]string{}
	p := newProducer(t, q, q.URL(), func(c *sqsfifo.Config[Event]) {
		c.Telemetry.Provenance = sqsfifo.ProvenanceWriter(&ledger)
		c.Identify = func(e Event) (sqsfifo.Identity, error) {
			if e.ID == "never" {
				return sqsfifo.Identity{}, errors.New("no identity")
			}
			return sqsfifo.Identity{DedupeKey: e.ID, Group: e.Group, Time: noon}, nil
		}
	})
	for _, id := range []string{"a", "b", "a", "refused", "lost", "never"} {
		if id == "refused" {
			m, err := p.Build(Event{ID: id, Group: "g"})
			require.NoError(t, err)
			bodies[sqsfifo.BodyHash(m.Body)] = m.Body
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = p.SendMessage(ctx, m)
			require.Error(t, err)
			continue
		}
		m, err := p.Build(Event{ID: id, Group: "g"})
		if err == nil && id != "lost" {
			bodies[sqsfifo.BodyHash(m.Body)] = m.Body
		}
		_, _ = p.Send(t.Context(), Event{ID: id, Group: "g"})
	}
	require.NoError(t, p.Close(t.Context()))
	ledger.WriteString(`{"time":"2026-`) // cut off
	s := replay.NewProvenance("ledger", replay.ProvenanceLines(bytes.NewReader(ledger.Bytes()), int64(ledger.Len())), mapBodies(bodies))
	got := scanned(t, s)
	require.Len(t, got, 5)
	for i, status := range []replay.Status{replay.StatusDelivered, replay.StatusDelivered, replay.StatusPending, replay.StatusDelivered, replay.StatusPending} {
		assert.Equal(t, status, got[i].Status, "%d", i)
	}
	assert.Equal(t, q.Messages()[0].MessageID, got[0].MessageID)
	require.ErrorContains(t, got[3].Err, "no body with the recorded hash")
	require.ErrorContains(t, got[4].Err, "never had a body")

	plan := newPlan(t, s, replay.Options{}, time.Now())
	assert.Equal(t, map[string][]string{"g": {"refused"}}, planned(plan, replay.ActionSend))
	report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL())})
	assert.Equal(t, []int{1, 3, 1}, []int{report.Sent, report.Skipped, report.Drift})
	assert.Equal(t, []string{"a", "b", "lost", "refused"}, sent(t, q)["g"])

	bad := replay.NewProvenance("ledger", replay.ProvenanceLines(strings.NewReader("{\n"), 2), mapBodies(nil))
	for _, err := range bad.Scan(t.Context()) {
		require.ErrorContains(t, err, "line 1")
	}
	_, err := s.Fetch(t.Context(), []string{"x"})
	require.ErrorContains(t, err, "not a position")
}

// If SQS answers with the original's message ID, the item counts as suppressed, although
// this process did not send the original.
func TestSuppressed(t *testing.T) {
	q := newQueue(t)
	p := newProducer(t, q, q.URL())
	first, err := p.Send(t.Context(), Event{ID: "a", Group: "g"})
	require.NoError(t, err)
	s := sourceOf(t, line(t, "a", "g", deliveredAt(time.Now()), func(l *replay.MessageLine) { l.MessageID = first.MessageID }))
	plan := newPlan(t, s, replay.Options{Redeliver: true, Window: replay.WindowSend}, time.Now())
	report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL())})
	assert.Equal(t, 1, report.Suppressed)
	assert.Len(t, q.Messages(), 1)
}

func mapBodies(m map[string]string) replay.FindBody {
	return func(_ context.Context, hash string) (string, bool, error) {
		body, ok := m[hash]
		return body, ok, nil
	}
}
