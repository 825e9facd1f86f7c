package replay_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// scanned returns all items, each compared with what Fetch returns for its position.
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
	lines := []replay.Line{
		line(t, "a", "g", deliveredAt(noon), func(l *replay.Line) { l.MessageID, l.Attributes = "m-1", map[string]string{"x": "y"} }),
		line(t, "b", "g", func(l *replay.Line) { l.Body += strings.Repeat(" ", 100_000) }),
	}
	text := append([]byte("\n"), encode(t, lines)...)
	text = append(text, " \n"...)
	plain, err := builder.Build(Event{ID: "c", Group: "h"})
	require.NoError(t, err)
	text = append(text, bytes.TrimSpace(encode(t, []replay.Line{{Message: *plain}}))...) // without an end
	s := replay.NewJSONLines("x", bytes.NewReader(text), int64(len(text)))
	got := scanned(t, s)
	require.Len(t, got, 3)
	assert.Equal(t, lines[0].Message, *got[0].Message)
	assert.Equal(t, replay.Item{Position: "1", Message: got[0].Message, BodyHash: lines[0].BodyHash, Status: replay.Delivered, Sent: lines[0].Sent, MessageID: "m-1"}, got[0])
	assert.Equal(t, plain, got[2].Message)
	assert.Equal(t, replay.Unknown, got[2].Status)

	gone, err := s.Fetch(t.Context(), []string{"999999999"})
	require.NoError(t, err)
	assert.Equal(t, []replay.Item{{Position: "999999999"}}, gone)
	for _, bad := range []string{"", "-1", "x"} {
		_, err = s.Fetch(t.Context(), []string{bad})
		require.ErrorContains(t, err, "not a position")
	}
	endless := strings.NewReader(strings.Repeat("x", 9<<20))
	for _, err := range replay.NewJSONLines("x", endless, 9<<20).Scan(t.Context()) {
		require.ErrorContains(t, err, "longer than")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range s.Scan(ctx) {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// What a file of plain messages means is for its owner to say.
func TestAssume(t *testing.T) {
	plain := func(l *replay.Line) { l.Status = replay.Unknown }
	lines := []replay.Line{line(t, "a", "g", plain), line(t, "b", "g", deliveredAt(noon.Add(-time.Hour)))}
	for want, s := range map[string]replay.Source{
		"a edge skip window":       sourceOf(t, lines...),
		"a new send":               sourceOf(t, lines...).Assume(replay.Pending, replay.Sent{}),
		"a outside send":           sourceOf(t, lines...).Assume(replay.Unknown, replay.Sent{To: noon.Add(-time.Hour)}),
		"a edge skip delivered":    sourceOf(t, lines...).Assume(replay.Delivered, replay.Sent{To: noon.Add(-time.Minute)}),
		"a outside skip delivered": sourceOf(t, lines...).Assume(replay.Delivered, replay.Sent{To: noon.Add(-time.Hour)}),
	} {
		assert.Equal(t, []string{want, "b outside skip delivered"}, actions(newPlan(t, s, replay.Options{}, noon)))
		got := scanned(t, s)
		assert.Equal(t, replay.Delivered, got[1].Status)
	}
}

// What a store has of each state, in the order of the claims.
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
			Fingerprint: idempotency.FingerprintOf("test/1", []byte(m.Body)), Seal: idempotency.SealOf([]byte(m.Body), group), Group: group, Body: []byte(m.Body),
			Terms:   idempotency.Terms{Lease: time.Minute, TTL: time.Hour, ResendFor: time.Minute},
			Dataset: idempotency.Dataset{ID: "storms", Version: "v1.0.0"},
		})
		require.NoError(t, err)
		if settle != nil {
			require.NoError(t, settle(out.Ref()))
		}
	}
	claim("z", "g", func(r idempotency.Ref) error {
		return store.Complete(t.Context(), r, idempotency.Result{MessageID: "m-1"})
	})
	claim("y", "g", nil)
	claim("x", "h", func(r idempotency.Ref) error {
		return store.Fail(t.Context(), r, idempotency.Failure{Proof: idempotency.ProvenForAll})
	})
	claim("w", "g", func(r idempotency.Ref) error { return store.Release(t.Context(), r) })
	s := replay.NewStore("the store", store, idempotency.Filter{})
	got := scanned(t, s)
	require.Len(t, got, 3)
	begun := noon.Add(time.Second)
	for i, want := range []struct {
		key     string
		status  replay.Status
		message string
		sent    replay.Sent
	}{
		{"z", replay.Delivered, "m-1", replay.Sent{From: begun, To: begun.Add(time.Minute)}},
		{"y", replay.InDoubt, "", replay.Sent{From: begun.Add(time.Second), To: begun.Add(time.Second + time.Minute)}},
		{"x", replay.Pending, "", replay.Sent{}},
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
	// What was completed since the plan was made is not sent.
	records, err := store.Lookup(t.Context(), idempotency.Key{Scope: "s\xff", Operation: "send", Value: "y"})
	require.NoError(t, err)
	require.NoError(t, store.Complete(t.Context(), idempotency.Ref{Key: records[0].Key, Fence: records[0].Fence}, idempotency.Result{}))
	report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Now: clock})
	assert.Equal(t, 1, report.Sent)
	assert.Equal(t, map[string]int{replay.ReasonDelivered: 2}, report.SkippedFor)
	assert.Equal(t, map[string][]string{"h": {"x"}}, sent(t, q))

	filtered := scanned(t, replay.NewStore("the store", store, idempotency.Filter{Statuses: []idempotency.Status{idempotency.Failed}}))
	require.Len(t, filtered, 1)
	for _, bad := range []string{"", "a.b", "!.b.c"} {
		_, err := s.Fetch(t.Context(), []string{bad})
		require.ErrorContains(t, err, "not a position")
	}
	empty, err := s.Fetch(t.Context(), nil)
	require.NoError(t, err)
	assert.Empty(t, empty)
}

// Records of a producer and the bodies that somebody kept make a replay of what did not
// get through.
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
	s := replay.NewProvenance("ledger", replay.ProvenanceLines(bytes.NewReader(ledger.Bytes()), int64(ledger.Len())), replay.MapBodies(bodies))
	got := scanned(t, s)
	require.Len(t, got, 5)
	for i, status := range []replay.Status{replay.Delivered, replay.Delivered, replay.Pending, replay.Delivered, replay.Pending} {
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

	bad := replay.NewProvenance("ledger", replay.ProvenanceLines(strings.NewReader("{\n"), 2), replay.MapBodies(nil))
	for _, err := range bad.Scan(t.Context()) {
		require.ErrorContains(t, err, "line 1")
	}
	_, err := s.Fetch(t.Context(), []string{"x"})
	require.ErrorContains(t, err, "not a position")
}

// What SQS answers with the ID of the original was suppressed, although this process
// never saw it.
func TestSuppressed(t *testing.T) {
	q := newQueue(t)
	p := newProducer(t, q, q.URL())
	first, err := p.Send(t.Context(), Event{ID: "a", Group: "g"})
	require.NoError(t, err)
	s := sourceOf(t, line(t, "a", "g", deliveredAt(time.Now()), func(l *replay.Line) { l.MessageID = first.MessageID }))
	plan := newPlan(t, s, replay.Options{Redeliver: true, Window: replay.WindowSend}, time.Now())
	report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL())})
	assert.Equal(t, 1, report.Suppressed)
	assert.Len(t, q.Messages(), 1)
}
