package idempotency

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"sync"
	"time"
)

// Memory is a [Store] for tests and examples. Memory is not durable: all records are lost
// when the process ends. Memory keeps every other promise of a store. The zero Memory is
// ready to use, and must not be copied.
type Memory struct {
	// Now is the store's clock; nil means time.Now. Set it before the first call.
	Now func() time.Time

	// Capacity is the largest number of records, including expired records; 0 means
	// unlimited. Set it before the first call.
	Capacity int

	// Quota is the largest number of unfinished operations of one scope: see
	// [DefaultQuota]. Claims beyond Quota get the decision [DecisionOverQuota]. 0 means
	// DefaultQuota(Capacity), or unlimited without a Capacity. Set it before the first
	// call.
	Quota int64

	mu         sync.Mutex
	records    map[KeyID]Record
	unfinished map[string]int64 // running operations by scope
	fence      int64
}

var _ Store = (*Memory)(nil)

// Claim implements [Store].
func (m *Memory) Claim(ctx context.Context, c Claim) (Outcome, error) {
	if err := c.Check(); err != nil {
		return Outcome{}, err
	}
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.claim(c), nil
}

// ClaimBatch implements [Store].
func (m *Memory) ClaimBatch(ctx context.Context, claims []Claim) ([]Outcome, error) {
	if err := CheckBatch(claims); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]Outcome, len(claims))
	for i, c := range claims {
		out[i] = m.claim(c)
	}
	return out, nil
}

func (m *Memory) claim(c Claim) Outcome {
	id, now := c.Key.ID(), m.now()
	found, ok := m.records[id]
	d := Decide(found, c, now)
	if !d.Granted() {
		found.ReadAt = now
		return NewOutcome(d, found.clone(), c)
	}
	if !ok && m.Capacity > 0 && len(m.records) >= m.Capacity {
		return Outcome{Decision: DecisionFull}
	}
	if quota := m.quota(); d == DecisionNew && quota > 0 && m.unfinished[c.Key.Scope] >= quota {
		return Outcome{Decision: DecisionOverQuota, Quota: quota}
	}
	m.fence++
	r := Grant(found, c, d, m.fence, now).clone()
	m.put(id, r)
	return NewOutcome(d, r.clone(), c)
}

// quota returns the effective quota, or 0 for unlimited.
func (m *Memory) quota() int64 {
	if m.Quota == 0 && m.Capacity > 0 {
		return DefaultQuota(int64(m.Capacity))
	}
	return m.Quota
}

// put stores r and updates the number of unfinished operations of its scope. The caller
// holds m.mu.
func (m *Memory) put(id KeyID, r Record) {
	if m.records == nil {
		m.records, m.unfinished = map[KeyID]Record{}, map[string]int64{}
	}
	switch before := m.records[id].Status == StatusRunning; {
	case before == (r.Status == StatusRunning):
	case before:
		if m.unfinished[r.Key.Scope]--; m.unfinished[r.Key.Scope] == 0 {
			delete(m.unfinished, r.Key.Scope)
		}
	default:
		m.unfinished[r.Key.Scope]++
	}
	m.records[id] = r
}

// Finish implements [Store].
func (m *Memory) Finish(ctx context.Context, ref Ref, t Ending) error {
	if err := ref.Check(); err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := ref.Key.ID()
	r, err := ApplyEnding(m.records[id], ref, t, m.now())
	if err != nil {
		return err
	}
	m.put(id, r.clone())
	return nil
}

// Extend implements [Store].
func (m *Memory) Extend(ctx context.Context, ref Ref, lease time.Duration) error {
	return m.Finish(ctx, ref, Extended(lease))
}

// Lookup implements [Store].
func (m *Memory) Lookup(ctx context.Context, keys ...Key) ([]Record, error) {
	for _, k := range keys {
		if err := k.Check(); err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	out := make([]Record, len(keys))
	for i, k := range keys {
		if r := m.records[k.ID()]; r.Status != StatusAbsent {
			out[i] = r.clone()
		}
		out[i].Key, out[i].ReadAt = k, now
	}
	return out, nil
}

// Scan implements [Store].
func (m *Memory) Scan(ctx context.Context, f Filter) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		m.mu.Lock()
		ids := make([]KeyID, 0, len(m.records))
		for id := range m.records {
			ids = append(ids, id)
		}
		m.mu.Unlock()
		slices.SortFunc(ids, func(a, b KeyID) int { return bytes.Compare(a[:], b[:]) })
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				yield(Record{}, err)
				return
			}
			m.mu.Lock()
			r := m.records[id].clone()
			r.ReadAt = m.now()
			m.mu.Unlock()
			if f.Match(r) && !yield(r, nil) {
				return
			}
		}
	}
}

// Purge deletes all expired and released records, and returns the number of deleted
// records. The next claim of a purged key gets Generation 1 and a greater fence than all
// earlier claims.
func (m *Memory) Purge(ctx context.Context) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, now := 0, m.now()
	for id, r := range m.records {
		if r.Expired(now) || r.Status == StatusAbsent {
			delete(m.records, id)
			n++
		}
	}
	return n, nil
}

// now returns the store's time. The caller holds m.mu.
func (m *Memory) now() time.Time {
	if m.Now != nil {
		return micros(m.Now())
	}
	return micros(time.Now())
}
