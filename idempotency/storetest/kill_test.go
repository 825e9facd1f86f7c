package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

// dyingStore permits a number of claims, and then returns errEnded for each claim.
type dyingStore struct {
	idempotency.Store
	left atomic.Int32
}

var errEnded = errors.New("the server was killed")

func (e *dyingStore) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if e.left.Add(-1) < 0 {
		return idempotency.Outcome{}, errEnded
	}
	return e.Store.Claim(ctx, c)
}

// failures is a testing.TB that collects failures.
type failures struct {
	testing.TB
	texts []string
}

func (*failures) Helper()             {}
func (f *failures) Error(args ...any) { f.texts = append(f.texts, fmt.Sprint(args...)) }

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

// Witness.Check must report lost claims, a key granted twice, and a fence (claim number)
// used twice.
func TestWitness(t *testing.T) {
	call := func(w *storetest.Witness, s idempotency.Store, callers ...int) {
		t.Helper()
		for _, caller := range callers {
			e := &dyingStore{Store: s}
			e.left.Store(50)
			if err := w.Call(e, "round", caller); !errors.Is(err, errEnded) {
				t.Error(err)
			}
		}
	}
	var w storetest.Witness
	good := new(idempotency.Memory)
	call(&w, good, 0, 1, 9) // caller 9 shares the keys of caller 1
	if tally := w.Check(t, good); tally != (storetest.Tally{Claims: 100, Completions: 50}) {
		t.Errorf("a store that keeps its promises: %v", tally)
	}
	var found failures
	if tally := w.Check(&found, new(idempotency.Memory)); tally.Lost != tally.Claims || tally.Twice != tally.Claims || len(found.texts) != tally.Lost+tally.Twice {
		t.Errorf("a store that has lost everything: %v, %q", tally, found.texts)
	}
	for caller, want := range map[int]string{0: "key round-0 was granted twice", 2: "fence 1 was given to round-0 and round-2"} {
		var w storetest.Witness
		first, second := new(idempotency.Memory), new(idempotency.Memory)
		call(&w, first, 0)
		call(&w, second, caller)
		found = failures{}
		w.Check(&found, first)
		if all := strings.Join(found.texts, "\n"); !strings.Contains(all, want) {
			t.Errorf("two stores, caller %d: %.200s, want %s", caller, all, want)
		}
	}
}
