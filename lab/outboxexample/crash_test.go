package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	example "github.com/kansas-frontier-matrix/sqsfifo/examples/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

const (
	childDatabase = "OUTBOX_TEST_DATABASE"
	childEndpoint = "OUTBOX_TEST_ENDPOINT"
	childQueue    = "OUTBOX_TEST_QUEUE"
)

// TestSendForTheParentProcess is the program of a child process, which
// TestKilledWhileSending starts. The child runs a relay until the outbox is empty.
func TestSendForTheParentProcess(t *testing.T) {
	path := os.Getenv(childDatabase)
	if path == "" {
		t.Skip("runs as a child of TestKilledWhileSending")
	}
	db, err := open(t.Context(), path)
	require.NoError(t, err)
	defer db.Close()
	// The previous child was killed, so its lease can end now. A relay in production waits
	// until the lease expires.
	_, err = db.Exec(`UPDATE outbox_leader SET lease_until = 0`)
	require.NoError(t, err)
	box, err := outbox.Open(t.Context(), outbox.Config{DB: db, Dialect: outbox.SQLite})
	require.NoError(t, err)
	client := sqs.New(sqs.Options{
		BaseEndpoint: aws.String(os.Getenv(childEndpoint)), Region: sqstest.Region,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	producer, err := example.NewProducer(client, os.Getenv(childQueue))
	require.NoError(t, err)
	require.NoError(t, example.Relay(t.Context(), box, producer, example.IsEmpty(t.Context(), box)))
	require.NoError(t, producer.Close(t.Context()))
}

// A sending process is killed fifty times: before SQS stores a message, before the answer,
// or soon after the answer. Afterwards the queue has each message once, in group order,
// byte for byte.
func TestKilledWhileSending(t *testing.T) {
	kills, seed := 50, rand.Uint64()
	if testing.Short() {
		kills = 9
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	total, suppressed := map[moment]int{}, 0
	for i := 0; kills > 0; i++ {
		o := newOutboxOfMany(t, rng)
		for m, n := range o.killWhileSending(t, rng, min(kills, 15)) {
			kills -= n
			total[m] += n
		}
		o.check(t)
		suppressed += len(o.queue.Suppressed())
	}
	t.Logf("kills: %v; SQS recognised %d messages that were sent again", total, suppressed)
	assert.Positive(t, suppressed)
	for m := range moments {
		assert.Positive(t, total[m], "no kill %v", m)
	}
}

// moment says when the process is killed, relative to the chosen send request.
type moment int

const (
	beforeStored moment = iota
	beforeAnswered
	afterAnswered
	moments
)

func (m moment) String() string {
	return [...]string{"before SQS stored", "before SQS answered", "after SQS answered"}[m]
}

// manyEvents is an outbox with many events in a SQLite file, and the queue that gets the
// events.
type manyEvents struct {
	path  string
	queue *sqstest.Queue
	built []*sqsfifo.Message
}

func newOutboxOfMany(t *testing.T, rng *rand.Rand) *manyEvents {
	t.Helper()
	const events, groups = 300, 10
	o := &manyEvents{path: filepath.Join(t.TempDir(), "events.db")}
	var err error
	o.queue, err = sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	o.queue.InjectRandomly(sqstest.LoseAnswer(), 0.02, rng.Uint64())
	o.queue.InjectRandomly(sqstest.Throttle(), 0.01, rng.Uint64())
	service := func(i int, _ types.SendMessageBatchRequestEntry) bool { return i%3 == 0 }
	o.queue.InjectRandomly(sqstest.FailEntries("InternalError", smithy.FaultServer, service), 0.02, rng.Uint64())

	db, err := open(t.Context(), o.path)
	require.NoError(t, err)
	defer db.Close()
	box, err := outbox.Open(t.Context(), outbox.Config{DB: db, Dialect: outbox.SQLite})
	require.NoError(t, err)
	producer, err := example.NewProducer(o.queue, o.queue.URL())
	require.NoError(t, err)
	tx, err := db.Begin()
	require.NoError(t, err)
	for i := range events {
		s := example.Scene{ID: fmt.Sprintf("scene-%03d-<&>", i), PathRow: fmt.Sprintf("%03d", rng.IntN(groups)), Acquired: time.Date(2025, 12, 4, 0, 0, i, 0, time.UTC)}
		msg, err := producer.Build(s)
		require.NoError(t, err)
		require.NoError(t, box.Add(t.Context(), tx, msg))
		o.built = append(o.built, msg)
	}
	require.NoError(t, tx.Commit())
	return o
}

// killWhileSending starts one sending process after the other and kills at most atMost of
// them. It returns when a process has emptied the outbox.
func (o *manyEvents) killWhileSending(t *testing.T, rng *rand.Rand, atMost int) map[moment]int {
	t.Helper()
	front := &killingServer{queues: sqstest.NewServer(o.queue)}
	server := httptest.NewServer(front)
	defer server.Close()
	kills := map[moment]int{}
	for n := 0; ; n++ {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSendForTheParentProcess$", "-test.v")
		child.Env = append(os.Environ(), childDatabase+"="+o.path, childEndpoint+"="+server.URL, childQueue+"="+o.queue.URL())
		var out bytes.Buffer
		child.Stdout, child.Stderr = &out, &out
		when := moment(n % int(moments))
		untilKill := -1
		if n < atMost {
			untilKill = 1 + rng.IntN(6)
		}
		front.startChild(untilKill, when, time.Duration(rng.IntN(3000))*time.Microsecond, child)
		err := child.Wait()
		if front.cancelKill() {
			kills[when]++
			continue
		}
		require.NoError(t, err, out.String())
		require.Contains(t, out.String(), "--- PASS: TestSendForTheParentProcess")
		return kills
	}
}

// killingServer serves the queue over HTTP. It kills the child process during a chosen send
// request.
type killingServer struct {
	queues http.Handler

	mu        sync.Mutex
	untilKill int // number of send requests until the kill; negative for no kill
	when      moment
	delay     time.Duration // time between the answer and the kill, for afterAnswered
	child     *exec.Cmd
	hit       bool
}

// startChild starts a child. The parameter untilKill chooses one of its send requests,
// counted from 1. The server will kill the child during this request or shortly
// afterwards: see the type `moment`. If untilKill is negative, the server does not kill
// the child.
func (d *killingServer) startChild(untilKill int, when moment, delay time.Duration, child *exec.Cmd) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.untilKill, d.when, d.delay, d.child, d.hit = untilKill, when, delay, child, false
	if err := child.Start(); err != nil {
		panic(err)
	}
}

// cancelKill makes sure that no later request kills the child. It reports whether the child
// was killed.
func (d *killingServer) cancelKill() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.untilKill = -1
	return d.hit
}

func (d *killingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch die, when := d.dies(r); {
	case !die:
		d.queues.ServeHTTP(w, r)
	case when == beforeStored:
		d.kill()
		panic(http.ErrAbortHandler)
	case when == beforeAnswered:
		d.queues.ServeHTTP(httptest.NewRecorder(), r)
		d.kill()
		panic(http.ErrAbortHandler)
	default:
		// The kill comes at a random time, for example while the process removes the row.
		defer time.AfterFunc(d.delay, d.kill)
		d.queues.ServeHTTP(w, r)
	}
}

func (d *killingServer) dies(r *http.Request) (bool, moment) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.SendMessage") {
		return false, 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.untilKill--
	return d.untilKill == 0, d.when
}

// kill sends SIGKILL to the child. The child may already have ended.
func (d *killingServer) kill() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.child.Process.Kill(); err == nil {
		d.hit = true
	} else if !errors.Is(err, os.ErrProcessDone) {
		panic(err)
	}
}

func (o *manyEvents) check(t *testing.T) {
	t.Helper()
	want, got := map[string][]string{}, map[string][]string{}
	line := func(body string, pathRow string) string { return body + " path_row=" + pathRow }
	for _, m := range o.built {
		want[m.Group] = append(want[m.Group], line(m.Body, m.Attributes["path_row"]))
	}
	for _, m := range o.queue.Messages() {
		assert.Len(t, m.Attributes, 1)
		got[m.GroupID] = append(got[m.GroupID], line(m.Body, aws.ToString(m.Attributes["path_row"].StringValue)))
	}
	require.Equal(t, want, got)

	db, err := open(t.Context(), o.path)
	require.NoError(t, err)
	defer db.Close()
	box, err := outbox.Open(t.Context(), outbox.Config{DB: db, Dialect: outbox.SQLite})
	require.NoError(t, err)
	left, err := box.Stats(t.Context())
	require.NoError(t, err)
	assert.Zero(t, left.Messages)
}
