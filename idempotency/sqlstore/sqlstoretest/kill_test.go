package sqlstoretest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
)

const (
	childDialect = "SQLSTORE_TEST_DIALECT"
	childSource  = "SQLSTORE_TEST_SOURCE"
	childRound   = "SQLSTORE_TEST_ROUND"
	childLedger  = "SQLSTORE_TEST_LEDGER"
)

// The child of the kill tests: eight callers claim the keys of the round, and complete
// every second one. Each answer of the store is a line on standard output before the
// next call is made.
func TestClaimForTheParentProcess(t *testing.T) {
	if os.Getenv(childSource) == "" {
		t.Skip("runs as a child of the kill tests")
	}
	dialect, _ := strconv.Atoi(os.Getenv(childDialect))
	d := database{dialect: sqlstore.Dialect(dialect), driver: "pgx", source: os.Getenv(childSource), ledger: os.Getenv(childLedger) == "true"}
	if d.dialect == sqlstore.SQLite {
		d.driver = "sqlite"
	}
	s := d.store(t, sqlstore.Config{Ledger: d.ledger})
	fmt.Println("ready")
	var wg sync.WaitGroup
	if d.ledger {
		k := sealer(t, s.Ledger(), func(c *sqlstore.SealerConfig) { c.Interval = time.Millisecond })
		wg.Go(func() { _ = k.Run(context.Background()) })
	}
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				value := fmt.Sprintf("%s-%d", os.Getenv(childRound), i*8+w)
				out, err := s.Claim(context.Background(), claimOf(value))
				if err != nil {
					fmt.Println("error", value, strings.ReplaceAll(err.Error(), "\n", " "))
					return
				}
				fmt.Println(out.Decision, value, out.Record.Fence)
				if i%2 == 0 && out.Decision.Granted() {
					if err := s.Complete(context.Background(), out.Ref(), idempotency.Result{Response: []byte(value)}); err != nil {
						fmt.Println("error", value, strings.ReplaceAll(err.Error(), "\n", " "))
						return
					}
					fmt.Println("completed", value, out.Record.Fence)
				}
			}
		})
	}
	wg.Wait()
}

// acknowledged is what children said before they were killed.
type acknowledged struct {
	mu        sync.Mutex
	granted   map[string]int64 // fences
	completed map[string]bool
	errors    []string
}

func (a *acknowledged) line(t *testing.T, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fields := strings.Fields(text)
	switch {
	case len(fields) >= 3 && fields[0] == "error":
		a.errors = append(a.errors, text)
	case len(fields) == 3 && (fields[0] == "new" || fields[0] == "renewed" || fields[0] == "reclaimed"):
		fence, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			t.Errorf("line %q", text)
		}
		if was, ok := a.granted[fields[1]]; ok {
			t.Errorf("key %s was granted twice: with fence %d and %d", fields[1], was, fence)
		}
		a.granted[fields[1]] = fence
	case len(fields) == 3 && fields[0] == "completed":
		a.completed[fields[1]] = true
	}
}

// child starts two children over the same keys, and returns a function that kills
// them.
func (d database) children(t *testing.T, round string, said *acknowledged) (kill func()) {
	t.Helper()
	var stops []func()
	ready := make(chan bool, 2)
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestClaimForTheParentProcess$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childDialect, d.dialect), childSource+"="+d.source, childRound+"="+round, fmt.Sprintf("%s=%v", childLedger, d.ledger))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			r := bufio.NewReader(out)
			for {
				line, err := r.ReadString('\n')
				if err == io.EOF || err != nil { // a line that was torn was not said
					return
				}
				if strings.HasPrefix(line, "ready") {
					ready <- true
					continue
				}
				said.line(t, line)
			}
		}()
		stops = append(stops, func() {
			_ = cmd.Process.Kill()
			<-read
			_ = cmd.Wait()
		})
	}
	for range 2 {
		select {
		case <-ready:
		case <-time.After(time.Minute):
			t.Fatal("a child did not start")
		}
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// check looks all acknowledged claims up, and claims them again: none is lost, and
// none is granted a second time.
func (a *acknowledged) check(t *testing.T, s *sqlstore.Store) (lost, twice int) {
	t.Helper()
	for value, fence := range a.granted {
		c := claimOf(value)
		records, err := s.Lookup(context.Background(), c.Key)
		if err != nil {
			t.Fatal(err)
		}
		r := records[0]
		want := idempotency.Running
		if a.completed[value] {
			want = idempotency.Succeeded
		}
		// A completion that was made and not acknowledged is there too.
		if r.Fence != fence || r.Status != want && r.Status != idempotency.Succeeded || !bytes.Equal(r.Body, c.Body) {
			lost++
			t.Errorf("key %s was granted with fence %d, completed: %v; the record is %v with fence %d", value, fence, a.completed[value], r.Status, r.Fence)
		}
		if r.Status == idempotency.Succeeded && string(r.Result.Response) != value {
			t.Errorf("key %s has the result %q", value, r.Result.Response)
		}
		out, err := s.Claim(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		if out.Decision.Granted() {
			twice++
			t.Errorf("key %s was granted again: %v", value, out.Decision)
		}
	}
	return lost, twice
}

// Client processes are killed in the middle of their calls, fifty times. What they were
// told is there.
func TestKilledClients(t *testing.T) {
	rounds := 50
	if testing.Short() {
		rounds = 5
	}
	each(t, func(t *testing.T, d database) {
		s := d.store(t, sqlstore.Config{})
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		claims, completions, lost, twice := 0, 0, 0, 0
		for round := range rounds {
			said := &acknowledged{granted: map[string]int64{}, completed: map[string]bool{}}
			kill := d.children(t, strconv.Itoa(round), said)
			time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
			kill()
			if len(said.errors) > 0 {
				t.Errorf("a child failed: %s", said.errors[0])
			}
			l, w := said.check(t, s)
			lost, twice = lost+l, twice+w
			claims, completions = claims+len(said.granted), completions+len(said.completed)
		}
		if d.dialect == sqlstore.SQLite {
			var integrity string
			if err := d.open(t).QueryRow(`PRAGMA integrity_check`).Scan(&integrity); err != nil || integrity != "ok" {
				t.Errorf("integrity: %s, %v", integrity, err)
			}
		}
		checkCount(t, d, s)
		t.Logf("seed %d: %d rounds, %d claims and %d completions acknowledged, %d lost, %d accepted twice", seed, rounds, claims, completions, lost, twice)
		if claims == 0 || completions == 0 {
			t.Error("no child got anything done")
		}
	})
}

// checkCount compares the count that is kept with the rows.
func checkCount(t *testing.T, d database, s *sqlstore.Store) {
	t.Helper()
	var rows int64
	if err := d.open(t).QueryRow(`SELECT count(*) FROM idempotency_keys`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Count(t.Context()); err != nil || n != rows {
		t.Errorf("the count is %d, %v, and there are %d rows", n, err, rows)
	}
}
