package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

const (
	historySeed  = "STORETEST_HISTORY" // environment variable of client processes: the seed of their random calls
	historyKeys  = 6
	historyCalls = 60 // number of calls by each caller
)

// KillHistory runs random calls over the same keys in a client process and in this
// process. It kills the client with SIGKILL, and checks that the combined history is
// linearizable.
//
// A call without an answer may have taken effect at any time after its start, or never.
// The client process runs the code shown at [KillClients].
func KillHistory(t *testing.T, s idempotency.Store, k Killing) {
	t.Helper()
	if k.Rounds == 0 {
		k.Rounds = 20
		if testing.Short() {
			k.Rounds = 4
		}
	}
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	calls, pending, unknown := 0, 0, 0
	for round := range k.Rounds {
		h := &recording{name: fmt.Sprintf("%d-%d", seed, round)}
		h.callAndKill(t, s, k, rng)
		if len(h.failed) > 0 {
			t.Fatalf("seed %d, round %d: %q", seed, round, h.failed)
		}
		history := h.history()
		calls, pending = calls+len(history), pending+len(h.pending)
		switch result := porcupine.CheckOperationsTimeout(model, history, 20*time.Second); result {
		case porcupine.Illegal:
			t.Errorf("seed %d, round %d: a history of %d calls, %d of them without an answer, has no order that the rules allow", seed, round, len(history), len(h.pending))
		case porcupine.Unknown:
			unknown++
		}
		if k.Round != nil {
			k.Round()
		}
	}
	t.Logf("seed %d: %d rounds: %d calls, %d of them without an answer when their process was killed; %d histories took too long to check", seed, k.Rounds, calls, pending, unknown)
	if pending == 0 || unknown == k.Rounds {
		t.Error("no history with a call that was interrupted was checked")
	}
}

// recorded is a call in the JSON form that a client process writes to its output.
type recorded struct {
	Key  int
	Kind string // claim, complete, fail, release or lookup

	// Fields of a call with Kind "claim".
	Token     idempotency.Token
	Payload   string
	ResendFor time.Duration
	Resend    bool

	// Fields of a call with Kind "complete", "fail" or "release".
	Fence    int64
	Proof    idempotency.Proof
	Response []byte
}

func (r recorded) call(name string) call {
	in := call{key: idempotency.Key{Scope: "storetest", Operation: "test.history", Value: fmt.Sprintf("%s-%d", name, r.Key)}}
	in.ref = idempotency.Ref{Key: in.key, Fence: r.Fence}
	transition := func(t idempotency.Ending) { in.ending = &t }
	switch r.Kind {
	case "claim":
		c := claim(in.key)
		c.Token, c.Fingerprint, c.Terms.ResendFor, c.Resend = r.Token, fingerprint(r.Payload), r.ResendFor, r.Resend
		in.claim = &c
	case "complete":
		transition(idempotency.Completed(idempotency.Result{Response: r.Response}))
	case "fail":
		transition(idempotency.FailedWith(idempotency.Failure{Proof: r.Proof}))
	case "release":
		transition(idempotency.Released())
	}
	return in
}

// answered is an answer in the JSON form that a client process writes to its output.
type answered struct {
	Decision idempotency.Decision
	Record   idempotency.Record
	Stale    bool
	Err      string // any error but ErrStaleClaim
}

func (a answered) answer() answer {
	out := answer{outcome: idempotency.Outcome{Decision: a.Decision, Record: a.Record}, record: a.Record}
	if a.Stale {
		out.err = idempotency.ErrStaleClaim
	}
	return out
}

func perform(s idempotency.Store, in call) (a answered) {
	var err error
	switch {
	case in.claim != nil:
		var out idempotency.Outcome
		out, err = s.Claim(context.Background(), *in.claim)
		a.Decision, a.Record = out.Decision, out.Record
	case in.ending != nil:
		err = s.Finish(context.Background(), in.ref, *in.ending)
	default:
		var records []idempotency.Record
		if records, err = s.Lookup(context.Background(), in.key); err == nil {
			a.Record = records[0]
		}
	}
	if a.Stale = errors.Is(err, idempotency.ErrStaleClaim); err != nil && !a.Stale {
		a.Err = oneLine(err)
	}
	return a
}

// grants lists granted claims. The concurrent callers of a process share one list, and
// each caller may end any claim of the list.
type grants struct {
	mu  sync.Mutex
	all []recorded
}

func (g *grants) add(r recorded, a answered) {
	if r.Kind == "claim" && a.Decision.Granted() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.all = append(g.all, recorded{Key: r.Key, Fence: a.Record.Fence})
	}
}

// next returns a random call: a claim, a lookup, or a call that ends a recently granted
// claim.
func (g *grants) next(rng *rand.Rand) recorded {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch n := rng.IntN(8); {
	case n < 3 || len(g.all) == 0:
		return recorded{
			Kind: "claim", Key: rng.IntN(historyKeys), Token: idempotency.NewToken(), Payload: pick(rng, "payload", "payload", "payload", "another"),
			ResendFor: pick(rng, 0, idempotency.Forever, idempotency.Forever), Resend: rng.IntN(4) == 0,
		}
	case n < 6:
		r := g.all[max(0, len(g.all)-1-rng.IntN(4))]
		r.Kind = pick(rng, "complete", "fail", "fail", "release")
		r.Proof, r.Response = idempotency.Proof(rng.IntN(3)), fmt.Append(nil, rng.Uint32())
		return r
	default:
		return recorded{Kind: "lookup", Key: rng.IntN(historyKeys)}
	}
}

// callAll runs four concurrent callers, each with historyCalls random calls. It passes
// each call to the function `onCall` and each answer to the function `onAnswer`.
func callAll(s idempotency.Store, name string, seed uint64, g *grants, onCall func(id string, r recorded), onAnswer func(id string, a answered)) {
	var wg sync.WaitGroup
	for caller := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(caller)))
			for i := range historyCalls {
				id := fmt.Sprintf("%d.%d.%d", os.Getpid(), caller, i)
				r := g.next(rng)
				onCall(id, r)
				a := perform(s, r.call(name))
				onAnswer(id, a)
				g.add(r, a)
			}
		})
	}
	wg.Wait()
}

// historyClient makes the random calls in a client process of KillHistory, and then waits
// until the process is killed. It prints each call before the start, and the answer
// afterwards.
func historyClient(s idempotency.Store, name string) {
	seed, _ := strconv.ParseUint(os.Getenv(historySeed), 10, 64)
	say := func(word, id string, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		fmt.Println(word, id, time.Now().UnixNano(), string(b))
	}
	fmt.Println("ready")
	callAll(s, name, seed, new(grants), func(id string, r recorded) { say("begin", id, r) }, func(id string, a answered) { say("end", id, a) })
	select {} // until the process is killed
}

// recording collects the calls of both processes in one round. All times come from the
// machine's clock, which both processes read.
type recording struct {
	name    string
	mu      sync.Mutex
	pending map[string]pendingCall // calls without an answer
	done    []porcupine.Operation
	failed  []string
}

type pendingCall struct {
	recorded
	at int64
}

func (h *recording) addCall(id string, r recorded, at int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pending == nil {
		h.pending = map[string]pendingCall{}
	}
	h.pending[id] = pendingCall{r, at}
}

func (h *recording) addAnswer(id string, a answered, at int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.pending[id]
	delete(h.pending, id)
	if a.Err != "" {
		h.failed = append(h.failed, b.Kind+": "+a.Err)
	}
	h.done = append(h.done, porcupine.Operation{ClientId: len(h.done), Input: b.call(h.name), Call: b.at, Output: a.answer(), Return: at})
}

// history returns all calls for the checker porcupine. A call without an answer may take
// effect at any time after its start, so its Return time is infinite.
func (h *recording) history() []porcupine.Operation {
	// fences maps the token of a claim to the claim's fence. If a claim got no answer, the
	// answer to another call may still show this token and fence.
	fences := map[idempotency.Token]int64{}
	for _, op := range h.done {
		if r := op.Output.(answer).record; r.Token != (idempotency.Token{}) {
			fences[r.Token] = r.Fence
		}
	}
	all := h.done
	for _, b := range h.pending {
		out := answer{unknown: true}
		if out.outcome.Record.Fence = fences[b.Token]; out.outcome.Record.Fence == 0 {
			// No answer shows this claim's fence, but the model needs a fence. Use a
			// number that no store returns.
			out.outcome.Record.Fence = -int64(len(all))
		}
		all = append(all, porcupine.Operation{ClientId: len(all), Input: b.call(h.name), Call: b.at, Output: out, Return: math.MaxInt64})
	}
	return all
}

// callAndKill runs calls in a client process and in this process at the same time, and
// kills the client.
func (h *recording) callAndKill(t *testing.T, s idempotency.Store, k Killing, rng *rand.Rand) {
	t.Helper()
	g := new(grants)
	// The client prints each call first. An incomplete line, which start() drops, is a
	// call that was not made.
	c, ready := k.start(t, h.name, func(line string) { h.addLine(line, g) }, fmt.Sprintf("%s=%d", historySeed, rng.Uint64()))
	c.await(t, ready, func() []string { return h.failed })
	var wg sync.WaitGroup
	seed, delay := rng.Uint64(), time.Duration(rng.IntN(60))*time.Millisecond
	wg.Go(func() {
		callAll(s, h.name, seed, g, func(id string, r recorded) { h.addCall(id, r, time.Now().UnixNano()) }, func(id string, a answered) { h.addAnswer(id, a, time.Now().UnixNano()) })
	})
	time.Sleep(delay)
	c.kill()
	wg.Wait()
}

// addLine records one line of the client's output: a call, an answer or an error. It adds
// the client's granted claims to g, from which callers in this process choose the claims
// that they end.
func (h *recording) addLine(line string, g *grants) {
	fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
	if fields[0] == "error" {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.failed = append(h.failed, strings.TrimSpace(line))
	}
	if len(fields) != 4 {
		return
	}
	at, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return
	}
	id := fields[1]
	switch fields[0] {
	case "begin":
		var r recorded
		if err = json.Unmarshal([]byte(fields[3]), &r); err == nil {
			h.addCall(id, r, at)
		}
	case "end":
		var a answered
		if err = json.Unmarshal([]byte(fields[3]), &a); err == nil {
			h.mu.Lock()
			r := h.pending[id].recorded
			h.mu.Unlock()
			h.addAnswer(id, a, at)
			g.add(r, a)
		}
	}
	if err != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.failed = append(h.failed, fmt.Sprintf("%q: %v", line, err))
	}
}
