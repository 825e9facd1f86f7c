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

// Killing is what [KillClients] and [KillHistory] do.
type Killing struct {
	// Test is the name of the test that calls [Client].
	Test string

	// Env tells the clients where the storage is, as "NAME=value".
	Env []string

	// Rounds is how often clients are started and killed. Zero means 50, and 5 in short
	// tests, for KillClients, and 20 and 4 for KillHistory.
	Rounds int

	// Round is called after each round, when the clients are dead and what they were
	// told was checked. Nil is no call.
	Round func()
}

const (
	clientRound = "STORETEST_ROUND" // of a client process
	callers     = 8                 // of a client
)

// KillClients kills client processes, with SIGKILL, in the middle of their calls. What
// they were told must be there for the store, no key may be granted twice, and no fence
// may be given twice. The clients are the test's own binary; their code is
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
	for round := range k.Rounds {
		var w Witness
		clients := k.start(t, strconv.Itoa(round), &w)
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		for _, c := range clients {
			c.kill()
		}
		all = all.Add(w.Check(t, s))
		if k.Round != nil {
			k.Round()
		}
	}
	t.Logf("seed %d: %d rounds: %v", seed, k.Rounds, all)
	if all.Claims == 0 || all.Completions == 0 {
		t.Error("no client got anything done")
	}
}

// Client is the test of a client process of [KillClients] and [KillHistory]: it makes
// calls until it is killed, and writes each answer to standard output before its next call. In any other
// process it skips the test.
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
			if err := calls(s, round, caller, func(args ...any) { fmt.Println(args...) }); err != nil {
				fmt.Println("error", round, oneLine(err))
			}
		})
	}
	wg.Wait()
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", " ") }

// calls claims the keys of the round that fall to the caller, completes every second
// one, and says what it was told, until the store returns an error.
func calls(s idempotency.Store, round string, caller int, say func(...any)) error {
	for i := 0; ; i++ {
		value := fmt.Sprintf("%s-%d", round, i*callers+caller)
		out, err := s.Claim(context.Background(), killClaim(value))
		if err != nil {
			return fmt.Errorf("claim of %s: %w", value, err)
		}
		say(out.Decision, value, out.Record.Fence)
		if i%2 == 0 && out.Decision.Granted() {
			if err := s.Complete(context.Background(), out.Ref(), idempotency.Result{Response: []byte(value)}); err != nil {
				return fmt.Errorf("completion of %s: %w", value, err)
			}
			say("completed", value, out.Record.Fence)
		}
	}
}

func killClaim(value string) idempotency.Claim {
	return claim(idempotency.Key{Scope: "storetest", Operation: "test.kill", Value: value})
}

// client is a process.
type client struct {
	cmd  *exec.Cmd
	read chan struct{} // closed when all that it said was read
}

func (c *client) kill() {
	_ = c.cmd.Process.Kill()
	<-c.read
	_ = c.cmd.Wait()
}

// start starts two clients over the same keys, and waits until both are ready.
func (k Killing) start(t *testing.T, round string, w *Witness) []*client {
	t.Helper()
	var clients []*client
	ready := make(chan bool, 2)
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run", "^"+k.Test+"$")
		cmd.Env = append(append(os.Environ(), k.Env...), clientRound+"="+round)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c := &client{cmd, make(chan struct{})}
		clients = append(clients, c)
		t.Cleanup(func() { _ = cmd.Process.Kill() }) // if the test ends before
		go func() {
			defer close(c.read)
			for lines := bufio.NewReader(out); ; {
				line, err := lines.ReadString('\n')
				if err != nil { // a line that was torn was not said
					return
				}
				if strings.HasPrefix(line, "ready") {
					ready <- true
				}
				w.told(line)
			}
		}()
	}
	for range clients {
		select {
		case <-ready:
		case <-clients[0].read:
			t.Fatalf("a client ended: %v", w.errors())
		case <-clients[1].read:
			t.Fatalf("a client ended: %v", w.errors())
		case <-time.After(time.Minute):
			t.Fatal("a client did not start")
		}
	}
	return clients
}

// Witness is what callers were told before they, or the server, were killed. The zero
// Witness knows nothing. Its methods may be called concurrently.
type Witness struct {
	mu        sync.Mutex
	granted   map[string]int64 // fences
	completed map[string]bool
	fences    map[int64]string
	failed    []string
}

// Call claims keys of the round and completes every second one, until the store returns
// an error, which it returns. Callers that have the same number modulo 8 claim the same
// keys.
func (w *Witness) Call(s idempotency.Store, round string, caller int) error {
	return calls(s, round, caller%callers, func(args ...any) { w.told(fmt.Sprintln(args...)) })
}

// told notes a line of a client.
func (w *Witness) told(line string) {
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
	case idempotency.New.String(), idempotency.Renewed.String(), idempotency.Reclaimed.String():
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

// Check looks all claims up that were acknowledged, and claims them again: none may be
// lost, and none granted a second time. It reports what is wrong to t.
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
		// A completion that was made and not acknowledged is there too.
		kept := r.Status == idempotency.Succeeded || r.Status == idempotency.Running && !w.completed[value]
		if r.Fence != fence || !kept || !bytes.Equal(r.Body, c.Body) {
			tally.Lost++
			t.Errorf("key %s was granted with fence %d, completed: %v; the record is %v with fence %d", value, fence, w.completed[value], r.Status, r.Fence)
		}
		if r.Status == idempotency.Succeeded && string(r.Result.Response) != value {
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

// Tally counts what a [Witness] was told, and what became of it.
type Tally struct {
	Claims, Completions int // acknowledged
	Lost, Twice         int // of the claims: not there, and granted again
}

// Add returns the sum.
func (a Tally) Add(b Tally) Tally {
	return Tally{a.Claims + b.Claims, a.Completions + b.Completions, a.Lost + b.Lost, a.Twice + b.Twice}
}

// String returns the counts in words.
func (a Tally) String() string {
	return fmt.Sprintf("%d claims and %d completions acknowledged, %d lost, %d accepted twice", a.Claims, a.Completions, a.Lost, a.Twice)
}
