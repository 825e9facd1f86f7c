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

// broken is an in-memory store whose functions a test may replace by broken ones.
type broken struct {
	mu      sync.Mutex
	records map[string]idempotency.Record
	fence   int64
	offset  atomic.Int64

	decide func(idempotency.Record, idempotency.Claim, time.Time) idempotency.Decision
	grant  func(r, found idempotency.Record, c idempotency.Claim, d idempotency.Decision) idempotency.Record
	settle func(idempotency.Record, idempotency.Ref, idempotency.Ending, time.Time) (idempotency.Record, error)
	id     func(idempotency.Key) string
	fences func(b *broken, found idempotency.Record) int64
	alter  func(idempotency.Record) idempotency.Record // changes each record before the store saves it

	race      bool // releases the lock between reading and writing a record
	lookups   func(b *broken, r idempotency.Record) idempotency.Record
	batch     func(b *broken, claims []idempotency.Claim) ([]idempotency.Outcome, error)
	unchecked bool // does not check arguments
	deaf      bool // ignores the end of a call's context
	shared    bool // does not copy the byte slices of its callers
	unsorted  bool // scans in the wrong order
	stale     map[string]idempotency.Record

	quota   int64                                                           // highest number of unfinished operations in a scope; 0 is unlimited
	counted func(b *broken, r idempotency.Record, c idempotency.Claim) bool // reports whether r counts toward the quota for c
	limited func(d idempotency.Decision, found idempotency.Record) bool     // reports whether the quota can refuse the claim
}

func newBroken() *broken {
	return &broken{
		records: map[string]idempotency.Record{}, stale: map[string]idempotency.Record{},
		decide: idempotency.Decide, settle: idempotency.Finish,
		grant: func(r, _ idempotency.Record, _ idempotency.Claim, _ idempotency.Decision) idempotency.Record {
			return r
		},
		id:     func(k idempotency.Key) string { return k.ID().String() },
		fences: func(b *broken, _ idempotency.Record) int64 { b.fence++; return b.fence },
		alter:  func(r idempotency.Record) idempotency.Record { return r },
		counted: func(_ *broken, r idempotency.Record, c idempotency.Claim) bool {
			return r.Status == idempotency.Running && r.Key.Scope == c.Key.Scope
		},
		limited: func(d idempotency.Decision, _ idempotency.Record) bool { return d == idempotency.New },
	}
}

func (b *broken) now() time.Time {
	return time.Now().Add(time.Duration(b.offset.Load())).UTC().Truncate(time.Microsecond)
}

func (b *broken) copied(r idempotency.Record) idempotency.Record {
	if !b.shared {
		r.Body, r.Result.Response = slices.Clone(r.Body), slices.Clone(r.Result.Response)
	}
	return r
}

func (b *broken) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	outs, err := b.claims(ctx, []idempotency.Claim{c}, c.Check)
	if err != nil {
		return idempotency.Outcome{}, err
	}
	return outs[0], nil
}

func (b *broken) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if b.batch != nil {
		return b.batch(b, claims)
	}
	return b.claims(ctx, claims, func() error { return idempotency.CheckBatch(claims) })
}

func (b *broken) claims(ctx context.Context, claims []idempotency.Claim, check func() error) ([]idempotency.Outcome, error) {
	if err := check(); err != nil && !b.unchecked {
		return nil, err
	}
	if err := ctx.Err(); err != nil && !b.deaf {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var outs []idempotency.Outcome
	for _, c := range claims {
		found := b.records[b.id(c.Key)]
		if b.race {
			b.mu.Unlock()
			time.Sleep(time.Millisecond)
			b.mu.Lock()
		}
		now := b.now()
		d := b.decide(found, c, now)
		found.ReadAt = now
		if d.Granted() && b.overQuota(found, c, d) {
			outs = append(outs, idempotency.Outcome{Decision: idempotency.OverQuota, Quota: b.quota})
			continue
		}
		if d.Granted() {
			r := b.alter(b.grant(idempotency.Grant(found, c, d, b.fences(b, found), now), found, c, d))
			b.stale[b.id(c.Key)] = found
			b.records[b.id(c.Key)] = b.copied(r)
			found = r
		}
		outs = append(outs, idempotency.NewOutcome(d, b.copied(found), c))
	}
	return outs, nil
}

// overQuota reports whether the quota refuses c. The caller holds b.mu.
func (b *broken) overQuota(found idempotency.Record, c idempotency.Claim, d idempotency.Decision) bool {
	if b.quota == 0 || !b.limited(d, found) {
		return false
	}
	n := int64(0)
	for _, r := range b.records {
		if b.counted(b, r, c) {
			n++
		}
	}
	return n >= b.quota
}

func (b *broken) Extend(ctx context.Context, ref idempotency.Ref, lease time.Duration) error {
	return b.Finish(ctx, ref, idempotency.Extended(lease))
}

func (b *broken) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	if err := ref.Check(); err != nil && !b.unchecked {
		return err
	}
	if err := t.Check(); err != nil && !b.unchecked {
		return err
	}
	if err := ctx.Err(); err != nil && !b.deaf {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.records[b.id(ref.Key)]
	r, err := b.settle(found, ref, t, b.now())
	if err == nil {
		b.stale[b.id(ref.Key)] = found
		b.records[b.id(ref.Key)] = b.copied(b.alter(r))
	}
	return err
}

func (b *broken) Lookup(ctx context.Context, keys ...idempotency.Key) ([]idempotency.Record, error) {
	for _, k := range keys {
		if err := k.Check(); err != nil && !b.unchecked {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil && !b.deaf {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]idempotency.Record, len(keys))
	for i, k := range keys {
		r := b.records[b.id(k)]
		if b.lookups != nil {
			r = b.lookups(b, r)
		}
		if r.Status == idempotency.Absent {
			r = idempotency.Record{Key: k}
		}
		out[i] = b.copied(r)
		out[i].ReadAt = b.now()
	}
	return out, nil
}

func (b *broken) Scan(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Record, error] {
	return func(yield func(idempotency.Record, error) bool) {
		if err := ctx.Err(); err != nil {
			yield(idempotency.Record{}, err)
			return
		}
		b.mu.Lock()
		ids := slices.Sorted(maps.Keys(b.records))
		if b.unsorted {
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

// TestBroken breaks each promise of a store in turn and expects the property that checks
// this promise to fail.
func TestBroken(t *testing.T) {
	decideAs := func(from, to idempotency.Decision) func(b *broken) {
		return func(b *broken) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, now time.Time) idempotency.Decision {
				if d := idempotency.Decide(r, c, now); d != from {
					return d
				}
				return to
			}
		}
	}
	settleAfter := func(change func(found, r *idempotency.Record, t idempotency.Ending)) func(b *broken) {
		return func(b *broken) {
			b.settle = func(found idempotency.Record, ref idempotency.Ref, tr idempotency.Ending, now time.Time) (idempotency.Record, error) {
				r, err := idempotency.Finish(found, ref, tr, now)
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
		breaks   func(b *broken)
	}{
		{"nothing is broken", "", func(*broken) {}},
		{"a live claim is taken over", "decisions", decideAs(idempotency.InProgress, idempotency.Reclaimed)},
		{"a doubtful operation runs again", "decisions", decideAs(idempotency.Unresolved, idempotency.Reclaimed)},
		{"a key that is reused for another payload is a duplicate", "decisions", decideAs(idempotency.Conflict, idempotency.Duplicate)},
		{"another spec is a conflict", "decisions", decideAs(idempotency.Unjudged, idempotency.Conflict)},
		{"a claimant does not find its own claim", "decisions", decideAs(idempotency.Renewed, idempotency.InProgress)},
		{"an expired record is a duplicate", "decisions", func(b *broken) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, _ time.Time) idempotency.Decision {
				return idempotency.Decide(r, c, r.Created)
			}
		}},
		{"a running operation expires", "decisions", func(b *broken) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, now time.Time) idempotency.Decision {
				if !r.Expires.IsZero() && r.Expires.Before(now) {
					return idempotency.New
				}
				return idempotency.Decide(r, c, now)
			}
		}},
		{"later bytes replace the stored ones", "grants", func(b *broken) {
			b.grant = func(r, _ idempotency.Record, c idempotency.Claim, _ idempotency.Decision) idempotency.Record {
				r.Body, r.Group, r.Seal = c.Body, c.Group, c.Seal
				return r
			}
		}},
		{"the window begins again with each claimant", "grants", func(b *broken) {
			b.grant = func(r, _ idempotency.Record, c idempotency.Claim, _ idempotency.Decision) idempotency.Record {
				r.ResendUntil = b.now().Add(c.Terms.ResendFor)
				return r
			}
		}},
		{"a reclaimed record lives longer", "grants", func(b *broken) {
			b.grant = func(r, _ idempotency.Record, c idempotency.Claim, _ idempotency.Decision) idempotency.Record {
				r.Created, r.Expires = b.now(), b.now().Add(c.Terms.TTL)
				return r
			}
		}},
		{"no new generation after expiry", "grants", func(b *broken) {
			b.grant = func(r, _ idempotency.Record, _ idempotency.Claim, _ idempotency.Decision) idempotency.Record {
				r.Generation = 1
				return r
			}
		}},
		{"a claim that is refused proves too much", "transitions", settleAfter(func(_, r *idempotency.Record, t idempotency.Ending) {
			if f, ok := t.Failure(); ok && f.Proof == idempotency.ProvenForClaim {
				r.Status, r.DoubtSince = idempotency.Failed, time.Time{}
			}
		})},
		{"an unknown outcome is a failure", "transitions", settleAfter(func(_, r *idempotency.Record, t idempotency.Ending) {
			if _, ok := t.Failure(); ok {
				r.Status, r.DoubtSince = idempotency.Failed, time.Time{}
			}
		})},
		{"a release forgets an older doubt", "transitions", settleAfter(func(_, r *idempotency.Record, t idempotency.Ending) {
			_, done := t.Result()
			if _, failed := t.Failure(); !done && !failed {
				r.Status, r.DoubtSince = idempotency.Absent, time.Time{}
			}
		})},
		{"completion is unconditional", "fences", func(b *broken) {
			b.settle = func(found idempotency.Record, ref idempotency.Ref, tr idempotency.Ending, now time.Time) (idempotency.Record, error) {
				ref.Fence = found.Fence
				return idempotency.Finish(found, ref, tr, now)
			}
		}},
		{"fences begin again for each key", "fences", func(b *broken) {
			b.fences = func(_ *broken, found idempotency.Record) int64 { return found.Fence + 1 }
		}},
		{"fences are times in seconds", "fences", func(b *broken) {
			b.fences = func(b *broken, _ idempotency.Record) int64 { return b.now().Unix() }
		}},
		{"an owner waits for the leases of its earlier process", "owners", func(b *broken) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, now time.Time) idempotency.Decision {
				if r.Token != c.Token {
					c.Token = idempotency.Token{}
				}
				return idempotency.Decide(r, c, now)
			}
		}},
		{"any process of an owner takes over", "owners", func(b *broken) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, now time.Time) idempotency.Decision {
				if d := idempotency.Decide(r, c, now); d != idempotency.InProgress || [6]byte(r.Token[:]) != [6]byte(c.Token[:]) {
					return d
				}
				return idempotency.Reclaimed
			}
		}},
		{"a repeated completion is stale", "repeated transitions", func(b *broken) {
			b.settle = func(found idempotency.Record, ref idempotency.Ref, tr idempotency.Ending, now time.Time) (idempotency.Record, error) {
				if found.Status != idempotency.Running {
					return found, idempotency.ErrStaleClaim
				}
				return idempotency.Finish(found, ref, tr, now)
			}
		}},
		{"a renewed claim gets another fence", "repeated transitions", func(b *broken) {
			b.grant = func(r, _ idempotency.Record, _ idempotency.Claim, d idempotency.Decision) idempotency.Record {
				if d == idempotency.Renewed {
					b.fence++
					r.Fence = b.fence
				}
				return r
			}
		}},
		{"a third attempt has no doubt", "programs", func(b *broken) {
			b.grant = func(r, _ idempotency.Record, _ idempotency.Claim, _ idempotency.Decision) idempotency.Record {
				if r.Attempts == 3 {
					r.DoubtSince = time.Time{}
				}
				return r
			}
		}},
		{"reading and writing are two steps", "races", func(b *broken) { b.race = true }},
		{"a batch is read before it is written", "batches", func(b *broken) {
			b.batch = func(b *broken, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
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
		{"batches race", "batch races", func(b *broken) { b.race = true }},
		{"the last of two payloads wins", "conflicts", func(b *broken) {
			b.decide = func(r idempotency.Record, c idempotency.Claim, now time.Time) idempotency.Decision {
				if d := idempotency.Decide(r, c, now); d != idempotency.Conflict || r.Status != idempotency.Running {
					return d
				}
				return idempotency.New
			}
		}},
		{"keys are compared without case", "odd keys", func(b *broken) {
			b.id = func(k idempotency.Key) string {
				return strings.ToLower(k.Scope + "\x01" + k.Operation + "\x01" + k.Value)
			}
		}},
		{"keys are joined with a colon", "odd keys", func(b *broken) {
			b.id = func(k idempotency.Key) string { return k.Scope + ":" + k.Operation + ":" + k.Value }
		}},
		{"keys are cut", "odd keys", func(b *broken) {
			b.id = func(k idempotency.Key) string {
				return k.Scope + "\x01" + k.Operation + "\x01" + k.Value[:min(len(k.Value), 255)]
			}
		}},
		{"an extension shortens a lease", "extensions", settleAfter(func(_, r *idempotency.Record, e idempotency.Ending) {
			if lease, ok := e.Lease(); ok {
				r.LeaseUntil = r.ReadAt.Add(lease)
			}
		})},
		{"an extension counts as an attempt", "extensions", settleAfter(func(_, r *idempotency.Record, e idempotency.Ending) {
			if _, ok := e.Lease(); ok {
				r.Attempts++
			}
		})},
		{"keys end at NUL", "odd keys", func(b *broken) {
			b.id = func(k idempotency.Key) string {
				v, _, _ := strings.Cut(k.Value, "\x00")
				return k.Scope + "\x01" + k.Operation + "\x01" + v
			}
		}},
		{"bodies go through jsonb", "bytes", func(b *broken) {
			b.alter = func(r idempotency.Record) idempotency.Record {
				var v any
				if json.Unmarshal(r.Body, &v) == nil {
					r.Body, _ = json.Marshal(v)
				}
				return r
			}
		}},
		{"responses are text", "bytes", func(b *broken) {
			b.alter = func(r idempotency.Record) idempotency.Record {
				r.Result.Response = []byte(strings.ToValidUTF8(string(r.Result.Response), "\ufffd"))
				return r
			}
		}},
		{"an empty text is NULL, and NULL is empty", "texts", func(b *broken) {
			b.alter = func(r idempotency.Record) idempotency.Record {
				if r.Dataset.ID == "NULL" {
					r.Dataset.ID = ""
				}
				return r
			}
		}},
		{"memory is shared", "memory", func(b *broken) { b.shared = true }},
		{"arguments are not checked", "arguments", func(b *broken) { b.unchecked = true }},
		{"a batch is made up to the claim that is wrong", "arguments", func(b *broken) {
			b.batch = func(b *broken, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
				var outs []idempotency.Outcome
				for _, c := range claims {
					if out, err := b.Claim(context.Background(), c); err == nil {
						outs = append(outs, out)
					}
				}
				return outs, idempotency.CheckBatch(claims)
			}
		}},
		{"scans have no order", "scans", func(b *broken) { b.unsorted = true }},
		{"contexts are ignored", "cancellation", func(b *broken) { b.deaf = true }},
		{"a quota has no effect", "quotas", func(b *broken) {
			b.limited = func(idempotency.Decision, idempotency.Record) bool { return false }
		}},
		{"all scopes share a quota", "quotas", func(b *broken) {
			b.counted = func(_ *broken, r idempotency.Record, _ idempotency.Claim) bool {
				return r.Status == idempotency.Running
			}
		}},
		{"completed operations count towards the quota", "quotas", func(b *broken) {
			b.counted = func(_ *broken, r idempotency.Record, c idempotency.Claim) bool {
				return r.Status != idempotency.Failed && r.Status != idempotency.Absent && r.Key.Scope == c.Key.Scope
			}
		}},
		{"failed operations count towards the quota", "quotas", func(b *broken) {
			b.counted = func(_ *broken, r idempotency.Record, c idempotency.Claim) bool {
				return (r.Status == idempotency.Running || r.Status == idempotency.Failed) && r.Key.Scope == c.Key.Scope
			}
		}},
		{"released operations count towards the quota", "quotas", func(b *broken) {
			b.counted = func(_ *broken, r idempotency.Record, c idempotency.Claim) bool {
				return (r.Status == idempotency.Running || r.Status == idempotency.Absent) && r.Key.Scope == c.Key.Scope
			}
		}},
		{"an operation without a lease leaves the quota", "quotas", func(b *broken) {
			b.counted = func(b *broken, r idempotency.Record, c idempotency.Claim) bool {
				return r.Status == idempotency.Running && b.now().Before(r.LeaseUntil) && r.Key.Scope == c.Key.Scope
			}
		}},
		{"an operation with an unknown outcome leaves the quota", "quotas", func(b *broken) {
			b.counted = func(_ *broken, r idempotency.Record, c idempotency.Claim) bool {
				return r.Status == idempotency.Running && r.Reason == "" && r.Key.Scope == c.Key.Scope
			}
		}},
		{"a quota refuses known operations", "quotas", func(b *broken) {
			b.limited = func(idempotency.Decision, idempotency.Record) bool { return true }
		}},
		{"a quota refuses resends", "quotas", func(b *broken) {
			b.limited = func(d idempotency.Decision, _ idempotency.Record) bool { return d != idempotency.Renewed }
		}},
		{"failed operations begin again beyond the quota", "quotas", func(b *broken) {
			b.limited = func(d idempotency.Decision, found idempotency.Record) bool {
				return d == idempotency.New && found.Status != idempotency.Failed
			}
		}},
		{"released operations begin again beyond the quota", "quotas", func(b *broken) {
			b.limited = func(d idempotency.Decision, found idempotency.Record) bool {
				return d == idempotency.New && found.Generation == 0
			}
		}},
		{"a batch exceeds the quota", "quotas", func(b *broken) {
			b.batch = func(b *broken, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
				if b.quota > 0 {
					b.quota++
					defer func() { b.quota-- }()
				}
				return b.claims(context.Background(), claims, func() error { return nil })
			}
		}},
		{"a reopened storage is empty", "reopening", nil},
		{"lookups are a write behind", "linearizability", func(b *broken) {
			b.lookups = func(b *broken, r idempotency.Record) idempotency.Record { return b.stale[b.id(r.Key)] }
		}},
		{"claims race", "linearizability", func(b *broken) { b.race = true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			fresh := func() Storage {
				b := newBroken()
				if tc.breaks != nil {
					tc.breaks(b)
				}
				open := func() (idempotency.Store, error) { return b, nil }
				if tc.breaks == nil {
					opened := 0
					open = func() (idempotency.Store, error) {
						// This is the fault: the third opening deletes all records. The
						// check of the property "reopening" opens two stores, closes them
						// and opens the third.
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

// The check of the property "reopening" accepts two unusual stores that keep the contract:
// one deletes expired records, and the other leaves gaps between its fences.
func TestReopeningOfSoundStores(t *testing.T) {
	reopening := properties[slices.IndexFunc(properties, func(p property) bool { return p.name == "reopening" })]
	for name, change := range map[string]func(b *broken, opened int){
		"purges what has expired": func(b *broken, _ int) {
			maps.DeleteFunc(b.records, func(_ string, r idempotency.Record) bool { return r.Expired(b.now()) })
		},
		// Each opened store numbers the fences of new keys from a separate block of
		// 10,000. A store opened later has a lower block. The next fence of the same key
		// is still higher.
		"has blocks of fences": func(b *broken, opened int) {
			b.fence = int64(1)<<40 - int64(opened)*10000
			b.fences = func(b *broken, found idempotency.Record) int64 {
				if b.fence++; found.Fence > 0 {
					return found.Fence + 1<<41
				}
				return b.fence
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			failures := reopening.failures(func() Storage {
				b, opened := newBroken(), 0
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
