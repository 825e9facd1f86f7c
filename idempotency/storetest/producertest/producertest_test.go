package producertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest/producertest"
)

// memory is a storage in memory, with optional faults.
type memory struct {
	idempotency.Memory
	ahead, down atomic.Int64
	faults
}

type faults struct {
	forgets  bool // loses records when reopened
	careless bool // during an outage, answers like an empty store instead of failing
	granted  func(*idempotency.Outcome)
	found    func(*idempotency.Record)
	settled  func(*idempotency.Result)
}

var errDown = errors.New("the storage is out of reach")

func (m *memory) storage() producertest.Storage {
	m.Now = func() time.Time { return time.Now().Add(time.Duration(m.ahead.Load())) }
	return producertest.Storage{
		Storage: storetest.Storage{
			Open: func() (idempotency.Store, error) {
				if m.forgets {
					return &memory{Memory: idempotency.Memory{Now: m.Now}}, nil
				}
				return m, nil
			},
			Advance:  func(d time.Duration) { m.ahead.Add(int64(d)) },
			Volatile: true,
		},
		Outage: func() (end func(), err error) {
			m.down.Add(1)
			return func() { m.down.Add(-1) }, nil
		},
	}
}

func (m *memory) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if m.down.Load() > 0 {
		if m.careless {
			return new(idempotency.Memory).ClaimBatch(ctx, claims)
		}
		return nil, errDown
	}
	out, err := m.Memory.ClaimBatch(ctx, claims)
	if m.granted != nil {
		for i := range out {
			m.granted(&out[i])
		}
	}
	return out, err
}

func (m *memory) Lookup(ctx context.Context, keys ...idempotency.Key) ([]idempotency.Record, error) {
	if m.down.Load() > 0 {
		if m.careless {
			return new(idempotency.Memory).Lookup(ctx, keys...)
		}
		return nil, errDown
	}
	records, err := m.Memory.Lookup(ctx, keys...)
	if m.found != nil {
		for i := range records {
			m.found(&records[i])
		}
	}
	return records, err
}

func (m *memory) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	r, completed := t.Result()
	if !completed {
		return m.Memory.Finish(ctx, ref, t)
	}
	if m.settled != nil {
		m.settled(&r)
	}
	return m.Memory.Finish(ctx, ref, idempotency.Completed(r))
}

func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, err := range producertest.Check(func() producertest.Storage { return new(memory).storage() }) {
			t.Error(err)
		}
	})
}

// If Storage.Outage is nil, Run skips the check of an outage and runs the others.
func TestWithoutOutage(t *testing.T) {
	producertest.Run(t, func(*testing.T) producertest.Storage {
		s := new(memory).storage()
		s.Outage = nil
		return s
	})
}

// Each store breaks a promise. The checks named in the field `found` must fail.
func TestBrokenStores(t *testing.T) {
	granted := func(o *idempotency.Outcome) {
		if d := o.Decision; d == idempotency.DecisionUnresolved || d == idempotency.DecisionInProgress || d == idempotency.DecisionDuplicate {
			o.Decision = idempotency.DecisionReclaimed
			o.Record.ResendUntil, o.Record.LeaseUntil = o.Record.ReadAt.Add(time.Hour), o.Record.ReadAt.Add(time.Hour)
		}
	}
	for name, tc := range map[string]struct {
		store faults
		found []string // names of the checks that must fail
	}{
		"forgets":               {faults{forgets: true}, []string{"restart", "lost request", "lost answer", "held", "rivals", "outage"}},
		"loses the IDs":         {faults{settled: func(r *idempotency.Result) { r.MessageID, r.SequenceNumber = "", "" }}, []string{"restart", "rivals", "outage"}},
		"loses bodies":          {faults{granted: func(o *idempotency.Outcome) { o.Record.Body = nil }, found: func(r *idempotency.Record) { r.Body = nil }}, []string{"restart", "lost request", "lost answer"}},
		"grants what is held":   {faults{granted: granted}, []string{"held"}},
		"answers in its outage": {faults{careless: true}, []string{"outage"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var found []string
			for _, err := range producertest.Check(func() producertest.Storage {
				return (&memory{faults: tc.store}).storage()
			}) {
				check, _, _ := strings.Cut(err.Error(), ":")
				found = append(found, check)
				t.Logf("%s: %v", name, err)
			}
			for _, check := range tc.found {
				if !slices.Contains(found, check) {
					t.Errorf("%s: not found by %s", name, check)
				}
			}
		})
	}
}
