package httpidem_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/httpidem"
)

// transaction is a transaction over a memory store. Rollback releases the claim; a commit
// makes the effect visible.
type transaction struct {
	store           *idempotency.Memory
	ref             idempotency.Ref
	effect          func()
	open, committed bool
	commit          error
}

func (tx *transaction) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	out, err := tx.store.Claim(ctx, c)
	if err == nil && out.Decision.Granted() {
		tx.ref, tx.open = out.Ref(), true
	}
	return out, err
}

func (tx *transaction) Complete(ctx context.Context, ref idempotency.Ref, r idempotency.Result) error {
	if err := r.Check(); err != nil {
		return err
	}
	if tx.commit != nil {
		return tx.commit
	}
	if err := tx.store.Finish(ctx, ref, idempotency.Completed(r)); err != nil {
		return err
	}
	tx.open, tx.committed = false, true
	if tx.effect != nil {
		tx.effect()
	}
	return nil
}

func (tx *transaction) Rollback() error {
	if tx.committed {
		return errors.New("rolled back after the commit")
	}
	if !tx.open {
		return nil
	}
	tx.open = false
	return tx.store.Finish(context.Background(), tx.ref, idempotency.Released())
}

type txKey struct{}

// inTransactions gives each request a transaction over the store in c.Store.
func inTransactions(c *httpidem.Config) {
	store := c.Store.(*idempotency.Memory)
	c.Store = nil
	c.Begin = func(ctx context.Context) (context.Context, httpidem.Transaction, error) {
		tx := &transaction{store: store}
		return context.WithValue(ctx, txKey{}, tx), tx, nil
	}
}

// The handler's effect exists if and only if the answer is stored.
func TestTransaction(t *testing.T) {
	g := newRig(inTransactions)
	effects, status, commit := 0, 0, error(nil)
	h := g.handler(t, func(w http.ResponseWriter, r *http.Request) {
		tx := r.Context().Value(txKey{}).(*transaction)
		tx.effect, tx.commit = func() { effects++ }, commit
		w.WriteHeader(status)
	})
	for _, tc := range []struct {
		name    string
		status  int
		commit  error
		want    int
		problem httpidem.ProblemType
		effects int
	}{
		{"server error", 500, nil, 500, "", 0},
		{"refused", 409, nil, 409, "", 0},
		{"commit fails", 201, errDown, 500, httpidem.ProblemOutcomeUnknown, 0},
		{"commit is not confirmed", 201, idempotency.ErrAmbiguous, 500, httpidem.ProblemOutcomeUnknown, 0},
		{"success", 201, nil, 201, "", 1},
		{"repeated", 500, nil, 201, "", 1},
	} {
		status, commit = tc.status, tc.commit
		if got := serve(h, request("/", "k", "b")); got.status != tc.want || got.problem() != tc.problem || effects != tc.effects {
			t.Errorf("%s: got %+v and %d effects, want %d and %d", tc.name, got, effects, tc.want, tc.effects)
		}
		if o := g.last(t); tc.commit == nil && o.Err != nil || !errors.Is(o.Err, tc.commit) {
			t.Errorf("%s: observed %v, want %v", tc.name, o.Err, tc.commit)
		}
	}
}

func TestTransactionDoesNotBegin(t *testing.T) {
	for name, begin := range map[string]func(context.Context) (context.Context, httpidem.Transaction, error){
		"error": func(ctx context.Context) (context.Context, httpidem.Transaction, error) { return nil, nil, errDown },
		"nil":   func(ctx context.Context) (context.Context, httpidem.Transaction, error) { return ctx, nil, nil },
		"nil context": func(context.Context) (context.Context, httpidem.Transaction, error) {
			return nil, new(transaction), nil
		},
	} {
		g := newRig(func(c *httpidem.Config) { c.Store, c.Begin = nil, begin })
		h := g.handler(t, func(http.ResponseWriter, *http.Request) { t.Error("the handler ran") })
		if got := serve(h, request("/", "k", "b")); got.problem() != httpidem.ProblemStoreUnavailable || g.last(t).Err == nil {
			t.Errorf("%s: got %+v, %v", name, got, g.last(t).Err)
		}
	}
}

// The outcome of the first run is unknown, and the policy allows further runs. The second
// run had no effect (429), but the key stays in doubt because of the first run. The third
// run settles the outcome.
func TestRunAgainByPolicy(t *testing.T) {
	policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: idempotency.TTLRequest, Lease: httpidem.DefaultLease, Window: idempotency.Forever})
	if err != nil {
		t.Fatal(err)
	}
	g := newRig(func(c *httpidem.Config) { c.Policy = policy })
	var decision idempotency.Decision
	status := http.StatusBadGateway
	h := g.handler(t, func(w http.ResponseWriter, r *http.Request) {
		out, ok := httpidem.Claimed(r.Context())
		if decision = out.Decision; !ok || out.Record.Fence == 0 {
			t.Errorf("got %+v, %v, want the claim", out, ok)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "answer")
	})
	for _, step := range []struct {
		status   int
		decision idempotency.Decision
		ended    idempotency.Status
	}{
		{502, idempotency.DecisionNew, idempotency.StatusRunning},
		{429, idempotency.DecisionReclaimed, idempotency.StatusRunning},
		{201, idempotency.DecisionReclaimed, idempotency.StatusSucceeded},
	} {
		status = step.status
		got := serve(h, request("/", "k", "b"))
		if o := g.last(t); got.status != step.status || decision != step.decision || o.Ended != step.ended || o.Decision != step.decision {
			t.Errorf("%d: got %+v as %v, observed %+v", step.status, got, decision, o)
		}
	}
}

// A run takes longer than its lease, and another run takes over. The first run changes no
// record, and its client gets an error.
func TestOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: idempotency.TTLRequest, Lease: httpidem.DefaultLease, Window: idempotency.Forever})
		if err != nil {
			t.Fatal(err)
		}
		g := newRig(func(c *httpidem.Config) { c.Policy = policy })
		var runs atomic.Int64
		h := g.handler(t, func(w http.ResponseWriter, _ *http.Request) {
			answer := "by the second"
			if runs.Add(1) == 1 {
				time.Sleep(time.Hour)
				answer = "by the first"
			}
			_, _ = io.WriteString(w, answer)
		})
		first := make(chan reply)
		go func() { first <- serve(h, request("/", "k", "b")) }()
		time.Sleep(30 * time.Minute)
		if got := serve(h, request("/", "k", "b")); got.body != "by the second" || got.replayed() {
			t.Errorf("got %+v, want a second run", got)
		}
		if got := <-first; got.problem() != httpidem.ProblemTimedOut || !errors.Is(g.last(t).Err, idempotency.ErrStaleClaim) {
			t.Errorf("the first got %+v, %v, want TimedOut and ErrStaleClaim", got, g.last(t).Err)
		}
		if got := serve(h, request("/", "k", "b")); got.body != "by the second" || !got.replayed() {
			t.Errorf("got %+v, want the second one's answer", got)
		}
	})
}

// Outside of a run, MarkNoEffect does nothing and Claimed returns false.
func TestOutsideOfARun(t *testing.T) {
	httpidem.MarkNoEffect(t.Context())
	if out, ok := httpidem.Claimed(t.Context()); ok || out.Decision != idempotency.DecisionNone {
		t.Errorf("got %+v, %v, want nothing", out, ok)
	}
}

// The transaction ends before any answer is sent, so a slow client holds no locks. If the
// rollback fails, Config.Observe gets the error.
func TestTransactionEndsBeforeTheAnswer(t *testing.T) {
	var current *transaction
	g := newRig(inTransactions)
	begin := g.config.Begin
	g.config.Begin = func(ctx context.Context) (context.Context, httpidem.Transaction, error) {
		ctx, tx, err := begin(ctx)
		current = tx.(*transaction)
		return ctx, failingRollback{current}, err
	}
	status := http.StatusBadGateway
	h := g.handler(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	for _, step := range []struct {
		status   int
		rollback bool
	}{{502, true}, {429, true}, {201, false}, {201, true}} {
		status = step.status
		w := &watcher{onWrite: func() {
			if current.open {
				t.Errorf("%d: the transaction is open at the first byte", step.status)
			}
		}}
		h.ServeHTTP(w, request("/", "k", "b"))
		if err := g.last(t).Err; step.rollback != errors.Is(err, errDown) {
			t.Errorf("%d: observed %v, want the error of the rollback: %v", step.status, err, step.rollback)
		}
	}
}

// failingRollback rolls back and returns an error.
type failingRollback struct{ *transaction }

func (tx failingRollback) Rollback() error { return errors.Join(tx.transaction.Rollback(), errDown) }
