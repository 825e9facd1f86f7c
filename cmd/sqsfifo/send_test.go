package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	sdk "github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// outcomes returns the outcome of each receipt in the command's output, by dedupe key.
func outcomes(t *testing.T, stdout string) map[string]string {
	t.Helper()
	got := map[string]string{}
	for line := range strings.Lines(stdout) {
		var r receiptLine
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		got[r.DedupeKey] = r.Outcome
	}
	return got
}

func writeEvents(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "events.jsonl")
	require.NoError(t, os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return name
}

var letterFlags = []string{"--source", "kfm.a.b", "--key", "/id", "--group", "/g", "--time", "2025-12-04T12:00:00Z"}

// A run was killed six minutes ago, before SQS answered for event b. By default the next run
// reports b as unresolved, and does not send the later event c of the same group. The flag
// --on-failure skip sends c. The flag --resend-unresolved sends b again.
func TestSendUnresolved(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	file := writeEvents(t, `{"id":"a","g":"g"}`, `{"id":"b","g":"g"}`, `{"id":"d","g":"h"}`)
	j := filepath.Join(t.TempDir(), "journal.db")
	send := func(file string, more ...string) (map[string]string, string, int) {
		args := append(append([]string{"send", file, "--queue-url", s.url, "--journal", j}, letterFlags...), more...)
		stdout, stderr, code := shell(t, "", args...)
		return outcomes(t, stdout), stdout + stderr, code
	}
	_, text, code := send(file)
	require.Zero(t, code, text)

	// Bring the journal into the state after a run that was killed six minutes ago,
	// before SQS answered for event b.
	db, err := sql.Open("sqlite", j)
	require.NoError(t, err)
	before := time.Now().Add(-6 * time.Minute).UnixMicro()
	changed, err := db.Exec(`UPDATE idempotency_keys SET status = 'in_progress', token = x'01020304050607080102030405060708',
		lease_until = ?1, doubt_since = ?1, resend_until = ?1 + 275000000, message_id = '', sequence_number = '', response_hash = NULL WHERE key = CAST('b' AS BLOB)`, before)
	require.NoError(t, err)
	n, err := changed.RowsAffected()
	require.NoError(t, err)
	require.Equal(t, int64(1), n)
	require.NoError(t, db.Close())
	s.queue.Advance(6 * time.Minute)

	file = writeEvents(t, `{"id":"a","g":"g"}`, `{"id":"b","g":"g"}`, `{"id":"c","g":"g"}`, `{"id":"d","g":"h"}`, `{"id":"e","g":"h"}`)
	got, text, code := send(file)
	assert.Equal(t, exitFindings, code)
	assert.Equal(t, map[string]string{"a": "already_sent", "b": "unresolved", "c": "held", "d": "already_sent", "e": "stored"}, got)
	assert.Contains(t, text, "--resend-unresolved sends it again")
	assert.Len(t, s.queue.Messages(), 4)

	got, _, code = send(file, "--on-failure", "skip")
	assert.Equal(t, exitFindings, code)
	assert.Equal(t, map[string]string{"a": "already_sent", "b": "unresolved", "c": "stored", "d": "already_sent", "e": "already_sent"}, got)
	assert.Len(t, s.queue.Messages(), 5)

	got, _, code = send(file, "--resend-unresolved")
	assert.Equal(t, exitFine, code)
	assert.Equal(t, map[string]string{"a": "already_sent", "b": "stored", "c": "already_sent", "d": "already_sent", "e": "already_sent"}, got)
	assert.Len(t, s.queue.Messages(), 6, "b is there twice, as was asked for")
}

// If the answer to a request is lost, the command sends again, and the journal has the
// outcome.
func TestSendLostAnswers(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	s.queue.Inject(sqstest.LoseAnswer(), 3)
	stdout, stderr, code := shell(t, "", append([]string{"send", writeEvents(t, `{"id":"a","g":"g"}`, `{"id":"b","g":"g"}`), "--queue-url", s.url}, letterFlags...)...)
	require.Zero(t, code, stderr)
	assert.Len(t, s.queue.Messages(), 2)
	assert.Contains(t, stdout, `"attempts":`)
}

// A second process with the same journal is refused.
func TestSendJournalInUse(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	j := filepath.Join(t.TempDir(), "journal.db")
	args := append([]string{"send", "--queue-url", s.url, "--journal", j}, letterFlags...)
	r, w := io.Pipe()
	first := make(chan int, 1)
	go func() { first <- run(t.Context(), args, stdio{r, io.Discard, io.Discard}) }()
	_, err := io.WriteString(w, `{"id":"a","g":"g"}`+"\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(s.queue.Messages()) == 1 }, 10*time.Second, time.Millisecond)
	_, stderr, code := shell(t, `{"id":"b","g":"g"}`, args...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "is in use by another process")
	require.NoError(t, w.Close())
	assert.Zero(t, <-first)
	_, stderr, code = shell(t, `{"id":"b","g":"g"}`, args...)
	assert.Zero(t, code, stderr)
	assert.Len(t, s.queue.Messages(), 2)
}

// After a signal the command reads no more lines, and does not wait for the end of
// standard input. Events already read get their outcomes.
func TestSendInterrupted(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	ctx, interrupt := context.WithCancel(t.Context())
	r, w := io.Pipe()
	defer w.Close()
	var out, errs strings.Builder
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"send", "--queue-url", s.url, "--grace", "1s"}, letterFlags...), stdio{r, &out, &errs})
	}()
	for _, id := range []string{"a", "b", "c"} {
		_, err := io.WriteString(w, `{"id":"`+id+`","g":"g"}`+"\n")
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return len(s.queue.Messages()) == 3 }, 10*time.Second, time.Millisecond)
	interrupt()
	assert.Equal(t, exitFailed, <-code)
	assert.Equal(t, map[string]string{"a": "stored", "b": "stored", "c": "stored"}, outcomes(t, out.String()))
	assert.Contains(t, errs.String(), "sqsfifo send: interrupted\n")
}

// If the queue does not answer, an interrupted command waits at most for the time of
// --grace, and reports the events in flight.
func TestSendGrace(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	ctx, interrupt := context.WithCancel(t.Context())
	s.queue.Inject(sqstest.LoseAnswer(), 1<<30)
	var out, errs strings.Builder
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"send", "--queue-url", s.url, "--grace", "50ms"}, letterFlags...), stdio{strings.NewReader(`{"id":"a","g":"g"}`), &out, &errs})
	}()
	require.Eventually(t, func() bool { return len(s.queue.Messages()) == 1 }, 10*time.Second, time.Millisecond)
	interrupt()
	assert.Equal(t, exitFailed, <-code)
	assert.Equal(t, map[string]string{"a": "in_doubt"}, outcomes(t, out.String()))
	assert.Contains(t, out.String(), `"resend_before":"`)
}

// The file has more events than fit into the buffer, so the command is usually waiting for
// room when the signal arrives. The command ends as in TestSendGrace, and a second run sends
// the remaining events.
func TestSendGraceWithAFullBuffer(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	ctx, interrupt := context.WithCancel(t.Context())
	s.queue.Inject(sqstest.LoseAnswer(), 1<<30)
	file := numbered(t, 6000, 6000)
	var out, errs strings.Builder
	code := make(chan int, 1)
	j := filepath.Join(t.TempDir(), "journal.db")
	args := append([]string{"send", file, "--queue-url", s.url, "--journal", j, "--grace", "50ms", "--time", "2025-12-04T12:00:00Z"}, numberedFlags...)
	go func() { code <- run(ctx, args, stdio{strings.NewReader(""), &out, &errs}) }()
	require.Eventually(t, func() bool { return len(s.queue.Messages()) > 10 }, 10*time.Second, time.Millisecond)
	time.Sleep(time.Second) // the buffer is usually full by now
	interrupt()
	assert.Equal(t, exitFailed, <-code)
	s.queue.ClearFaults()
	_, stderr, last := shell(t, "", args...)
	assert.Zero(t, last, stderr)
	assert.Len(t, s.queue.Messages(), 6000)
}

// SQS throttles all requests until the command gives up event a. The command does not send
// event b of the same group. A second run sends both events in order.
func TestSendHolds(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	file := writeEvents(t, `{"id":"a","g":"g"}`, `{"id":"b","g":"g"}`, `{"id":"c","g":"h"}`)
	s.queue.Inject(sqstest.Throttle(), 1<<30)
	j := filepath.Join(t.TempDir(), "journal.db")
	args := append([]string{"send", file, "--queue-url", s.url, "--journal", j, "--retry-for", "1ms"}, letterFlags...)
	stdout, stderr, code := shell(t, "", args...)
	assert.Equal(t, exitFindings, code, stderr)
	assert.Equal(t, map[string]string{"a": "not_stored", "b": "held", "c": "not_stored"}, outcomes(t, stdout))
	s.queue.ClearFaults()
	stdout, stderr, code = shell(t, "", args...)
	assert.Zero(t, code, stdout+stderr)
	assert.Equal(t, []string{"a", "b"}, bodiesOf(t, s.queue, "g"))
}

func bodiesOf(t *testing.T, q *sqstest.Queue, group string) []string {
	t.Helper()
	var keys []string
	for _, m := range q.Messages() {
		e, err := sdk.DecodeEnvelope[json.RawMessage](m.Body)
		require.NoError(t, err)
		if m.GroupID == group {
			keys = append(keys, e.DedupeKey)
		}
	}
	return keys
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestSendClosedOutput(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	var errs strings.Builder
	code := run(t.Context(), append([]string{"send", writeEvents(t, `{"id":"a","g":"g"}`), "--queue-url", s.url}, letterFlags...), stdio{strings.NewReader(""), failing{}, &errs})
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs.String(), "standard output: closed; not all receipts were printed")
	assert.Len(t, s.queue.Messages(), 1)
}

// forgetful is an idempotency store whose Finish, which records the result of an event,
// always fails.
type forgetful struct {
	*idempotency.Memory
	err error
}

func (s forgetful) Finish(context.Context, idempotency.Ref, idempotency.Ending) error { return s.err }

// If the journal cannot record the result of an event, the command prints no receipt for
// the event and fails.
func TestSendUnrecorded(t *testing.T) {
	for _, failure := range []error{errors.New("lost"), idempotency.ErrUnwritable} {
		q, err := sqstest.NewQueue(sqstest.Config{})
		require.NoError(t, err)
		queue, err := sdk.NewQueue(q, sdk.QueueConfig{URL: q.URL(), Store: sdk.StoreConfig{Store: forgetful{new(idempotency.Memory), failure}, Timeout: 50 * time.Millisecond}})
		require.NoError(t, err)
		producer, err := newPrebuiltProducer(queue)
		require.NoError(t, err)
		c := &sendCmd{Event: eventFlags{Input: "auto", Source: "kfm.a.b", Key: "/id", Group: "/g", Time: "2025-12-04T12:00:00Z"}, Journal: "j.db"}
		builder, err := input.NewBuilder(queue, c.Event.spec())
		require.NoError(t, err)
		lines, err := input.Open(nil, strings.NewReader(`{"id":"a","g":"g"}`), false)
		require.NoError(t, err)
		var out, errs strings.Builder
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = newSending(producer, queue, lines, builder, stdio{nil, &out, &errs}, c, "").run(ctx)
		require.ErrorContains(t, err, "could not be recorded")
		assert.Empty(t, out.String())
		assert.Len(t, q.Messages(), 1)
	}
}

// A line that comes twice is sent once. The second line is reported as already sent.
func TestSendLineTwice(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	file := writeEvents(t, `{"id":"a","g":"g"}`, `{"id":"a","g":"g"}`, `{"id":"b","g":"g"}`)
	stdout, stderr, code := shell(t, "", append([]string{"send", file, "--queue-url", s.url, "--journal", filepath.Join(t.TempDir(), "j.db")}, letterFlags...)...)
	require.Zero(t, code, stderr)
	var got []string
	for line := range strings.Lines(stdout) {
		var r receiptLine
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		got = append(got, r.DedupeKey+" "+r.Outcome)
	}
	assert.Equal(t, []string{"a stored", "a already_sent", "b stored"}, got)
	assert.Len(t, s.queue.Messages(), 2)
}

// A journal of an earlier version of the command is refused.
func TestSendOldJournal(t *testing.T) {
	s := startServed(t, sqstest.Config{})
	j := filepath.Join(t.TempDir(), "j.db")
	args := append([]string{"send", writeEvents(t, `{"id":"a","g":"g"}`), "--queue-url", s.url, "--journal", j}, letterFlags...)
	_, stderr, code := shell(t, "", args...)
	require.Zero(t, code, stderr)
	db, err := sql.Open("sqlite", j)
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE idempotency_keys SET operation_type = 'sqsfifo.send'`)
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, stderr, code = shell(t, "", args...)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "finish its events with that version, then use a new file")
}

// If standard output is closed, the command ends, even if standard input stays open without
// data.
func TestSendClosedOutputAndOpenInput(t *testing.T) {
	r, w := io.Pipe()
	defer w.Close()
	s := startServed(t, sqstest.Config{})
	code := make(chan int, 1)
	go func() {
		code <- run(t.Context(), append([]string{"send", "--queue-url", s.url}, letterFlags...), stdio{r, failing{}, io.Discard})
	}()
	_, err := io.WriteString(w, `{"id":"a","g":"g"}`+"\n")
	require.NoError(t, err)
	assert.Equal(t, exitFailed, <-code)
	assert.Len(t, s.queue.Messages(), 1)
}

// The receipts of a group are printed in the order of the lines, even if the outcomes
// come in another order.
func TestReceiptsInOrder(t *testing.T) {
	var out strings.Builder
	r := newReceipts(&out, newProgress(io.Discard, 0, true), "")
	slot := func(n int, group string) *slot {
		s, err := r.begin(t.Context(), input.Line{File: "f", Number: n}, &sdk.Message{Group: group})
		require.NoError(t, err)
		return s
	}
	a1, b1, a2, a3, b2 := slot(1, "a"), slot(2, "b"), slot(3, "a"), slot(4, "a"), slot(5, "b")
	printed := func() (lines []int) {
		require.NoError(t, r.out.flush())
		for line := range strings.Lines(out.String()) {
			var l receiptLine
			require.NoError(t, json.Unmarshal([]byte(line), &l))
			lines = append(lines, l.Line)
		}
		return lines
	}
	a3.end(sdk.Receipt{}, nil, false)
	assert.Empty(t, printed())
	b1.end(sdk.Receipt{}, nil, false)
	assert.Equal(t, []int{2}, printed())
	a1.end(sdk.Receipt{}, nil, false)
	assert.Equal(t, []int{2, 1}, printed())
	a2.end(sdk.Receipt{Duplicate: true}, nil, true)
	b2.end(sdk.Receipt{}, nil, false)
	assert.Equal(t, []int{2, 1, 3, 4, 5}, printed())
	assert.Empty(t, r.groups)
	assert.Empty(t, r.unprinted)
	assert.False(t, r.failed())
	slot(6, "c").end(sdk.Receipt{}, &idempotency.UnresolvedError{}, true)
	assert.True(t, r.failed())
}

// The help topic "receipts" describes every outcome of a receipt.
func TestReceiptsTopicIsComplete(t *testing.T) {
	text, err := topicFiles.ReadFile("topics/receipts.txt")
	require.NoError(t, err)
	for _, name := range everyOutcome {
		assert.Regexp(t, `(?m)^  `+name+` +\S`, string(text))
	}
	line, err := json.Marshal(receiptLine{MessageID: "m", SequenceNumber: "1", Attempts: 1, Queue: "q", Drift: true, Overtaken: true, Since: "s", ResendBefore: "r", Error: "e"})
	require.NoError(t, err)
	var members map[string]any
	require.NoError(t, json.Unmarshal(line, &members))
	for name := range members {
		assert.Regexp(t, `(?m)^  (file, )?`+name+`(, line)? +\S`, string(text))
	}
}
