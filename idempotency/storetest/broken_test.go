package storetest

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// faultyStore is an in-memory store. A test gives it a fault by setting a flag or
// replacing a function.
type faultyStore struct {
	mu      sync.Mutex
	records map[string]idempotency.Record
	fence   int64
	offset  atomic.Int64

	decide    func(idempotency.Record, idempotency.Claim, time.Time) idempotency.Decision
	grant     func(r, found idempotency.Record, c idempotency.Claim, d idempotency.Decision) idempotency.Record
	finish    func(idempotency.Record, idempotency.Ref, idempotency.Ending, time.Time) (idempotency.Record, error)
	id        func(idempotency.Key) string
	nextFence func(b *faultyStore, found idempotency.Record) int64
	alter     func(idempotency.Record) idempotency.Record // changes each record before the store saves it

	lookup         func(b *faultyStore, r idempotency.Record) idempotency.Record
	batch          func(b *faultyStore, claims []idempotency.Claim) ([]idempotency.Outcome, error)
	unlocksEarly   bool // a claim unlocks mu between reading and writing the record
	skipsChecks    bool // of arguments
	ignoresContext bool
	sharesMemory   bool
	scansBackward  bool
	replaced       map[string]idempotency.Record // for each key, the record before the last change

	quota        int64                                                                // limit of unfinished operations in a scope; 0 is unlimited
	counts       func(b *faultyStore, r idempotency.Record, c idempotency.Claim) bool // reports whether r is unfinished and in the scope of c
	quotaApplies func(d idempotency.Decision, found idempotency.Record) bool          // reports whether the quota limits a claim with the decision d
}

func newFaultyStore() *faultyStore {
	return &faultyStore{
		records: map[string]idempotency.Record{}, replaced: map[string]idempotency.Record{},
		decide: idempotency.Decide, finish: idempotency.ApplyEnding,
		grant: func(r, _ idempotency.Record, _ idempotency.Claim, _ idempotency.Decision) idempotency.Record {
			return r
		},
		id:        func(k idempotency.Key) string { return k.ID().String() },
		nextFence: func(b *faultyStore, _ idempotency.Record) int64 { b.fence++; return b.fence },
		alter:     func(r idempotency.Record) idempotency.Record { return r },
		counts: func(_ *faultyStore, r idempotency.Record, c idempotency.Claim) bool {
			return r.Status == idempotency.StatusRunning && r.Key.Scope == c.Key.Scope
		},
		quotaApplies: func(d idempotency.Decision, _ idempotency.Record) bool { return d == idempotency.DecisionNew },
	}
}

func (b *faultyStore) now() time.Time {
	return time.Now().Add(time.Duration(b.offset.Load())).UTC().Truncate(time.Microsecond)
}

func (b *faultyStore) copied(r idempotency.Record) idempotency.Record {
	if !b.sharesMemory {
		r.Body, r.Result.Response = slices.Clone(r.Body), slices.Clone(r.Result.Response)
	}
	return r
}

func (b *faultyStore) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	outs, err := b.claims(ctx, []idempotency.Claim{c}, c.Check)
	if err != nil {
		return idempotency.Outcome{}, err
	}
	return outs[0], nil
}

func (b *faultyStore) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if b.batch != nil {
		return b.batch(b, claims)
	}
	return b.claims(ctx, claims, func() error { return idempotency.CheckBatch(claims) })
}

func (b *faultyStore) claims(ctx context.Context, claims []idempotency.Claim, check func() error) ([]idempotency.Outcome, error) {
	if err := check(); err != nil && !b.skipsChecks {
		return nil, err
	}
	if err := ctx.Err(); err != nil && !b.ignoresContext {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var outs []idempotency.Outcome
	for _, c := range claims {
		found := b.records[b.id(c.Key)]
		if b.unlocksEarly {
			b.mu.Unlock()
			time.Sleep(time.Millisecond)
			b.mu.Lock()
		}
		now := b.now()
		d := b.decide(found, c, now)
		found.ReadAt = now
		if d.Granted() && b.overQuota(found, c, d) {
			outs = append(outs, idempotency.Outcome{Decision: idempotency.DecisionOverQuota, Quota: b.quota})
			continue
		}
		if d.Granted() {
			r := b.alter(b.grant(idempotency.Grant(found, c, d, b.nextFence(b, found), now), found, c, d))
			b.replaced[b.id(c.Key)] = found
			b.records[b.id(c.Key)] = b.copied(r)
			found = r
		}
		outs = append(outs, idempotency.NewOutcome(d, b.copied(found), c))
	}
	return outs, nil
}

// overQuota reports whether the quota, a limit of unfinished operations, refuses c. The
// caller holds b.mu.
func (b *faultyStore) overQuota(found idempotency.Record, c idempotency.Claim, d idempotency.Decision) bool {
	if b.quota == 0 || !b.quotaApplies(d, found) {
		return false
	}
	n := int64(0)
	for _, r := range b.records {
		if b.counts(b, r, c) {
			n++
		}
	}
	return n >= b.quota
}

func (b *faultyStore) Extend(ctx context.Context, ref idempotency.Ref, lease time.Duration) error {
	return b.Finish(ctx, ref, idempotency.Extended(lease))
}

func (b *faultyStore) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	if err := ref.Check(); err != nil && !b.skipsChecks {
		return err
	}
	if err := t.Check(); err != nil && !b.skipsChecks {
		return err
	}
	if err := ctx.Err(); err != nil && !b.ignoresContext {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.records[b.id(ref.Key)]
	r, err := b.finish(found, ref, t, b.now())
	if err == nil {
		b.replaced[b.id(ref.Key)] = found
		b.records[b.id(ref.Key)] = b.copied(b.alter(r))
	}
	return err
}

func (b *faultyStore) Lookup(ctx context.Context, keys ...idempotency.Key) ([]idempotency.Record, error) {
	for _, k := range keys {
		if err := k.Check(); err != nil && !b.skipsChecks {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil && !b.ignoresContext {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]idempotency.Record, len(keys))
	for i, k := range keys {
		r := b.records[b.id(k)]
		if b.lookup != nil {
			r = b.lookup(b, r)
		}
		if r.Status == idempotency.StatusAbsent {
			r = idempotency.Record{Key: k}
		}
		out[i] = b.copied(r)
		out[i].ReadAt = b.now()
	}
	return out, nil
}

func (b *faultyStore) Scan(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Record, error] {
	return func(yield func(idempotency.Record, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(idempotency.Record{}, err)
			return
		}
		b.mu.Lock()
		ids := slices.Sorted(maps.Keys(b.records))
		if b.scansBackward {
			slices.Reverse(ids)
		}
		b.mu.Unlock()
		for _, id := range ids {
			b.mu.Lock()
			r := b.copied(b.records[id])
			b.mu.Unlock()
			r.ReadAt = b.now()
			if f.Match(r) && !yield(r, nil) {
				return
			}
		}
	}
}

// Each row breaks one promise of a store. The check of this promise must then fail.
func TestBroken(t *testing.T) {
	decideAs := func(from, to idempotency.Decision) func(b *faultyStore) {
		return func(b *faultyStore) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, now time.Time) idempotency.Decision {
				if d := idempotency.Decide(r, c, now); d != from {
					return d
				}
				return to
			}
		}
	}
	settleAfter := func(change func(found, r *idempotency.Record, t idempotency.Ending)) func(b *faultyStore) {
		return func(b *faultyStore) {
			b.finish = func(found idempotency.Record, ref idempotency.Ref, tr idempotency.Ending, now time.Time) (idempotency.Record, error) {
				r, err := idempotency.ApplyEnding(found, ref, tr, now)
				if err == nil {
					change(&found, &r, tr)
				}
				return r, err
			}
		}
	}
	for _, tc := range []struct {
		name     string
		property string
		breaks   func(b *faultyStore)
	}{
		{"nothing is broken", "", func(*faultyStore) {}},
		{"a live claim is taken over", "rules", decideAs(idempotency.DecisionInProgress, idempotency.DecisionReclaimed)},
		{"a doubtful operation runs again", "rules", decideAs(idempotency.DecisionUnresolved, idempotency.DecisionReclaimed)},
		{"a key that is reused for another payload is a duplicate", "rules", decideAs(idempotency.DecisionConflict, idempotency.DecisionDuplicate)},
		{"another spec is a conflict", "rules", decideAs(idempotency.DecisionIncomparable, idempotency.DecisionConflict)},
		{"a claimant does not find its own claim", "rules", decideAs(idempotency.DecisionRenewed, idempotency.DecisionInProgress)},
		{"an expired record is a duplicate", "rules", func(b *faultyStore) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, _ time.Time) idempotency.Decision {
				return idempotency.Decide(r, c, r.Created)
			}
		}},
		{"a running operation expires", "rules", func(b *faultyStore) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, now time.Time) idempotency.Decision {
				if !r.Expires.IsZero() && r.Expires.Before(now) {
					return idempotency.DecisionNew
				}
				return idempotency.Decide(r, c, now)
			}
		}},
		{"later bytes replace the stored ones", "rules", func(b *faultyStore) {
			b.grant = func(r, _ idempotency.Record, c idempotency.Claim, _ idempotency.Decision) idempotency.Record {
				r.Body, r.Group, r.ExactHash = c.Body, c.Group, c.ExactHash
				return r
			}
		}},
		{"the window begins again with each claimant", "rules", func(b *faultyStore) {
			b.grant = func(r, _ idempotency.Record, c idempotency.Claim, _ idempotency.Decision) idempotency.Record {
				r.ResendUntil = b.now().Add(c.Terms.ResendFor)
				return r
			}
		}},
		{"a reclaimed record lives longer", "rules", func(b *faultyStore) {
			b.grant = func(r, _ idempotency.Record, c idempotency.Claim, _ idempotency.Decision) idempotency.Record {
				r.Created, r.Expires = b.now(), b.now().Add(c.Terms.TTL)
				return r
			}
		}},
		{"no new generation after expiry", "rules", func(b *faultyStore) {
			b.grant = func(r, _ idempotency.Record, _ idempotency.Claim, _ idempotency.Decision) idempotency.Record {
				r.Generation = 1
				return r
			}
		}},
		{"a claim that is refused proves too much", "rules", settleAfter(func(_, r *idempotency.Record, t idempotency.Ending) {
			if f, ok := t.Failure(); ok && f.Proof == idempotency.ProofForClaim {
				r.Status, r.DoubtSince = idempotency.StatusFailed, time.Time{}
			}
		})},
		{"an unknown outcome is a failure", "rules", settleAfter(func(_, r *idempotency.Record, t idempotency.Ending) {
			if _, ok := t.Failure(); ok {
				r.Status, r.DoubtSince = idempotency.StatusFailed, time.Time{}
			}
		})},
		{"a release forgets an older doubt", "rules", settleAfter(func(_, r *idempotency.Record, t idempotency.Ending) {
			_, done := t.Result()
			if _, failed := t.Failure(); !done && !failed {
				r.Status, r.DoubtSince = idempotency.StatusAbsent, time.Time{}
			}
		})},
		{"completion is unconditional", "rules", func(b *faultyStore) {
			b.finish = func(found idempotency.Record, ref idempotency.Ref, tr idempotency.Ending, now time.Time) (idempotency.Record, error) {
				ref.Fence = found.Fence
				return idempotency.ApplyEnding(found, ref, tr, now)
			}
		}},
		{"fences begin again for each key", "rules", func(b *faultyStore) {
			b.nextFence = func(_ *faultyStore, found idempotency.Record) int64 { return found.Fence + 1 }
		}},
		{"fences are times in seconds", "rules", func(b *faultyStore) {
			b.nextFence = func(b *faultyStore, _ idempotency.Record) int64 { return b.now().Unix() }
		}},
		{"an owner waits for the leases of its earlier process", "rules", func(b *faultyStore) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, now time.Time) idempotency.Decision {
				if r.Token != c.Token {
					c.Token = idempotency.Token{}
				}
				return idempotency.Decide(r, c, now)
			}
		}},
		{"any process of an owner takes over", "rules", func(b *faultyStore) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, now time.Time) idempotency.Decision {
				if d := idempotency.Decide(r, c, now); d != idempotency.DecisionInProgress || [6]byte(r.Token[:]) != [6]byte(c.Token[:]) {
					return d
				}
				return idempotency.DecisionReclaimed
			}
		}},
		{"a repeated completion is stale", "rules", func(b *faultyStore) {
			b.finish = func(found idempotency.Record, ref idempotency.Ref, tr idempotency.Ending, now time.Time) (idempotency.Record, error) {
				if found.Status != idempotency.StatusRunning {
					return found, idempotency.ErrStaleClaim
				}
				return idempotency.ApplyEnding(found, ref, tr, now)
			}
		}},
		{"a renewed claim gets another fence", "rules", func(b *faultyStore) {
			b.grant = func(r, _ idempotency.Record, _ idempotency.Claim, d idempotency.Decision) idempotency.Record {
				if d == idempotency.DecisionRenewed {
					b.fence++
					r.Fence = b.fence
				}
				return r
			}
		}},
		{"a third attempt has no doubt", "rules", func(b *faultyStore) {
			b.grant = func(r, _ idempotency.Record, _ idempotency.Claim, _ idempotency.Decision) idempotency.Record {
				if r.Attempts == 3 {
					r.DoubtSince = time.Time{}
				}
				return r
			}
		}},
		{"reading and writing are two steps", "races", func(b *faultyStore) { b.unlocksEarly = true }},
		{"a batch is read before it is written", "batches", func(b *faultyStore) {
			b.batch = func(b *faultyStore, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
				outs := make([]idempotency.Outcome, len(claims))
				for i := range slices.Backward(claims) {
					out, err := b.Claim(context.Background(), claims[i])
					if err != nil {
						return nil, err
					}
					outs[i] = out
				}
				return outs, idempotency.CheckBatch(claims)
			}
		}},
		{"batches race", "batch races", func(b *faultyStore) { b.unlocksEarly = true }},
		{"the last of two payloads wins", "linearizability", func(b *faultyStore) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, now time.Time) idempotency.Decision {
				if d := idempotency.Decide(r, c, now); d != idempotency.DecisionConflict || r.Status != idempotency.StatusRunning {
					return d
				}
				return idempotency.DecisionNew
			}
		}},
		{"keys are compared without case", "odd keys", func(b *faultyStore) {
			b.id = func(k idempotency.Key) string {
				return strings.ToLower(k.Scope + "\x01" + k.Operation + "\x01" + k.Value)
			}
		}},
		{"keys are joined with a colon", "odd keys", func(b *faultyStore) {
			b.id = func(k idempotency.Key) string { return k.Scope + ":" + k.Operation + ":" + k.Value }
		}},
		{"keys are cut", "odd keys", func(b *faultyStore) {
			b.id = func(k idempotency.Key) string {
				return k.Scope + "\x01" + k.Operation + "\x01" + k.Value[:min(len(k.Value), 255)]
			}
		}},
		{"an extension shortens a lease", "rules", settleAfter(func(_, r *idempotency.Record, e idempotency.Ending) {
			if lease, ok := e.Lease(); ok {
				r.LeaseUntil = r.ReadAt.Add(lease)
			}
		})},
		{"an extension counts as an attempt", "rules", settleAfter(func(_, r *idempotency.Record, e idempotency.Ending) {
			if _, ok := e.Lease(); ok {
				r.Attempts++
			}
		})},
		{"keys end at NUL", "odd keys", func(b *faultyStore) {
			b.id = func(k idempotency.Key) string {
				v, _, _ := strings.Cut(k.Value, "\x00")
				return k.Scope + "\x01" + k.Operation + "\x01" + v
			}
		}},
		{"bodies go through jsonb", "bytes", func(b *faultyStore) {
			b.alter = func(r idempotency.Record) idempotency.Record {
				var v any
				if json.Unmarshal(r.Body, &v) == nil {
					r.Body, _ = json.Marshal(v)
				}
				return r
			}
		}},
		{"responses are text", "bytes", func(b *faultyStore) {
			b.alter = func(r idempotency.Record) idempotency.Record {
				r.Result.Response = []byte(strings.ToValidUTF8(string(r.Result.Response), "\ufffd"))
				return r
			}
		}},
		{"an empty text is NULL, and NULL is empty", "texts", func(b *faultyStore) {
			b.alter = func(r idempotency.Record) idempotency.Record {
				if r.Dataset.ID == "NULL" {
					r.Dataset.ID = ""
				}
				return r
			}
		}},
		{"memory is shared", "memory", func(b *faultyStore) { b.sharesMemory = true }},
		{"arguments are not checked", "arguments", func(b *faultyStore) { b.skipsChecks = true }},
		{"a batch is made up to the claim that is wrong", "arguments", func(b *faultyStore) {
			b.batch = func(b *faultyStore, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
				var outs []idempotency.Outcome
				for _, c := range claims {
					if out, err := b.Claim(context.Background(), c); err == nil {
						outs = append(outs, out)
					}
				}
				return outs, idempotency.CheckBatch(claims)
			}
		}},
		{"scans have no order", "scans", func(b *faultyStore) { b.scansBackward = true }},
		{"contexts are ignored", "cancellation", func(b *faultyStore) { b.ignoresContext = true }},
		{"a quota has no effect", "quotas", func(b *faultyStore) {
			b.quotaApplies = func(idempotency.Decision, idempotency.Record) bool { return false }
		}},
		{"all scopes share a quota", "quotas", func(b *faultyStore) {
			b.counts = func(_ *faultyStore, r idempotency.Record, _ idempotency.Claim) bool {
				return r.Status == idempotency.StatusRunning
			}
		}},
		{"completed operations count towards the quota", "quotas", func(b *faultyStore) {
			b.counts = func(_ *faultyStore, r idempotency.Record, c idempotency.Claim) bool {
				return r.Status != idempotency.StatusFailed && r.Status != idempotency.StatusAbsent && r.Key.Scope == c.Key.Scope
			}
		}},
		{"failed operations count towards the quota", "quotas", func(b *faultyStore) {
			b.counts = func(_ *faultyStore, r idempotency.Record, c idempotency.Claim) bool {
				return (r.Status == idempotency.StatusRunning || r.Status == idempotency.StatusFailed) && r.Key.Scope == c.Key.Scope
			}
		}},
		{"released operations count towards the quota", "quotas", func(b *faultyStore) {
			b.counts = func(_ *faultyStore, r idempotency.Record, c idempotency.Claim) bool {
				return (r.Status == idempotency.StatusRunning || r.Status == idempotency.StatusAbsent) && r.Key.Scope == c.Key.Scope
			}
		}},
		{"an operation without a lease leaves the quota", "quotas", func(b *faultyStore) {
			b.counts = func(b *faultyStore, r idempotency.Record, c idempotency.Claim) bool {
				return r.Status == idempotency.StatusRunning && b.now().Before(r.LeaseUntil) && r.Key.Scope == c.Key.Scope
			}
		}},
		{"an operation with an unknown outcome leaves the quota", "quotas", func(b *faultyStore) {
			b.counts = func(_ *faultyStore, r idempotency.Record, c idempotency.Claim) bool {
				return r.Status == idempotency.StatusRunning && r.Reason == "" && r.Key.Scope == c.Key.Scope
			}
		}},
		{"a quota refuses known operations", "quotas", func(b *faultyStore) {
			b.quotaApplies = func(idempotency.Decision, idempotency.Record) bool { return true }
		}},
		{"a quota refuses resends", "quotas", func(b *faultyStore) {
			b.quotaApplies = func(d idempotency.Decision, _ idempotency.Record) bool { return d != idempotency.DecisionRenewed }
		}},
		{"failed operations begin again beyond the quota", "quotas", func(b *faultyStore) {
			b.quotaApplies = func(d idempotency.Decision, found idempotency.Record) bool {
				return d == idempotency.DecisionNew && found.Status != idempotency.StatusFailed
			}
		}},
		{"released operations begin again beyond the quota", "quotas", func(b *faultyStore) {
			b.quotaApplies = func(d idempotency.Decision, found idempotency.Record) bool {
				return d == idempotency.DecisionNew && found.Generation == 0
			}
		}},
		{"a batch exceeds the quota", "quotas", func(b *faultyStore) {
			b.batch = func(b *faultyStore, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
				if b.quota > 0 {
					b.quota++
					defer func() { b.quota-- }()
				}
				return b.claims(context.Background(), claims, func() error { return nil })
			}
		}},
		{"a reopened storage is empty", "reopening", nil},
		{"lookups are a write behind", "linearizability", func(b *faultyStore) {
			b.lookup = func(b *faultyStore, r idempotency.Record) idempotency.Record { return b.replaced[b.id(r.Key)] }
		}},
		{"claims race", "linearizability", func(b *faultyStore) { b.unlocksEarly = true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			fresh := func() Storage {
				b := newFaultyStore()
				if tc.breaks != nil {
					tc.breaks(b)
				}
				open := func() (idempotency.Store, error) { return b, nil }
				if tc.breaks == nil {
					opened := 0
					open = func() (idempotency.Store, error) {
						// The fault: each opening after the second deletes all records.
						// The check of the property "reopening" opens two stores, closes
						// both, and expects their records after the third opening.
						if opened++; opened > 2 {
							b.mu.Lock()
							clear(b.records)
							b.mu.Unlock()
						}
						return b, nil
					}
				}
				withQuota := func(quota int64) (idempotency.Store, error) {
					b.quota = quota
					return b, nil
				}
				return Storage{Open: open, OpenWithQuota: withQuota, Advance: func(d time.Duration) { b.offset.Add(int64(d)) }}
			}
			for _, p := range properties {
				if tc.property != "" && p.name != tc.property {
					continue
				}
				failures := p.failures(fresh)
				if tc.property == "" && len(failures) > 0 {
					t.Errorf("%s: a sound store fails: %q", p.name, failures)
				} else if tc.property != "" && len(failures) == 0 {
					t.Errorf("the property %q did not notice", p.name)
				}
			}
		})
	}
}

// The check of the property "reopening" accepts two unusual stores that keep the
// contract: one deletes expired records, and the other leaves gaps between its fences.
func TestReopeningOfSoundStores(t *testing.T) {
	reopening := properties[slices.IndexFunc(properties, func(p property) bool { return p.name == "reopening" })]
	for name, change := range map[string]func(b *faultyStore, opened int){
		"purges what has expired": func(b *faultyStore, _ int) {
			maps.DeleteFunc(b.records, func(_ string, r idempotency.Record) bool { return r.Expired(b.now()) })
		},
		// Each store begins its fences in a lower block than earlier stores, but the
		// fences of each key grow.
		"has blocks of fences": func(b *faultyStore, opened int) {
			b.fence = int64(1)<<40 - int64(opened)*10000
			b.nextFence = func(b *faultyStore, found idempotency.Record) int64 {
				if b.fence++; found.Fence > 0 {
					return found.Fence + 1<<41
				}
				return b.fence
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			failures := reopening.failures(func() Storage {
				b, opened := newFaultyStore(), 0
				return Storage{Open: func() (idempotency.Store, error) {
					opened++
					b.mu.Lock()
					defer b.mu.Unlock()
					change(b, opened)
					return b, nil
				}, Advance: func(d time.Duration) { b.offset.Add(int64(d)) }}
			})
			if len(failures) > 0 {
				t.Errorf("%q", failures)
			}
		})
	}
}
