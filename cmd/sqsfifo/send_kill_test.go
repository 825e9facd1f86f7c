package main

import (
	"bufio"
	"bytes"
	"context"
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
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// served is a queue behind the handler of the command serve.
type served struct {
	queue    *sqstest.Queue
	url      string
	requests atomic.Int64
	delay    time.Duration // of each answer
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
		done <- serveUntilDone(ctx, listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.requests.Add(1)
			answer.ServeHTTP(w, r)
			time.Sleep(s.delay)
		}), defaultTimeouts)
	}()
	t.Cleanup(func() { stop(); assert.NoError(t, <-done) })
	s.url = "http://" + listener.Addr().String() + "/" + sqstest.Account + "/" + q.Name()
	return s
}

// child runs the command in a process of its own.
func child(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...) // #nosec G204 -- this test
	cmd.Env = append(os.Environ(), asCommand+"=1")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	return cmd, &out, &errs
}

// numbered writes so many events, one after the other in so many groups.
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

var numberedFlags = []string{"--source", "acme.test.numbers", "--organization", "acme", "--key", "number|{/n}", "--group", "/group"}

// order returns the numbers that a queue stored, by group.
func order(t *testing.T, q *sqstest.Queue) map[string][]int {
	t.Helper()
	got := map[string][]int{}
	for _, m := range q.Messages() {
		e, err := sqsfifo.Decoder[struct{ N int }]{Organization: "acme"}.Decode(m.Body)
		require.NoError(t, err)
		got[m.GroupID] = append(got[m.GroupID], e.Payload.N)
	}
	return got
}

var allSendKills = flag.Bool("send.all", false, "TestSendKilled with 100,000 events and 20 kills")

// The command is killed while it sends, again and again, and started again with the
// same journal: each event is in the queue once, in the order of its group. The source
// is not stable, each run builds other bytes; what SQS recognises are the stored ones.
// Six minutes later, when SQS has forgotten all, the journal has not.
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
		// Some are killed before they send anything.
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
