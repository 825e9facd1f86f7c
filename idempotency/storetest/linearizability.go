package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// checkLinearizability runs random calls of concurrent clients over few keys through two
// stores. The checker porcupine searches for a sequential order allowed by the rules.
func checkLinearizability(p *probe) {
	for range 4 {
		history := p.history([]idempotency.Store{p.store, p.open()}, 8, 30)
		result, _ := porcupine.CheckOperationsVerbose(model, history, 20*time.Second)
		switch result {
		case porcupine.Illegal:
			p.fail("a history of %d calls of 8 clients has no order that the rules allow", len(history))
			return
		case porcupine.Unknown: // a timeout of the checker is not a failure
		}
	}
}

// call is the input of an operation in a history: a claim if claim is set, a call of
// Finish or Extend if ending is set, and otherwise a lookup.
type call struct {
	key      idempotency.Key
	claim    *idempotency.Claim
	repeated bool            // the second try of an interrupted claim
	ref      idempotency.Ref // claim to end or extend
	ending   *idempotency.Ending
}

// answer is the store's answer to a call.
type answer struct {
	outcome idempotency.Outcome
	record  idempotency.Record // result of a lookup
	err     error

	// unknown means that the calling process was killed before the answer. For a claim,
	// outcome.Record.Fence is set even so, because the model needs a fence: see the method
	// `history` of a recording.
	unknown bool
}

// history runs concurrent calls of several clients and returns the calls with their
// answers. All leases are long, so no answer depends on time.
func (p *probe) history(stores []idempotency.Store, clients, calls int) []porcupine.Operation {
	keys := []idempotency.Key{p.key(), p.key(), p.key()}
	var mu sync.Mutex
	var history []porcupine.Operation
	var refs []idempotency.Ref // all granted claims; any client may end any claim
	start := time.Now()
	var wg sync.WaitGroup
	for id := range clients {
		rng := rand.New(rand.NewPCG(p.rng.Uint64(), uint64(id)))
		store := stores[id%len(stores)]
		wg.Go(func() {
			for range calls {
				in := call{key: pick(rng, keys...)}
				mu.Lock()
				some := len(refs) > 0
				if some {
					in.ref = refs[max(0, len(refs)-1-rng.IntN(4))]
				}
				mu.Unlock()
				var out answer
				begin := time.Since(start)
				switch n := rng.IntN(8); {
				case n < 3 || !some:
					c := claim(in.key)
					c.Fingerprint = fingerprint(pick(rng, "payload", "payload", "payload", "another"))
					c.Terms.ResendFor = pick(rng, 0, idempotency.Forever, idempotency.Forever)
					c.Resend = rng.IntN(4) == 0
					in.claim = &c
					if rng.IntN(4) == 0 {
						ctx, cancel := context.WithTimeout(p.ctx, time.Duration(rng.IntN(2000))*time.Microsecond)
						out.outcome, out.err = store.Claim(ctx, c)
						cancel()
						in.repeated = out.err != nil
					}
					if !out.outcome.Decision.Granted() && (in.repeated || out.outcome.Decision == idempotency.DecisionNone) {
						out.outcome, out.err = store.Claim(p.ctx, c)
					}
				case n < 6:
					in.key = in.ref.Key
					t := pick(rng, idempotency.Completed(idempotency.Result{Response: fmt.Append(nil, rng.Uint32())}),
						idempotency.FailedWith(idempotency.Failure{Proof: idempotency.Proof(rng.IntN(3))}), idempotency.FailedWith(idempotency.Failure{}), idempotency.Released(), idempotency.Extended(2*long))
					in.ending = &t
					out.err = finish(p.ctx, store, in.ref, t)
				default:
					records, err := store.Lookup(p.ctx, in.key)
					if out.err = err; err == nil {
						out.record = records[0]
					}
				}
				end := time.Since(start)
				if out.err != nil && !errors.Is(out.err, idempotency.ErrStaleClaim) {
					p.fail("a call of a concurrent history: %v", out.err)
					return
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: id, Input: in, Call: int64(begin), Output: out, Return: int64(end)})
				if out.outcome.Decision.Granted() {
					refs = append(refs, out.outcome.Ref())
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return history
}

// model is the state machine of one key. It follows Decide, Grant and ApplyEnding of package
// idempotency.
var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[idempotency.Key][]porcupine.Operation{}
		for _, op := range history {
			k := op.Input.(call).key
			byKey[k] = append(byKey[k], op)
		}
		var out [][]porcupine.Operation
		for _, ops := range byKey {
			out = append(out, ops)
		}
		return out
	},
	Init: func() any { return idempotency.Record{} },
	Step: func(state, input, output any) (bool, any) {
		return step(state.(idempotency.Record), input.(call), output.(answer))
	},
	Equal: func(a, b any) bool { return a.(idempotency.Record).Equal(b.(idempotency.Record)) },
	DescribeOperation: func(input, output any) string {
		return fmt.Sprintf("%+v -> %+v", input, output)
	},
}

// instant is the time of all calls in the model, so no lease expires.
var instant = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func step(r idempotency.Record, in call, out answer) (bool, any) {
	switch {
	case out.unknown:
		// Assume that the call took effect. If it did not, porcupine can put it after all
		// others, where its effect changes no answer.
		return true, assumeEffect(r, in, out.outcome.Record.Fence)
	case in.claim != nil:
		d, got := idempotency.Decide(r, *in.claim, instant), out.outcome.Decision
		switch {
		case d == got && d.Granted():
			if d != idempotency.DecisionRenewed && out.outcome.Record.Fence <= r.Fence {
				return false, r
			}
			return true, idempotency.Grant(r, *in.claim, d, out.outcome.Record.Fence, instant)
		// The interrupted first try was granted, so the second try was Renewed. In the
		// model, both are one step.
		case in.repeated && got == idempotency.DecisionRenewed && d.Granted():
			return true, idempotency.Grant(r, *in.claim, d, out.outcome.Record.Fence, instant)
		// A store may also answer InProgress because another call is writing the record
		// at this moment. The claim then changes nothing.
		case got == idempotency.DecisionInProgress && d.Granted():
			return true, r
		case got == idempotency.DecisionDuplicate && out.outcome.Record.Result.Hash() != r.Result.Hash():
			return false, r
		}
		return d == got, r
	case in.ending != nil:
		next, err := idempotency.ApplyEnding(r, in.ref, *in.ending, instant)
		return (err == nil) == (out.err == nil), next
	default:
		same := out.record.Status == r.Status
		if same && r.Status != idempotency.StatusAbsent {
			same = out.record.Fence == r.Fence && out.record.Token == r.Token && out.record.Fingerprint == r.Fingerprint && out.record.Result.Hash() == r.Result.Hash()
		}
		return same, r
	}
}

// assumeEffect returns the record after a call that took effect without an answer.
func assumeEffect(r idempotency.Record, in call, fence int64) idempotency.Record {
	switch {
	case in.claim != nil:
		if d := idempotency.Decide(r, *in.claim, instant); d.Granted() {
			return idempotency.Grant(r, *in.claim, d, fence, instant)
		}
	case in.ending != nil:
		r, _ = idempotency.ApplyEnding(r, in.ref, *in.ending, instant)
	}
	return r
}
