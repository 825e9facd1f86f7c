//go:build unix

// Package replaytest tests package replay with processes that are killed, and a store in SQLite.
package replaytest

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var (
	killGroups = flag.Int("kill.groups", 200, "message groups of TestKilled")
	killItems  = flag.Int("kill.items", 6000, "items of TestKilled")
	killKills  = flag.Int("kill.kills", 10, "processes killed by TestKilled")
	killSeed   = flag.Uint64("kill.seed", 0, "seed of TestKilled; 0 draws one")
)

const (
	childDir      = "REPLAY_TEST_DIR"
	childEndpoint = "REPLAY_TEST_ENDPOINT"
	childQueue    = "REPLAY_TEST_QUEUE"
	childRun      = "REPLAY_TEST_RUN"
)

// openStore opens the store of TestKilled, a SQLite file in dir.
func openStore(t testing.TB, dir string) *sqlstore.Store {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "records.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)")
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	require.NoError(t, sqlstore.Migrate(t.Context(), db, sqlstore.SQLite))
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{DB: db, Dialect: sqlstore.SQLite})
	require.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	return store
}

// openFiles opens the events and reads the plan that TestKilled has written to dir.
func openFiles(t testing.TB, dir string) (replay.Source, *replay.Plan) {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "events.jsonl"))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	require.NoError(t, err)
	p, err := os.Open(filepath.Join(dir, "plan.jsonl"))
	require.NoError(t, err)
	defer p.Close()
	plan, err := replay.ReadPlan(p)
	require.NoError(t, err)
	return replay.NewJSONLines(f.Name(), f, info.Size()), plan
}

// TestRunForTheParentProcess is the child process of TestKilled. It runs the plan until it
// is killed or the plan is finished.
func TestRunForTheParentProcess(t *testing.T) {
	dir := os.Getenv(childDir)
	if dir == "" {
		t.Skip("runs as a child of TestKilled")
	}
	s, plan := openFiles(t, dir)
	client := sqsfifo.NewClient(aws.Config{
		BaseEndpoint: aws.String(os.Getenv(childEndpoint)), Region: sqstest.Region,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	})
	p := newProducer(t, client, os.Getenv(childQueue))
	report, err := replay.Run(t.Context(), plan, replay.Config{Source: s, Sender: p, Store: openStore(t, dir), Owner: "replay", ID: os.Getenv(childRun), InFlight: 1000})
	require.NoError(t, err)
	t.Log(report)
}

// A process with a replay is killed at random moments, and another process continues the
// replay. At the end, each item is delivered once, in group order, byte for byte. During
// a run, a second run is refused.
func TestKilled(t *testing.T) {
	groups, items, kills := *killGroups, *killItems, *killKills
	if testing.Short() {
		groups, items, kills = min(groups, 50), min(items, 2_000), min(kills, 4)
	}
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	lines := many(t, groups, items/groups)
	path := filepath.Join(dir, "events.jsonl")
	require.NoError(t, os.WriteFile(path, encode(t, lines), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	plan, err := replay.NewPlan(t.Context(), replay.NewJSONLines(path, f, 1<<40), replay.Options{}, time.Now())
	require.NoError(t, err)
	out, err := os.Create(filepath.Join(dir, "plan.jsonl"))
	require.NoError(t, err)
	require.NoError(t, plan.Write(out))
	require.NoError(t, out.Close())
	require.Len(t, plan.Items, groups*(items/groups))
	source, store := replay.NewJSONLines(path, f, 1<<40), openStore(t, dir)
	steps, err := replay.DryRun(t.Context(), plan, nil, time.Now())
	require.NoError(t, err)
	require.Len(t, steps, len(plan.Items))

	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	var mu sync.Mutex
	failures, refusals := rand.New(rand.NewPCG(seed, 1)), 0
	q.InjectRandomly(sqstest.LoseAnswer(), 0.02, seed)
	q.InjectRandomly(sqstest.Throttle(), 0.005, seed+1)
	q.InjectRandomly(sqstest.FailEntries("AccessDenied", smithy.FaultClient, func(int, types.SendMessageBatchRequestEntry) bool {
		mu.Lock()
		defer mu.Unlock()
		if failures.IntN(20) > 0 {
			return false
		}
		refusals++
		return true
	}), 1, seed+2)
	var calls atomic.Int64
	fake := sqstest.NewServer(q)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		fake.ServeHTTP(w, r)
	}))
	defer server.Close()

	begin := time.Now()
	killed, refusedRuns, runs, complete := 0, 0, 0, false
	for {
		id := fmt.Sprint("run ", runs)
		runs++
		cmd := exec.Command(os.Args[0], "-test.run", "^TestRunForTheParentProcess$", "-test.v")
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		cmd.Env = append(os.Environ(), childDir+"="+dir, childEndpoint+"="+server.URL, childQueue+"="+q.URL(), childRun+"="+id)
		before := calls.Load()
		require.NoError(t, cmd.Start())
		exited := make(chan error, 1)
		go func() { exited <- cmd.Wait() }()
		if killed < kills {
			// Kill the child after a random number of calls. If nothing is left to send,
			// kill it while it starts.
			target := before + rng.Int64N(int64(max(2, 2*items/kills/10)))
			if complete {
				target = before
			}
			for wait := true; wait && calls.Load() < target; {
				select {
				case err := <-exited:
					exited <- err
					wait = false
				case <-time.After(time.Millisecond):
				}
			}
			time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
			if runs%3 == 1 && len(exited) == 0 && calls.Load() > before { // the child is running, so it holds the lock
				var locked *replay.LockedError
				if _, err := replay.Run(t.Context(), plan, replay.Config{Source: source, Sender: newProducer(t, q, q.URL()), Store: store}); errors.As(err, &locked) {
					assert.Equal(t, id, locked.Run)
					refusedRuns++
				} else if len(exited) == 0 {
					t.Errorf("a second run was not refused: %v", err)
				}
			}
			if cmd.Process.Signal(syscall.SIGKILL) == nil {
				killed++
			}
			<-exited
		} else {
			require.NoError(t, <-exited, said.String())
		}
		report, _, err := replay.ReadReport(context.Background(), plan, store, time.Now())
		require.NoError(t, err)
		if complete = report.Complete(); complete && killed == kills {
			assert.Equal(t, len(plan.Items), report.Sent)
			break
		}
		require.Less(t, runs, 1000)
	}
	if !assert.Equal(t, planned(plan), sent(t, q)) {
		return
	}
	bodies := map[string]bool{}
	for _, m := range q.Messages() {
		bodies[m.Body] = true
	}
	for _, l := range lines {
		require.True(t, bodies[l.Body])
	}
	info, err := os.Stat(filepath.Join(dir, "records.db"))
	require.NoError(t, err)
	t.Logf("%d items of %d groups delivered once each and in order by %d runs, %d of them killed; %d refusals (%.1f %% of the messages), %d resends that SQS recognised, %d second runs refused; store of %d bytes; %v",
		len(plan.Items), groups, runs, killed, refusals, 100*float64(refusals)/float64(len(plan.Items)), len(q.Suppressed()), refusedRuns, info.Size(), time.Since(begin).Round(time.Second))
	assert.Positive(t, refusedRuns)
	assert.NotEmpty(t, q.Suppressed(), "nothing was ever sent again")
}
