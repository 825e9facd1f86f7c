package storetest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

// ending is a store that ends after so many claims.
type ending struct {
	idempotency.Store
	left atomic.Int32
}

var errEnded = errors.New("the server was killed")

func (e *ending) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if e.left.Add(-1) < 0 {
		return idempotency.Outcome{}, errEnded
	}
	return e.Store.Claim(ctx, c)
}

// failures is a testing.TB that notes failures.
type failures struct {
	testing.TB
	texts []string
}

func (*failures) Helper()             {}
func (f *failures) Error(args ...any) { f.texts = append(f.texts, fmt.Sprint(args...)) }

func (f *failures) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

// A witness finds what a store has lost, granted twice, or numbered twice.
func TestWitness(t *testing.T) {
	call := func(w *storetest.Witness, s idempotency.Store, claims int32) {
		t.Helper()
		e := &ending{Store: s}
		e.left.Store(claims)
		var wg sync.WaitGroup
		for caller := range 16 {
			wg.Go(func() {
				if err := w.Call(e, "round", caller); !errors.Is(err, errEnded) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
	var w storetest.Witness
	good := new(idempotency.Memory)
	call(&w, good, 200)
	if tally := w.Check(t, good); tally.Claims == 0 || tally.Completions == 0 || tally.Lost+tally.Twice > 0 {
		t.Errorf("a store that keeps its promises: %v", tally)
	}
	var found failures
	if tally := w.Check(&found, new(idempotency.Memory)); tally.Lost != tally.Claims || tally.Twice != tally.Claims || len(found.texts) != tally.Lost+tally.Twice {
		t.Errorf("a store that has lost everything: %v, %q", tally, found.texts)
	}
	call(&w, new(idempotency.Memory), 200) // the same keys
	found = failures{}
	w.Check(&found, good)
	if all := strings.Join(found.texts, "\n"); !strings.Contains(all, "was granted twice") || !strings.Contains(all, "was given to") {
		t.Errorf("keys and fences that were given twice: %s", all)
	}
}
