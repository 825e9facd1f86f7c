package redisstore_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
)

const (
	childSocket = "REDISSTORE_TEST_SOCKET"
	childRound  = "REDISSTORE_TEST_ROUND"
)

// The child of the kill tests: eight callers claim the keys of the round, and complete
// every second one. Each answer of the store is a line on standard output before the
// next call is made.
func TestClaimForTheParentProcess(t *testing.T) {
	if os.Getenv(childSocket) == "" {
		t.Skip("runs as a child of the kill tests")
	}
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: os.Getenv(childSocket)})
	defer client.Close()
	s := newStore(t, nil, redisstore.Config{Client: client, Prefix: "kill:"})
	fmt.Println("ready")
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() { claimAll(s, os.Getenv(childRound), w, func(args ...any) { fmt.Println(args...) }) })
	}
	wg.Wait()
}

// claimAll claims the keys of the caller until the store does not answer, and says what
// it was told.
func claimAll(s idempotency.Store, round string, caller int, say func(...any)) {
	for i := 0; ; i++ {
		value := fmt.Sprintf("%s-%d", round, i*8+caller)
		out, err := s.Claim(context.Background(), claimOf(value))
		if err != nil {
			return
		}
		say(out.Decision, value, out.Record.Fence)
		if i%2 == 0 && out.Decision.Granted() {
			if err := s.Complete(context.Background(), out.Ref(), idempotency.Result{Response: []byte(value)}); err != nil {
				return
			}
			say("completed", value, out.Record.Fence)
		}
	}
}

// acknowledged is what callers were told before they or the server were killed.
type acknowledged struct {
	mu        sync.Mutex
	granted   map[string]int64 // fences
	completed map[string]bool
	fences    map[int64]string
}

func newAcknowledged() *acknowledged {
	return &acknowledged{granted: map[string]int64{}, completed: map[string]bool{}, fences: map[int64]string{}}
}

func (a *acknowledged) line(t *testing.T, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return
	}
	switch fields[0] {
	case "new", "renewed", "reclaimed":
		fence, err := strconv.ParseInt(fields[2], 10, 64)
		if err != nil {
			t.Errorf("line %q", text)
		}
		if was, ok := a.granted[fields[1]]; ok {
			t.Errorf("key %s was granted twice: with fence %d and %d", fields[1], was, fence)
		}
		if key, ok := a.fences[fence]; ok {
			t.Errorf("fence %d was given to %s and %s", fence, key, fields[1])
		}
		a.granted[fields[1]], a.fences[fence] = fence, fields[1]
	case "completed":
		a.completed[fields[1]] = true
	}
}

// check looks all acknowledged claims up, and claims them again: none is lost, and
// none is granted a second time.
func (a *acknowledged) check(t *testing.T, s idempotency.Store) (lost, twice int) {
	t.Helper()
	for value, fence := range a.granted {
		c := claimOf(value)
		records, err := s.Lookup(context.Background(), c.Key)
		if err != nil {
			t.Fatal(err)
		}
		r := records[0]
		// A completion that was made and not acknowledged is there too.
		if r.Fence != fence || r.Status != idempotency.Succeeded && (a.completed[value] || r.Status != idempotency.Running) || !bytes.Equal(r.Body, c.Body) {
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

// children starts two processes over the same keys, and returns a function that kills
// them.
func children(t *testing.T, socket, round string, said *acknowledged) (kill func()) {
	t.Helper()
	var stops []func()
	ready := make(chan bool, 2)
	for range 2 {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestClaimForTheParentProcess$")
		cmd.Env = append(os.Environ(), childSocket+"="+socket, childRound+"="+round)
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
				if err != nil { // a line that was torn was not said
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

// Client processes are killed in the middle of their calls, fifty times. What they were
// told is there.
func TestKilledClients(t *testing.T) {
	server := newServer(t, durable...)
	s := newStore(t, server, redisstore.Config{Prefix: "kill:"})
	rounds, claims, completions, lost, twice := 50, 0, 0, 0, 0
	if testing.Short() {
		rounds = 5
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		said := newAcknowledged()
		kill := children(t, server.socket(), strconv.Itoa(round), said)
		time.Sleep(time.Duration(rng.IntN(150)) * time.Millisecond)
		kill()
		l, w := said.check(t, s)
		lost, twice = lost+l, twice+w
		claims, completions = claims+len(said.granted), completions+len(said.completed)
	}
	t.Logf("seed %d: %d rounds, %d claims and %d completions acknowledged, %d lost, %d accepted twice", seed, rounds, claims, completions, lost, twice)
	if claims == 0 || completions == 0 {
		t.Error("no child got anything done")
	}
}

// The server is killed in the middle of a storm of claims and starts again. Nothing that
// was acknowledged is lost, and no key is won twice.
func TestKilledServer(t *testing.T) {
	server := newServer(t, durable...)
	rounds, claims, lost, twice := 10, 0, 0, 0
	if testing.Short() {
		rounds = 3
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		said := newAcknowledged()
		client := redis.NewClient(&redis.Options{Network: "unix", Addr: server.socket(), MaxRetries: -1})
		s := newStore(t, server, redisstore.Config{Client: client, Prefix: "kill:"})
		var wg sync.WaitGroup
		for w := range 16 {
			wg.Go(func() {
				claimAll(s, strconv.Itoa(round), w%8, func(args ...any) { said.line(t, fmt.Sprintln(args...)) })
			})
		}
		time.Sleep(time.Duration(50+rng.IntN(150)) * time.Millisecond)
		server.kill()
		wg.Wait()
		client.Close()
		if err := server.start(); err != nil {
			t.Fatal(err)
		}
		l, w := said.check(t, newStore(t, server, redisstore.Config{Prefix: "kill:"}))
		lost, twice, claims = lost+l, twice+w, claims+len(said.granted)
	}
	t.Logf("seed %d: %d rounds, %d claims acknowledged, %d lost, %d accepted twice", seed, rounds, claims, lost, twice)
	if claims == 0 {
		t.Error("nobody got anything done")
	}
}
