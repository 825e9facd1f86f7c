package journal_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/journal"
)

const queueURL = "https://sqs.eu-central-1.amazonaws.com/1/events.fifo"

func open(t *testing.T, path string) journal.Journal {
	t.Helper()
	j, err := journal.Open(t.Context(), path, queueURL, false)
	require.NoError(t, err)
	return j
}

func message(key, payload string, minute int) *sqsfifo.Message {
	at := time.Date(2025, 12, 4, 12, minute, 0, 0, time.UTC)
	id := sqsfifo.DeriveEventID("kfm.a.b", key, at)
	return &sqsfifo.Message{Group: "g", DedupeKey: key, EventID: id, Body: fmt.Sprintf(
		`{"dedupe_key":%q,"event_id":%q,"event_source":"kfm.a.b","event_time":%q,"payload":%s}`, key, id, at.Format(time.RFC3339), payload)}
}

func claim(t *testing.T, j journal.Journal, m *sqsfifo.Message) journal.Entry {
	t.Helper()
	entries, err := j.Claim(t.Context(), []*sqsfifo.Message{m})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	return entries[0]
}

func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b?#%.db") // a name that is no URI
	first, drifted, other := message("k", `{"n":1}`, 0), message("k", `{"n":1}`, 1), message("k", `{"n":2}`, 0)
	receipt := sqsfifo.Receipt{MessageID: "m", SequenceNumber: "7"}

	// Claimed, and the process ends.
	j := open(t, path)
	e := claim(t, j, first)
	assert.Equal(t, journal.Send, e.Verdict)
	assert.Zero(t, e.ResendBefore, "nobody has sent it")
	_, err := journal.Open(t.Context(), path, queueURL, false)
	var inUse *journal.InUseError
	require.ErrorAs(t, err, &inUse)
	require.NoError(t, j.Close())

	// The next one gets the bytes of the first, until it is too late.
	j = open(t, path)
	time.Sleep(2 * time.Millisecond) // the lease, which is nobody's
	e = claim(t, j, drifted)
	assert.Equal(t, journal.Send, e.Verdict)
	assert.True(t, e.Drift)
	assert.Equal(t, first, e.Message)
	assert.WithinDuration(t, time.Now().Add(journal.ResendFor), e.ResendBefore, time.Minute)
	conflict := claim(t, j, other)
	assert.Equal(t, journal.Conflict, conflict.Verdict)

	// It does not know: the next one still has to send it.
	require.NoError(t, j.Settle(t.Context(), e, sqsfifo.Receipt{}, &sqsfifo.InDoubtError{}))
	require.NoError(t, j.Close())
	j = open(t, path)
	e = claim(t, j, first)
	assert.Equal(t, journal.Send, e.Verdict)
	assert.False(t, e.ResendBefore.IsZero())
	// This attempt has surely failed, and the one before it may not have.
	require.NoError(t, j.Settle(t.Context(), e, sqsfifo.Receipt{}, &sqsfifo.NotStoredError{}))
	e = claim(t, j, first)
	assert.Equal(t, journal.Send, e.Verdict)
	assert.False(t, e.ResendBefore.IsZero())
	// Proof.
	require.NoError(t, j.Settle(t.Context(), e, receipt, nil))
	require.NoError(t, j.Settle(t.Context(), e, sqsfifo.Receipt{Duplicate: true}, nil), "the same event on another line")
	e = claim(t, j, drifted)
	assert.Equal(t, journal.Sent, e.Verdict)
	assert.Equal(t, []string{"m", "7"}, []string{e.MessageID, e.SequenceNumber})
	assert.Equal(t, first.EventID, e.Message.EventID)
	assert.Equal(t, journal.Conflict, claim(t, j, other).Verdict)

	// Surely not stored: a new event, with new bytes.
	failed := claim(t, j, message("f", `{}`, 0))
	require.NoError(t, j.Settle(t.Context(), failed, sqsfifo.Receipt{}, &sqsfifo.NotStoredError{}))
	again := claim(t, j, message("f", `{}`, 1))
	assert.Equal(t, journal.Send, again.Verdict)
	assert.Zero(t, again.ResendBefore)
	assert.Contains(t, again.Message.Body, "12:01:00Z")
	require.NoError(t, j.Close())
}

// A batch of which two lines have one event.
func TestBatch(t *testing.T) {
	j := open(t, filepath.Join(t.TempDir(), "j.db"))
	var messages []*sqsfifo.Message
	for i := range journal.MaxBatch {
		messages = append(messages, message(fmt.Sprint(i%60), `{}`, 0))
	}
	entries, err := j.Claim(t.Context(), messages)
	require.NoError(t, err)
	for i, e := range entries {
		assert.Equal(t, journal.Send, e.Verdict)
		assert.Equal(t, messages[i], e.Message)
		assert.True(t, e.ResendBefore.IsZero(), "this run itself has it")
	}
	_, err = j.Claim(t.Context(), append(messages, messages[0]))
	require.Error(t, err, "a batch that is too large")
	_, err = j.Claim(t.Context(), []*sqsfifo.Message{{DedupeKey: "k", EventID: uuid.Nil, Body: "no JSON"}})
	require.Error(t, err)
	require.NoError(t, j.Close())
}
