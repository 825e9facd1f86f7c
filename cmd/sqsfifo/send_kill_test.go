package main

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// served is a fake queue with an HTTP server on this machine, like the server of
// "sqsfifo serve".
type served struct {
	queue    *sqstest.Queue
	url      string
	requests atomic.Int64
	delay    time.Duration // pause at the end of each request
}

func startServed(t testing.TB, c sqstest.Config) *served {
	t.Helper()
	q, err := sqstest.NewQueue(c)
	require.NoError(t, err)
	s := &served{queue: q}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	answer := loopbackOnly(sqstest.NewServer(q))
	go func() {
		done <- serveUntilDone(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			answer.ServeHTTP(w, r)
			time.Sleep(s.delay)
		}), defaultTimeouts, listener)
	}()
	t.Cleanup(func() { stop(); assert.NoError(t, <-done) })
	s.url = "http://" + listener.Addr().String() + "/" + sqstest.Account + "/" + q.Name()
	return s
}

// child returns the command sqsfifo, not yet started, as another process. The buffers
// receive its standard output and standard error.
func child(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...) // #nosec G204 -- the program is this test's own binary
	cmd.Env = append(os.Environ(), asCommand+"=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	return cmd, &out, &errs
}

// numbered writes a file of events with the numbers 0, 1, 2 and so on, assigned in turn
// to the groups g0, g1 and so on. It returns the file's name.
func numbered(t testing.TB, events, groups int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "events.jsonl")
	f, err := os.Create(name)
	require.NoError(t, err)
	w := bufio.NewWriter(f)
	for i := range events {
		fmt.Fprintf(w, `{"n":%d,"group":"g%d"}`+"\n", i, i%groups)
	}
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
	return name
}

var numberedFlags = []string{"--source", "acme.test.numbers", "--key", "number|{/n}", "--group", "/group"}

// order returns, for each message group, the field N of its stored events in the order of
// the queue.
func order(t *testing.T, q *sqstest.Queue) map[string][]int {
	t.Helper()
	got := map[string][]int{}
	for _, m := range q.Messages() {
		e, err := sqsfifo.DecodeEnvelope[struct{ N int }](m.Body)
		require.NoError(t, err)
		got[m.GroupID] = append(got[m.GroupID], e.Payload.N)
	}
	return got
}

var allSendKills = flag.Bool("send.all", false, "TestSendKilled with 100,000 events and 20 kills")

// The command is killed repeatedly, and restarted with the same journal and another --time.
// Each event is in the queue once, in group order, because a resend uses the body in the
// journal.
func TestSendKilled(t *testing.T) {
	events, groups, kills := 10_000, 100, 8
	switch {
	case *allSendKills:
		events, groups, kills = 100_000, 500, 20
	case testing.Short():
		events, groups, kills = 2_000, 50, 5
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SQSFIFO_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err)
	}
	t.Logf("SQSFIFO_SEED=%d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	s := startServed(t, sqstest.Config{})
	file := numbered(t, events, groups)
	j := filepath.Join(t.TempDir(), "journal.db")
	run := func(run int) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		at := time.Date(2025, 12, 4, 12, 0, run, 0, time.UTC).Format(time.RFC3339)
		return child(t, append([]string{"send", file, "--queue-url", s.url, "--journal", j, "--time", at}, numberedFlags...)...)
	}

	killed := 0
	for i := range kills {
		before := s.requests.Load()
		cmd, _, errs := run(i)
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		// Some processes are killed before their first request.
		after, least := chance.Int64N(int64(events/kills/6)), time.Duration(chance.IntN(3))*20*time.Millisecond
		time.Sleep(least)
		for s.requests.Load() < before+after && len(ended) == 0 {
			time.Sleep(time.Millisecond)
		}
		_ = cmd.Process.Kill()
		if err := <-ended; err == nil {
			t.Logf("ended before it was killed: %s", errs)
		} else {
			killed++
		}
	}
	t.Logf("killed %d times, %d events stored by then", killed, len(s.queue.Messages()))
	require.Greater(t, killed, kills/2, "the events were sent too early for a test")

	last := func() map[string]int {
		cmd, out, errs := run(kills)
		require.NoError(t, cmd.Run(), "%s", errs)
		t.Logf("%s", errs)
		count := map[string]int{}
		for line := range strings.Lines(out.String()) {
			var r receiptLine
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			count[r.Outcome]++
		}
		return count
	}
	count := last()
	assert.Equal(t, events, count[outcomeStored]+count[outcomeDuplicate]+count[outcomeEarlier], "%v", count)
	assert.NotZero(t, count[outcomeEarlier])
	// Six minutes later, SQS has forgotten the events. Only the journal shows that they were
	// sent.
	s.queue.Advance(6 * time.Minute)
	assert.Equal(t, map[string]int{outcomeEarlier: events}, last())

	got := order(t, s.queue)
	assert.Len(t, got, groups)
	for g := range groups {
		numbers := got["g"+strconv.Itoa(g)]
		require.Len(t, numbers, events/groups, "group %d", g)
		for i, n := range numbers {
			require.Equal(t, g+i*groups, n, "group %d, message %d", g, i)
		}
	}
}

// advance lets time pass for the queue and for the records in the journal.
func (s *served) advance(t *testing.T, journal string, d time.Duration) {
	t.Helper()
	if d == 0 {
		return
	}
	s.queue.Advance(d)
	db, err := sql.Open("sqlite", journal)
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE idempotency_keys SET lease_until = lease_until - ?1, doubt_since = doubt_since - ?1, resend_until = resend_until - ?1, created_at = created_at - ?1`, d.Microseconds())
	require.NoError(t, err)
	_, err = db.Exec(`UPDATE idempotency_meta SET value = value - ? WHERE name = 'clock'`, d.Microseconds())
	require.NoError(t, err)
	require.NoError(t, db.Close())
}

// receiptsOf maps the dedupe keys in the printed receipts to the outcomes.
func receiptsOf(t *testing.T, out []byte) map[string]string {
	t.Helper()
	got := map[string]string{}
	for line := range bytes.Lines(out) {
		var r receiptLine
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the command was killed while it wrote this line
		}
		require.NoError(t, json.Unmarshal(line, &r))
		got[r.DedupeKey] = r.Outcome
	}
	return got
}

// A command is killed. The same command starts again: immediately, or 4 or 20 minutes
// later. If the first run printed the receipt of an event, the second run reports the event
// as already sent. No event is stored twice.
func TestSendKilledReceipts(t *testing.T) {
	events, groups, kills := 3_000, 100, 6
	switch {
	case *allSendKills:
		events, groups, kills = 20_000, 300, 50
	case testing.Short():
		events, groups, kills = 800, 50, 3
	}
	var receipts, unresolved, already int
	for i := range kills {
		later := []time.Duration{0, 4 * time.Minute, 20 * time.Minute}[i%3]
		s := startServed(t, sqstest.Config{})
		file, j := numbered(t, events, groups), filepath.Join(t.TempDir(), "journal.db")
		args := append([]string{"send", file, "--queue-url", s.url, "--journal", j, "--time", "2025-12-04T12:00:00Z"}, numberedFlags...)
		cmd, out, _ := child(t, args...)
		require.NoError(t, cmd.Start())
		// The number is at least 2: the command makes its journal after the first request.
		kill := 2 + rand.Int64N(int64(events/15))
		for s.requests.Load() < kill {
			time.Sleep(time.Millisecond)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		printed := receiptsOf(t, out.Bytes())
		receipts += len(printed)

		s.advance(t, j, later)
		cmd, out, errs := child(t, args...)
		began := time.Now()
		err := cmd.Run()
		took := time.Since(began)
		got := receiptsOf(t, out.Bytes())
		require.Len(t, got, events, "%s", errs)
		count := map[string]int{}
		for key, outcome := range got {
			count[outcome]++
			if _, ok := printed[key]; ok {
				assert.Equal(t, outcomeEarlier, got[key], "%s has a printed receipt, after %v", key, later)
			}
		}
		t.Logf("%d receipts, %v later: %v in %v", len(printed), later, count, took)
		already += count[outcomeEarlier]
		unresolved += count[outcomeUnresolved]
		if later < 5*time.Minute {
			require.NoError(t, err, "%s", errs)
			assert.Zero(t, count[outcomeUnresolved]+count[outcomeHeld])
			assert.Less(t, took, 25*time.Second, "a rerun does not wait for leases")
		}
		stored := map[string]int{}
		for _, m := range s.queue.Messages() {
			stored[sqsfifo.BodyHash(m.Body)]++
		}
		for hash, n := range stored {
			assert.Equal(t, 1, n, hash)
		}
		if i == 0 {
			s.sendAgain(t, j, events, groups)
		}
	}
	t.Logf("%d kills: %d printed receipts, %d already sent, %d unresolved without a receipt", kills, receipts, already, unresolved)
	require.NotZero(t, receipts)
}

// sendAgain sends the events with a Producer of the library in place of the command. The
// command's journal is the producer's store: all events must be duplicates, and the queue
// must get no request.
func (s *served) sendAgain(t *testing.T, journal string, events, groups int) {
	t.Helper()
	j, err := openJournal(t.Context(), journal)
	require.NoError(t, err)
	type event struct {
		N     int    `json:"n"`
		Group string `json:"group"`
	}
	// The command "sqsfifo send" used another URL of the same queue. The journal must
	// recognise the events all the same.
	p, err := sqsfifo.NewProducer(s.queue, sqsfifo.Config[event]{
		QueueURL: s.queue.URL(), Source: "acme.test.numbers", Organization: "acme", Store: sqsfifo.StoreConfig{Store: j.store, TTL: idempotency.Forever},
		Identify: func(e event) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: "number|" + strconv.Itoa(e.N), Group: e.Group, Time: time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)}, nil
		},
	})
	require.NoError(t, err)
	all := make([]event, events)
	for i := range all {
		all[i] = event{i, "g" + strconv.Itoa(i%groups)}
	}
	before, suppressed := len(s.queue.Messages()), len(s.queue.Suppressed())
	for _, r := range p.SendBatch(t.Context(), all) {
		require.NoError(t, r.Err)
		require.True(t, r.Receipt.Duplicate)
	}
	assert.Equal(t, before, len(s.queue.Messages()))
	assert.Equal(t, suppressed, len(s.queue.Suppressed()), "no request was made for any event")
	require.NoError(t, p.Close(t.Context()))
	require.NoError(t, j.Close())
}
