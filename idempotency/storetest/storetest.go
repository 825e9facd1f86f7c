// Package storetest checks that an [idempotency.Store] keeps its promises. It uses
// porcupine, a linearizability checker, so import it from tests only.
//
// A store's test:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Storage {
//			path := filepath.Join(t.TempDir(), "keys.db")
//			return storetest.Storage{Open: func() (idempotency.Store, error) { return mystore.Open(path) }}
//		})
//	}
//
// The suite checks behaviour visible through the interface and after reopening the
// storage. [KillClients] and [KillHistory] kill client processes during calls. Tests of
// durability across server crashes and power loss belong to each store. Package
// producertest checks producers with the store.
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

// Storage holds the records of a store.
type Storage struct {
	// Open opens one more store on the same storage. All stores share the records, like
	// stores in several processes. The suite closes a store that has a Close() error
	// method.
	Open func() (idempotency.Store, error)

	// OpenWithQuota opens a store like Open, with a quota of unfinished operations for
	// each scope. Leave it nil for stores without quotas.
	OpenWithQuota func(quota int64) (idempotency.Store, error)

	// Advance sets the storage's clock forward. If it is nil, the suite sleeps, and the
	// store must support leases of 60 ms.
	Advance func(time.Duration)

	// MaxBytes is the store's size limit for bodies and for responses, if lower than
	// idempotency.MaxBody and idempotency.MaxResponse.
	MaxBytes int

	// Volatile reports that closing the last store deletes all records.
	Volatile bool
}

// Run checks the store, one subtest per property. Each subtest calls the function `fresh`
// at least once for new, empty storage.
func Run(t *testing.T, fresh func(t *testing.T) Storage) {
	for _, p := range properties {
		t.Run(p.name, func(t *testing.T) {
			for _, f := range p.failures(func() Storage { return fresh(t) }) {
				t.Errorf("%s\n\trule: %s", f, p.rule)
			}
		})
	}
}

// Check is like Run but needs no test: it returns one line per failure, each with the
// property's name first.
func Check(fresh func() Storage) []string {
	var all []string
	for _, p := range properties {
		for _, f := range p.failures(fresh) {
			all = append(all, p.name+": "+f)
		}
	}
	return all
}

// property is a promise of a store.
type property struct {
	name  string
	rule  string // the promise in words, reported with each failure
	check func(p *probe)
}

// failures runs the check against fresh storage.
func (p property) failures(fresh func() Storage) []string {
	seed := rand.Uint64()
	probe := &probe{Storage: fresh(), seed: seed, rng: rand.New(rand.NewPCG(seed, 1))}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	probe.ctx = ctx
	done := make(chan struct{})
	// The check needs its own goroutine, because a failed p.must ends the goroutine.
	go func() {
		defer close(done)
		defer probe.close()
		probe.store = probe.open()
		p.check(probe)
	}()
	<-done
	return probe.failed
}

// probe is the environment of a check.
type probe struct {
	Storage
	ctx   context.Context
	store idempotency.Store
	seed  uint64
	rng   *rand.Rand // for the check's goroutine only

	mu     sync.Mutex
	failed []string
	opened []idempotency.Store
	keys   int
}

// fail records a failure. The check continues.
func (p *probe) fail(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.failed) < 10 {
		_, file, line, _ := runtime.Caller(1)
		p.failed = append(p.failed, fmt.Sprintf("%s (%s:%d, seed %d)", fmt.Sprintf(format, args...), file[strings.LastIndexByte(file, '/')+1:], line, p.seed))
	}
}

// The method `must` does nothing if err is nil. Otherwise it records a failure and ends
// the goroutine. Call it only on the check's own goroutine.
func (p *probe) must(err error, doing string) {
	if err != nil {
		p.fail("%s: %v", doing, err)
		runtime.Goexit()
	}
}

func (p *probe) open() idempotency.Store { return p.opening(p.Open) }

// opening opens a store with the function `open`. At the end of the check, p.close closes
// the store.
func (p *probe) opening(open func() (idempotency.Store, error)) idempotency.Store {
	s, err := open()
	p.must(err, "open")
	p.mu.Lock()
	p.opened = append(p.opened, s)
	p.mu.Unlock()
	return s
}

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

// In the checks a long lease lasts an hour and a short lease lasts p.short(). A call of
// p.pass() ends short leases, but not long leases.
const long = time.Hour

func (p *probe) short() time.Duration {
	if p.Advance != nil {
		return time.Minute
	}
	return 60 * time.Millisecond
}

// pass sets the storage's clock forward by 2*p.short(). If Advance is nil, pass sleeps
// instead.
func (p *probe) pass() {
	if p.Advance != nil {
		p.Advance(2 * p.short())
		return
	}
	time.Sleep(2 * p.short())
}

func (p *probe) key() idempotency.Key {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys++
	return idempotency.Key{Scope: "storetest", Operation: "test.run", Value: fmt.Sprintf("%d-%d", p.seed, p.keys)}
}

func fingerprint(s string) idempotency.Fingerprint {
	return idempotency.FingerprintOf("test/1", []byte(s))
}

// claim returns a claim of k with a long lease and TTL. Terms.ResendFor is 0: the
// operation is not safe to run again.
func claim(k idempotency.Key) idempotency.Claim {
	return idempotency.Claim{
		Key: k, Token: idempotency.NewToken(), Fingerprint: fingerprint("payload"), Body: []byte("body"), Group: "group",
		ExactHash: idempotency.ExactHashOf([]byte("body"), "group"),
		Terms:     idempotency.Terms{Lease: long, TTL: 24 * long},
	}
}

// do makes the claim c. It records a failure if the decision differs from the parameter
// `want`. If the store returns an error, do ends the goroutine, like the method `must`.
func (p *probe) do(c idempotency.Claim, want idempotency.Decision, doing string) idempotency.Outcome {
	out, err := p.store.Claim(p.ctx, c)
	p.must(err, doing)
	if out.Decision != want {
		p.fail("%s: got the decision %q, want %q", doing, out.Decision, want)
	}
	return out
}

func (p *probe) lookup(k idempotency.Key) idempotency.Record {
	records, err := p.store.Lookup(p.ctx, k)
	p.must(err, "lookup")
	if len(records) != 1 {
		p.fail("lookup of one key: got %d records", len(records))
		runtime.Goexit()
	}
	return records[0]
}

// properties are checked in this order. The second text of each property is reported with
// failures.
var properties = []property{
	{"rules", "any sequence of calls gives the answers and records of idempotency.Decide, Grant and ApplyEnding: stored bytes win, only proof ends a doubt, a claimant that was overtaken changes nothing, a repeated call is harmless", checkRules},
	{"races", "of any number of racing claims of one key, one is granted", checkRaces},
	{"batches", "a batch is decided as if its claims were made one after another", checkBatches},
	{"batch races", "batches over the same keys in any order win each key once and never block each other", checkBatchRaces},
	{"writes", "endings and claims of one Write have the answers of Finish and ClaimBatch, each on its own (stores with a Writer)", checkWrites},
	{"quotas", "a scope with as many unfinished operations as its quota begins no operation; all other calls work, and other scopes are not affected (stores with quotas)", checkQuotas},
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
