package sqlstore

import (
	"context"
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// admit returns the claims that Capacity and Quota permit, and sets known[c.id].refusal
// for all others. The parameter `own` is false if a caller began tx.
func (s *Store) admit(ctx context.Context, tx writer, firsts []undecidedClaim, known map[idempotency.KeyID]*keyState, own bool) ([]claimOf, error) {
	claims := make([]claimOf, 0, len(firsts))
	room, err := s.room(ctx, tx, firsts, known)
	if err != nil {
		return nil, err
	}
	quotas, err := s.quotas(ctx, tx, firsts, known, own)
	if err != nil {
		return nil, err
	}
	var over []claimOf
	for _, o := range firsts {
		c := o.claims[o.i]
		f := known[c.id]
		switch {
		case !f.exists && room <= 0:
			f.refusal = idempotency.DecisionFull
			continue
		case quotas != nil && beginsNew(f.record, c):
			if quotas[c.Key.Scope] <= 0 {
				over = append(over, c)
				continue
			}
			quotas[c.Key.Scope]--
		}
		if !f.exists {
			room--
		}
		claims = append(claims, c)
	}
	if len(over) == 0 {
		return claims, nil
	}
	ids := make([]idempotency.KeyID, len(over))
	for i, c := range over {
		ids[i] = c.id
	}
	// The records in the map `known` may be outdated. Read the records again before
	// refusing claims.
	records, err := s.engine.read(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	for _, c := range over {
		if !beginsNew(records[c.id], c) {
			claims = append(claims, c)
			continue
		}
		known[c.id].refusal = idempotency.DecisionOverQuota
		if s.noRoom.IsDueAt(s.age()) {
			s.config.Logger.Warn("sqlstore: a scope has used its quota of unfinished operations; its new operations are refused", "scope", c.Key.Scope, "quota", s.config.Quota)
		}
	}
	return claims, nil
}

// beginsNew reports whether c begins a new operation, given the record of its key.
func beginsNew(found idempotency.Record, c claimOf) bool {
	return idempotency.Decide(found, c.Claim, found.ReadAt) == idempotency.DecisionNew
}

// room returns the number of rows that the store can still add. It logs a warning if the
// claims leave less than a tenth of Capacity.
func (s *Store) room(ctx context.Context, tx writer, firsts []undecidedClaim, known map[idempotency.KeyID]*keyState) (int64, error) {
	if s.config.Capacity == 0 {
		return int64(len(firsts)), nil
	}
	n, err := s.engine.count(ctx, tx)
	if err != nil {
		return 0, err
	}
	after := n
	for _, o := range firsts {
		if !known[o.claims[o.i].id].exists {
			after++
		}
	}
	if after >= s.config.Capacity-s.config.Capacity/10 && s.nearFull.IsDueAt(s.age()) {
		s.config.Logger.Warn("sqlstore: the store is nearly full; a full store refuses new keys", "records", min(after, s.config.Capacity), "capacity", s.config.Capacity)
	}
	return s.config.Capacity - n, nil
}

// quotas returns the number of new operations that may begin in each scope. The result has
// only scopes in which a claim would begin a new operation. The number comes from the
// scope's allowance if the parameter `own` is true and the method `reserve` does not demand
// a count. Otherwise it comes from a count of the scope's unfinished operations. Without
// Config.Quota the result is nil.
func (s *Store) quotas(ctx context.Context, tx writer, firsts []undecidedClaim, known map[idempotency.KeyID]*keyState, own bool) (map[string]int64, error) {
	if s.config.Quota == 0 {
		return nil, nil
	}
	want := map[string]int64{}
	for _, o := range firsts {
		if c := o.claims[o.i]; beginsNew(known[c.id].record, c) {
			want[c.Key.Scope]++
		}
	}
	quotas := make(map[string]int64, len(want))
	var scopes []string
	for scope, n := range want {
		if !own {
			// A caller's transaction may commit late or never, so an allowance would be
			// inexact. Delete the scope's allowance: the store must count.
			s.allowances.remove(scope)
		} else if remaining, ok := s.allowances.reserve(scope, n, s.age()); ok {
			quotas[scope] = remaining
			continue
		}
		scopes = append(scopes, scope)
	}
	if len(scopes) == 0 {
		return quotas, nil
	}
	start := s.age()
	unfinished, err := s.engine.unfinished(ctx, tx, scopes, s.config.Quota)
	if err != nil {
		return nil, fmt.Errorf("sqlstore: quota: %w", err)
	}
	age := s.age()
	for _, scope := range scopes {
		n := unfinished[scope]
		quotas[scope] = s.config.Quota - n
		if own {
			s.allowances.setAfterCount(scope, n, s.config.Quota-n-want[scope], age, age-start)
		}
	}
	return quotas, nil
}
