// Package storetest checks that an [idempotency.Store] keeps its promises. It is a
// module of its own, because it needs porcupine, a checker of linearizability, that
// users of a store should not carry.
//
// A store's test is
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Storage {
//			path := filepath.Join(t.TempDir(), "keys.db")
//			return storetest.Storage{Open: func() (idempotency.Store, error) { return mystore.Open(path) }}
//		})
//	}
//
// The suite checks what can be seen through the interface and by opening the storage
// again. [KillClients] and [KillHistory] kill client processes in the middle of their
// calls; whether a write survives the server, or a loss of power, is for tests of the
// store itself. Package producertest checks producers that have the store.
package storetest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Storage is where a store keeps its records.
type Storage struct {
	// Open opens a store over the storage: the same records each time, as another
	// process would see them. Stores that have a method Close() error are closed by
	// the suite.
	Open func() (idempotency.Store, error)

	// Advance sets the clock of the storage forward. If it is nil, the suite sleeps;
	// it then needs a store that judges leases of 60 ms.
	Advance func(time.Duration)

	// MaxBytes is the largest body, and the largest response, that the store takes, if
	// that is less than idempotency.MaxBody and idempotency.MaxResponse.
	MaxBytes int

	// Volatile says that records do not survive when the last store is closed.
	Volatile bool
}

// Run checks the store in one subtest for each property. It calls fresh for new,
// empty storage at least once in each.
func Run(t *testing.T, fresh func(t *testing.T) Storage) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			for _, f := range p.failures(func() Storage { return fresh(t) }) {
				t.Errorf("%s\n\trule: %s", f, p.rule)
			}
		})
	}
}

// Check is Run for use outside of a test: it returns what failed, as one line for
// each failure that begins with the name of the property.
func Check(fresh func() Storage) []string {
	var all []string
	for _, p := range properties {
		for _, f := range p.failures(fresh) {
			all = append(all, p.name+": "+f)
		}
	}
	return all
}

// property is one promise of a store.
type property struct {
	name  string
	rule  string // the promise in words
	check func(p *probe)
}

// failures runs the check against fresh storage.
func (p property) failures(fresh func() Storage) []string {
	seed := rand.Uint64()
	probe := &probe{Storage: fresh(), fresh: fresh, seed: seed, rng: rand.New(rand.NewPCG(seed, 1))}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	probe.ctx = ctx
	done := make(chan struct{})
	go func() { // so that fatal can end it
		defer close(done)
		defer probe.close()
		probe.store = probe.open()
		p.check(probe)
	}()
	<-done
	return probe.failed
}

// probe is what a check works with.
type probe struct {
	Storage
	ctx   context.Context
	fresh func() Storage
	store idempotency.Store
	seed  uint64
	rng   *rand.Rand // of the check's goroutine

	mu     sync.Mutex
	failed []string
	opened []idempotency.Store
	keys   int
}

// fail notes a failure; the check goes on.
func (p *probe) fail(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.failed) < 10 {
		_, file, line, _ := runtime.Caller(1)
		p.failed = append(p.failed, fmt.Sprintf("%s (%s:%d, seed %d)", fmt.Sprintf(format, args...), file[strings.LastIndexByte(file, '/')+1:], line, p.seed))
	}
}

// must ends the check if err is not nil. It is called on the check's goroutine.
func (p *probe) must(err error, doing string) {
	if err != nil {
		p.fail("%s: %v", doing, err)
		runtime.Goexit()
	}
}

// open opens the storage once more.
func (p *probe) open() idempotency.Store {
	s, err := p.Open()
	p.must(err, "open")
	p.mu.Lock()
	p.opened = append(p.opened, s)
	p.mu.Unlock()
	return s
}

// close closes all stores that are open.
func (p *probe) close() {
	p.mu.Lock()
	opened := p.opened
	p.opened = nil
	p.mu.Unlock()
	for _, s := range opened {
		if c, ok := s.(io.Closer); ok {
			if err := c.Close(); err != nil {
				p.fail("close: %v", err)
			}
		}
	}
}

// Durations of the checks: a short lease is over after pass, a long one is not.
const long = time.Hour

func (p *probe) short() time.Duration {
	if p.Advance != nil {
		return time.Minute
	}
	return 60 * time.Millisecond
}

// pass lets twice the short duration pass.
func (p *probe) pass() {
	if p.Advance != nil {
		p.Advance(2 * p.short())
		return
	}
	time.Sleep(2 * p.short())
}

// key returns a key that no other call returned.
func (p *probe) key() idempotency.Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys++
	return idempotency.Key{Scope: "storetest", Operation: "test.run", Value: fmt.Sprintf("%d-%d", p.seed, p.keys)}
}

func fingerprint(s string) idempotency.Fingerprint {
	return idempotency.FingerprintOf("test/1", []byte(s))
}

// claim returns a claim of k with long terms that is not safe to repeat.
func claim(k idempotency.Key) idempotency.Claim {
	return idempotency.Claim{
		Key: k, Token: idempotency.NewToken(), Fingerprint: fingerprint("payload"), Body: []byte("body"), Group: "group",
		Seal:  idempotency.SealOf([]byte("body"), "group"),
		Terms: idempotency.Terms{Lease: long, TTL: 24 * long},
	}
}

// do claims and expects the decision.
func (p *probe) do(c idempotency.Claim, want idempotency.Decision, doing string) idempotency.Outcome {
	out, err := p.store.Claim(p.ctx, c)
	p.must(err, doing)
	if out.Decision != want {
		p.fail("%s: got the decision %q, want %q", doing, out.Decision, want)
	}
	return out
}

// lookup returns the record of k.
func (p *probe) lookup(k idempotency.Key) idempotency.Record {
	records, err := p.store.Lookup(p.ctx, k)
	p.must(err, "lookup")
	if len(records) != 1 {
		p.fail("lookup of one key: got %d records", len(records))
		runtime.Goexit()
	}
	return records[0]
}

// properties are in the order in which they are checked.
var properties = []property{
	{"decisions", "a claim is decided by what is found, in the order of idempotency.Decide", checkDecisions},
	{"grants", "a grant changes the record as idempotency.Grant says: stored bytes win, an expired key begins a generation, a lease begins now", checkGrants},
	{"transitions", "a transition leaves the record as idempotency.Settle says; only proof ends a doubt", checkTransitions},
	{"fences", "each transition carries the fence; a claimant that was overtaken gets ErrStaleClaim and changes nothing", checkFences},
	{"repeated transitions", "a transition that is repeated because its answer was lost is harmless", checkRepeats},
	{"programs", "any sequence of calls gives the answers of the rules", checkPrograms},
	{"races", "of any number of racing claims of one key, one is granted", checkRaces},
	{"batches", "a batch is decided as if its claims were made one after another", checkBatches},
	{"batch races", "batches over the same keys in any order win each key once and never block each other", checkBatchRaces},
	{"conflicts", "a claim with another fingerprint never runs and leaves the record untouched, however many race", checkConflicts},
	{"odd keys", "any bytes are legal in a scope and a value; different keys never meet", checkOddKeys},
	{"bytes", "what is stored comes back byte for byte", checkBytes},
	{"texts", "no text is taken for syntax", checkTexts},
	{"memory", "a store shares no memory with its callers", checkMemory},
	{"arguments", "an argument that breaks a rule is an InvalidError, and nothing is done", checkArguments},
	{"scans", "a scan yields each record that matches once, in the order of key IDs", checkScans},
	{"cancellation", "a call whose context ends returns; repeating it with the same token or fence is safe", checkCancellation},
	{"reopening", "what a call changed is there when the storage is opened again, and for other stores over it", checkReopening},
	{"linearizability", "concurrent calls behave as if each happened at one instant between its begin and its end", checkLinearizability},
}
