package systemtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

// Ledger has the methods of a ledger that the checks after a run need. *sqlstore.Ledger
// implements Ledger.
type Ledger interface {
	Head(ctx context.Context) (ledger.Head, error)
	Lines(ctx context.Context, after ledger.Head) iter.Seq2[ledger.Line, error]
}

// witness records each answer of the store, even if the answer gets lost on the way to a
// process. At the end of the run, it compares the store's ledger with the recorded answers.
type witness struct {
	w *world

	mu         sync.Mutex
	claims     map[claimed]*claimAnswers
	savedHeads []ledger.Head
}

// claimed identifies one granted claim. The fence is the number of the claim in the
// store.
type claimed struct {
	key   idempotency.Key
	fence int64
}

// claimAnswers has the store's answers to all successful calls for one granted claim.
type claimAnswers struct {
	granted idempotency.Record // from the answer that granted the claim
	resend  bool               // Claim.Resend of the granted claim

	// grants has one event for each call that granted or renewed the claim: Claimed,
	// DecisionRenewed or DecisionReclaimed.
	grants []ledger.Event

	// inDoubts is the number of successful calls of Finish with ProofNone. The store may
	// ignore a repeated call.
	inDoubts int

	// ends has the event of each successful call of Finish, except with ProofNone. The ledger
	// has only the event of the call that ended the claim, not of repeated calls.
	ends []ledger.Event
}

// saveHead saves the current head of the ledger. The head is the number and the hash of the
// last seal. At the end of the run, the ledger must contain each saved head.
func (v *witness) saveHead() {
	head, err := v.w.storage.Ledger.Head(context.Background())
	if err != nil {
		v.w.fail("", "the head of the ledger: %v", err)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.savedHeads = append(v.savedHeads, head)
}

func (v *witness) saw(k idempotency.Key, fence int64, f func(*claimAnswers)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := claimed{k, fence}
	if v.claims[at] == nil {
		v.claims[at] = new(claimAnswers)
	}
	f(v.claims[at])
}

// watched is a store with a witness. The witness records the answers of the store.
type watched struct {
	idempotency.Store
	*witness
}

func (s watched) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	out, err := s.ClaimBatch(ctx, []idempotency.Claim{c})
	if err != nil {
		return idempotency.Outcome{}, err
	}
	return out[0], nil
}

func (s watched) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	out, err := s.Store.ClaimBatch(ctx, claims)
	if err != nil {
		s.failed("claim", err)
		return nil, err
	}
	for i, o := range out {
		event := map[idempotency.Decision]ledger.Event{
			idempotency.DecisionNew: ledger.EventClaimed, idempotency.DecisionRenewed: ledger.EventRenewed, idempotency.DecisionReclaimed: ledger.EventReclaimed,
		}[o.Decision]
		if event == "" {
			continue
		}
		s.saw(claims[i].Key, o.Record.Fence, func(c *claimAnswers) {
			if event != ledger.EventRenewed {
				c.granted, c.resend = o.Record, claims[i].Resend
			}
			c.grants = append(c.grants, event)
		})
	}
	return out, nil
}

func (s watched) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	event := ledger.EventReleased
	if f, ok := t.Failure(); ok && f.Proof == idempotency.ProofNone {
		event = ledger.EventInDoubt
	} else if ok {
		event = ledger.EventFailed
	} else if _, ok := t.Result(); ok {
		event = ledger.EventCompleted
	}
	return s.finished(ref, event, s.Store.Finish(ctx, ref, t))
}

func (s watched) finished(ref idempotency.Ref, event ledger.Event, err error) error {
	if err != nil {
		s.failed(string(event), err)
		return err
	}
	s.saw(ref.Key, ref.Fence, func(c *claimAnswers) {
		if event == ledger.EventInDoubt {
			c.inDoubts++
		} else {
			c.ends = append(c.ends, event)
		}
	})
	return nil
}

// failed handles an error of the store. Stale claims and closed stores are part of the
// simulation. Any other error fails the run, because the ledger may or may not have an
// entry for the call.
func (v *witness) failed(call string, err error) {
	if !errors.Is(err, idempotency.ErrStaleClaim) && !errors.Is(err, idempotency.ErrClosed) {
		v.w.fail("", "the store, %s: %v", call, err)
	}
}

// check compares the ledger with the recorded answers of the store. Each change confirmed
// by the store must be in the ledger once, and the changes of one key in their order. The
// ledger must also contain all hashes saved by saveHead.
func (v *witness) check(records iter.Seq2[idempotency.Record, error]) {
	ctx := context.Background()
	v.saveHead()
	l := v.w.storage.Ledger
	report, err := ledger.Verify(l.Lines(ctx, ledger.Head{}), v.savedHeads...)
	if err != nil {
		v.w.fail("", "the ledger: %v", err)
		return
	}
	v.w.totals.entries = int(report.Entries)
	entries := map[idempotency.Key][]ledger.Entry{}
	for line, err := range l.Lines(ctx, ledger.Head{}) {
		if err != nil {
			v.w.fail("", "the lines of the ledger: %v", err)
			return
		}
		if e := line.Entry; e != nil {
			entries[e.Key] = append(entries[e.Key], *e)
		}
	}
	last := map[idempotency.Key]ledger.Entry{}
	for key, list := range entries {
		last[key] = list[len(list)-1]
		if !slices.IsSortedFunc(list, func(a, b ledger.Entry) int {
			return cmp.Or(cmp.Compare(a.Fence, b.Fence), a.At.Compare(b.At))
		}) {
			v.w.fail(key.Value, "its entries are not in the order of its claims: %v", short(list))
		}
		for len(list) > 0 {
			n := slices.IndexFunc(list, func(e ledger.Entry) bool { return e.Fence != list[0].Fence })
			if n < 0 {
				n = len(list)
			}
			at := claimed{key, list[0].Fence}
			if wrong := v.claims[at].difference(list[:n]); wrong != "" {
				v.w.fail(key.Value, "claim %d of %s: %s, the ledger has %v", at.fence, key.Operation, wrong, short(list[:n]))
			}
			delete(v.claims, at)
			list = list[n:]
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(v.claims), func(a, b claimed) int { return cmp.Compare(a.fence, b.fence) }) {
		v.w.fail(at.key.Value, "the ledger does not have claim %d of %s", at.fence, at.key.Operation)
	}
	for r, err := range records {
		if err != nil {
			v.w.fail("", "scan: %v", err)
			return
		}
		if e := last[r.Key]; e.Fence != r.Fence || e.Status != r.Status.String() || e.Attempts != r.Attempts || e.Generation != r.Generation {
			v.w.fail(r.Key.Value, "the record of %s is %v with fence %d and %d attempts, the last entry %v", r.Key.Operation, r.Status, r.Fence, r.Attempts, e)
		}
	}
}

// difference compares the ledger entries of one claim with c, the recorded answers of the
// store. It describes the first difference, or returns "". If no answer was recorded, c
// is nil.
func (c *claimAnswers) difference(entries []ledger.Entry) string {
	if c == nil {
		return "nobody saw it"
	}
	first := entries[0]
	if g := c.granted; len(c.grants) == 0 || first.Fingerprint != g.Fingerprint || first.Body != ledger.Hash(g.ExactHash) ||
		first.Attempts != g.Attempts || first.Generation != g.Generation || first.Resend != c.resend || !first.At.Equal(g.ReadAt) {
		return fmt.Sprintf("the store granted attempt %d of generation %d of the payload %v at %v", g.Attempts, g.Generation, g.Fingerprint, g.ReadAt)
	}
	var grants, ends []ledger.Event
	inDoubt := 0
	for i, e := range entries {
		switch e.Event {
		case ledger.EventClaimed, ledger.EventReclaimed:
			if i > 0 {
				return "it was claimed once"
			}
			grants = append(grants, e.Event)
		case ledger.EventRenewed:
			grants = append(grants, e.Event)
		case ledger.EventInDoubt:
			inDoubt++
		default:
			if i < len(entries)-1 {
				return "nothing changes under a claim that has ended"
			}
			ends = append(ends, e.Event)
		}
	}
	// Ignore the order: the witness may have recorded the answers of concurrent calls in
	// another order than the ledger.
	slices.Sort(c.grants)
	slices.Sort(grants)
	switch {
	case !slices.Equal(grants, c.grants):
		return fmt.Sprintf("the store granted it %v", c.grants)
	case inDoubt > c.inDoubts || (inDoubt == 0) != (c.inDoubts == 0):
		return fmt.Sprintf("it was in doubt %d times", c.inDoubts)
	case len(c.ends) == 0 && len(ends) > 0, len(c.ends) > 0 && (len(ends) == 0 || !slices.Contains(c.ends, ends[0])):
		return fmt.Sprintf("the store confirmed as its end %v", c.ends)
	}
	return ""
}

// short returns one line of text for each entry, for an error message.
func short(entries []ledger.Entry) (out []string) {
	for _, e := range entries {
		out = append(out, fmt.Sprintf("%s with fence %d", e.Event, e.Fence))
	}
	return out
}
