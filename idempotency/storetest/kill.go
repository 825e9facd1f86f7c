package storetest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Killing configures [KillClients] and [KillHistory].
type Killing struct {
	// Test is the name of the test function that calls [Client].
	Test string

	// Env gives clients the address of the storage, as "NAME=value" pairs.
	Env []string

	// Rounds is the number of rounds. In each round, clients are started and killed. Zero
	// means 50 for KillClients (5 in short tests) and 20 for KillHistory (4 in short
	// tests).
	Rounds int

	// Round, unless nil, is called after each round, when the clients are dead and the
	// round's answers are checked.
	Round func()
}

const (
	clientRound = "STORETEST_ROUND" // environment variable of client processes: the round's name
	callers     = 8                 // concurrent callers in a client process
)

// KillClients kills client processes with SIGKILL during their calls. The store must keep
// every acknowledged change. It must not grant a key twice, or give two claims the same
// fence.
//
// The clients run the test's own binary, with this code:
//
//	func TestClient(t *testing.T) {
//		storetest.Client(t, func() (idempotency.Store, error) { return mystore.Open(os.Getenv("MYSTORE_PATH")) })
//	}
func KillClients(t *testing.T, s idempotency.Store, k Killing) {
	t.Helper()
	if k.Rounds == 0 {
		k.Rounds = 50
		if testing.Short() {
			k.Rounds = 5
		}
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	var all Tally
	done := func() bool { return all.Claims > 0 && all.Completions > 0 }
	// On a busy machine, all clients may be killed before a completion. Up to 50 more
	// rounds follow.
	round := 0
	for ; round < k.Rounds || !done() && round < k.Rounds+50; round++ {
		var w Witness
		// Two clients claim the same keys.
		first, firstReady := k.start(t, strconv.Itoa(round), w.note)
		second, secondReady := k.start(t, strconv.Itoa(round), w.note)
		first.await(t, firstReady, w.errors)
		second.await(t, secondReady, w.errors)
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		first.kill()
		second.kill()
		all = all.Add(w.Check(t, s))
		if k.Round != nil {
			k.Round()
		}
	}
	t.Logf("seed %d: %d rounds: %v", seed, round, all)
	if !done() {
		t.Error("no client got anything done")
	}
}

// Client runs in the client processes of [KillClients] or [KillHistory]. It makes calls
// until the process is killed, and writes each answer to standard output before the next
// call. In any other process Client skips the test.
func Client(t *testing.T, open func() (idempotency.Store, error)) {
	round := os.Getenv(clientRound)
	if round == "" {
		t.Skip("runs as a client of KillClients and KillHistory")
	}
	s, err := open()
	if err != nil {
		fmt.Println("error open", oneLine(err))
		return
	}
	if os.Getenv(historySeed) != "" {
		historyClient(s, round)
		return
	}
	fmt.Println("ready")
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			if err := claimAndComplete(s, round, caller, func(args ...any) { fmt.Println(args...) }); err != nil {
				fmt.Println("error", round, oneLine(err))
			}
		})
	}
	wg.Wait()
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", " ") }

// claimAndComplete claims new keys and completes every second claim, until the store
// returns an error. It passes each answer to the function `report`.
func claimAndComplete(s idempotency.Store, round string, caller int, report func(...any)) error {
	for i := 0; ; i++ {
		value := fmt.Sprintf("%s-%d", round, i*callers+caller)
		out, err := s.Claim(context.Background(), killClaim(value))
		if err != nil {
			return fmt.Errorf("claim of %s: %w", value, err)
		}
		report(out.Decision, value, out.Record.Fence)
		if i%2 == 0 && out.Decision.Granted() {
			if err := s.Finish(context.Background(), out.Ref(), idempotency.Completed(idempotency.Result{Response: []byte(value)})); err != nil {
				return fmt.Errorf("completion of %s: %w", value, err)
			}
			report("completed", value, out.Record.Fence)
		}
	}
}

func killClaim(value string) idempotency.Claim {
	return claim(idempotency.Key{Scope: "storetest", Operation: "test.kill", Value: value})
}

type client struct {
	cmd  *exec.Cmd
	read chan struct{} // closed at the end of the client's output
}

func (c *client) kill() {
	_ = c.cmd.Process.Kill()
	<-c.read
	_ = c.cmd.Wait()
}

// start starts a client process of the round and calls the function `note` with each
// complete line of its output. The returned channel is closed when the client is ready.
func (k Killing) start(t *testing.T, round string, note func(line string), env ...string) (c *client, ready <-chan struct{}) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run", "^"+k.Test+"$")
	cmd.Env = slices.Concat(os.Environ(), k.Env, env, []string{clientRound + "=" + round})
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // in case the test ends before it calls c.kill
	c = &client{cmd, make(chan struct{})}
	started := make(chan struct{})
	go func() {
		defer close(c.read)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			if err != nil { // ignore an incomplete last line
				return
			}
			if strings.HasPrefix(line, "ready") {
				close(started)
			}
			note(line)
		}
	}()
	return c, started
}

// await waits until the client is ready. If the client ends before that, await fails the
// test with the result of the function `clientErrors`.
func (c *client) await(t *testing.T, ready <-chan struct{}, clientErrors func() []string) {
	t.Helper()
	select {
	case <-ready:
	case <-c.read:
		t.Fatalf("a client ended: %q", clientErrors())
	case <-time.After(time.Minute):
		t.Fatal("a client did not start")
	}
}

// Witness records the answers that callers received before a process or the server was
// killed. The zero Witness is empty. Its methods may be called concurrently.
type Witness struct {
	mu        sync.Mutex
	granted   map[string]int64 // fences of the granted claims, by Key.Value
	completed map[string]bool
	fences    map[int64]string // the inverse of granted
	failed    []string
}

// Call claims new keys named after the round, and completes every second key if granted.
// It returns the store's first error.
//
// Callers with different numbers claim different keys. Only numbers that differ by a
// multiple of 8, for example 1 and 9, share their keys.
func (w *Witness) Call(s idempotency.Store, round string, caller int) error {
	return claimAndComplete(s, round, caller%callers, func(args ...any) { w.note(fmt.Sprintln(args...)) })
}

// note records one line of a client's output: the answer to a call, or an error.
func (w *Witness) note(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.granted == nil {
		w.granted, w.completed, w.fences = map[string]int64{}, map[string]bool{}, map[int64]string{}
	}
	fields := strings.Fields(line)
	fail := func(format string, args ...any) {
		if len(w.failed) < 20 {
			w.failed = append(w.failed, fmt.Sprintf(format, args...))
		}
	}
	if len(fields) > 0 && fields[0] == "error" {
		fail("%s", strings.TrimSpace(line))
		return
	}
	if len(fields) != 3 {
		return
	}
	switch value := fields[1]; fields[0] {
	case idempotency.DecisionNew.String(), idempotency.DecisionRenewed.String(), idempotency.DecisionReclaimed.String():
		fence, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			fail("line %q: %v", line, err)
		}
		if was, twice := w.granted[value]; twice {
			fail("key %s was granted twice: with fence %d and %d", value, was, fence)
		}
		if other, twice := w.fences[fence]; twice {
			fail("fence %d was given to %s and %s", fence, other, value)
		}
		w.granted[value], w.fences[fence] = fence, value
	case "completed":
		w.completed[value] = true
	}
}

func (w *Witness) errors() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.failed)
}

// Check fails the test t if the store lost or changed a recorded claim or completion, or
// if w recorded an error. It claims each recorded key, and fails the test if the store
// grants a key again.
func (w *Witness) Check(t testing.TB, s idempotency.Store) Tally {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.failed {
		t.Error(f)
	}
	tally := Tally{Claims: len(w.granted), Completions: len(w.completed)}
	for value, fence := range w.granted {
		c := killClaim(value)
		records, err := s.Lookup(context.Background(), c.Key)
		if err != nil {
			t.Fatal(err)
		}
		r := records[0]
		// The process may have been killed before the answer to a completion arrived.
		kept := r.Status == idempotency.StatusSucceeded || r.Status == idempotency.StatusRunning && !w.completed[value]
		if r.Fence != fence || !kept || !bytes.Equal(r.Body, c.Body) {
			tally.Lost++
			t.Errorf("key %s was granted with fence %d, completed: %v; the record is %v with fence %d", value, fence, w.completed[value], r.Status, r.Fence)
		}
		if r.Status == idempotency.StatusSucceeded && string(r.Result.Response) != value {
			tally.Lost++
			t.Errorf("key %s has the result %q", value, r.Result.Response)
		}
		out, err := s.Claim(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		if out.Decision.Granted() {
			tally.Twice++
			t.Errorf("key %s was granted again: %v", value, out.Decision)
		}
	}
	return tally
}

// Tally is the result of [Witness.Check].
type Tally struct {
	Claims, Completions int // changes confirmed by the store
	Lost                int // confirmed changes missing or different at the check
	Twice               int // keys granted a second time at the check
}

// Add returns the sum of a and b.
func (a Tally) Add(b Tally) Tally {
	return Tally{a.Claims + b.Claims, a.Completions + b.Completions, a.Lost + b.Lost, a.Twice + b.Twice}
}

// String returns the counts in words.
func (a Tally) String() string {
	return fmt.Sprintf("%d claims and %d completions acknowledged, %d lost, %d accepted twice", a.Claims, a.Completions, a.Lost, a.Twice)
}
