package idempotency_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func newPolicy(t testing.TB, change func(*idempotency.PolicyConfig)) idempotency.Policy {
	t.Helper()
	c := idempotency.PolicyConfig{TTL: time.Hour, Lease: time.Minute}
	if change != nil {
		change(&c)
	}
	p, err := idempotency.NewPolicy(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newGuard(t testing.TB, store idempotency.Store, change func(*idempotency.PolicyConfig)) *idempotency.Guard {
	t.Helper()
	g, err := idempotency.NewGuard(idempotency.GuardConfig{Store: store, Policy: newPolicy(t, change)})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func request(value, body string) idempotency.Request {
	return idempotency.Request{
		Key:         idempotency.Key{Scope: "tenant", Operation: "pay", Value: value},
		Fingerprint: idempotency.FingerprintOf("pay/1", []byte(body)), Body: []byte(body), ExactHash: idempotency.ExactHashOf([]byte(body), ""),
	}
}

func returns(response string) func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
	return func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
		return idempotency.Result{Response: []byte(response)}, nil
	}
}

func returnsError(err error) func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
	return func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
		return idempotency.Result{}, err
	}
}

// The function `never`() returns an operation that fails the test if it runs.
func never(t *testing.T) func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
	return func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
		t.Helper()
		t.Error("the operation ran")
		return idempotency.Result{}, nil
	}
}

func TestGuardRunsOnce(t *testing.T) {
	g := newGuard(t, new(idempotency.Memory), nil)
	ctx := t.Context()
	first, err := g.Do(ctx, request("1", "a"), returns("paid"))
	if err != nil || first.Duplicate || string(first.Result.Response) != "paid" {
		t.Fatalf("got %+v, %v", first, err)
	}
	again := request("1", "a")
	again.ExactHash = idempotency.ExactHashOf([]byte("a "), "")
	second, err := g.Do(ctx, again, never(t))
	if err != nil || !second.Duplicate || !second.Drift || string(second.Result.Response) != "paid" {
		t.Errorf("got %+v, %v, want the stored result with drift", second, err)
	}
	var conflict *idempotency.ConflictError
	if _, err := g.Do(ctx, request("1", "b"), never(t)); !errors.As(err, &conflict) {
		t.Errorf("got %v, want a ConflictError", err)
	}
	if got, want := g.Stats(), (idempotency.GuardStats{Originals: 1, Duplicates: 1, Conflicts: 1, Drifts: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// After a failed run, the next call runs the operation if the error proves that there was
// no effect (NoEffect), or if the policy allows a second run.
func TestGuardAfterAFailure(t *testing.T) {
	refused := errors.New("refused")
	for _, tc := range []struct {
		name   string
		window time.Duration
		again  bool
		f      func(context.Context, idempotency.Outcome) (idempotency.Result, error)
		next   string // part of the next call's error, or "run" if its operation runs
	}{
		{"no effect", 0, false, returnsError(idempotency.NoEffect(refused)), "run"},
		{"no effect, wrapped", 0, false, returnsError(fmt.Errorf("pay: %w", idempotency.NoEffect(refused))), "run"},
		{"unknown", 0, false, returnsError(refused), "outcome of pay"},
		{"unknown, within the window", 5 * time.Minute, false, returnsError(refused), "run"},
		{"unknown, run again by policy", 0, true, returnsError(refused), "run"},
		{"too large a result", 0, false, func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
			return idempotency.Result{Response: make([]byte, idempotency.MaxResponse+1)}, nil
		}, "outcome of pay"},
	} {
		g := newGuard(t, new(idempotency.Memory), func(c *idempotency.PolicyConfig) { c.Window, c.Resend = tc.window, tc.again })
		if _, err := g.Do(t.Context(), request("1", "a"), tc.f); err == nil || strings.Contains(tc.name, "effect") && !errors.Is(err, refused) {
			t.Errorf("%s: the first call returned %v", tc.name, err)
		}
		ran := false
		_, err := g.Do(t.Context(), request("1", "a"), func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
			ran = true
			return idempotency.Result{}, nil
		})
		switch {
		case tc.next == "run" && (!ran || err != nil):
			t.Errorf("%s: the next call did not run: %v", tc.name, err)
		case tc.next != "run" && (ran || err == nil || !strings.Contains(err.Error(), tc.next)):
			t.Errorf("%s: the next call: ran %v, %v", tc.name, ran, err)
		}
	}
}

func TestGuardAfterAPanic(t *testing.T) {
	g := newGuard(t, new(idempotency.Memory), nil)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = g.Do(t.Context(), request("1", "a"), func(context.Context, idempotency.Outcome) (idempotency.Result, error) { panic("p") })
	}()
	var unresolved *idempotency.UnresolvedError
	if _, err := g.Do(t.Context(), request("1", "a"), never(t)); !errors.As(err, &unresolved) {
		t.Errorf("after a panic: got %v, want an UnresolvedError", err)
	}
}

// The operation's context ends with the lease. If another claimant takes over after the
// lease, the first claimant gets ErrStaleClaim.
func TestGuardLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, new(idempotency.Memory), func(c *idempotency.PolicyConfig) { c.Window = 5 * time.Minute })
		start := time.Now()
		_, err := g.Do(t.Context(), request("1", "a"), func(ctx context.Context, _ idempotency.Outcome) (idempotency.Result, error) {
			if _, err := g.Do(ctx, request("1", "a"), never(t)); err == nil {
				t.Error("a second call ran beside the first")
			} else if busy := (*idempotency.InProgressError)(nil); !errors.As(err, &busy) || busy.RetryAfter != time.Minute {
				t.Errorf("got %v, want an InProgressError with the rest of the lease", err)
			}
			<-ctx.Done()
			if took := time.Since(start); took != time.Minute {
				t.Errorf("the context ended after %v, want the lease", took)
			}
			if answer, err := g.Do(t.Context(), request("1", "a"), returns("by the second")); err != nil || answer.Duplicate {
				t.Errorf("after the lease: %+v, %v, want a run", answer, err)
			}
			return idempotency.Result{Response: []byte("by the first")}, nil
		})
		if !errors.Is(err, idempotency.ErrStaleClaim) {
			t.Errorf("the first got %v, want ErrStaleClaim", err)
		}
		if answer, err := g.Do(t.Context(), request("1", "a"), never(t)); err != nil || string(answer.Result.Response) != "by the second" {
			t.Errorf("got %q, %v, want the second one's result", answer.Result.Response, err)
		}
	})
}

// The guard stores the operation's result even if the caller's context has ended.
func TestGuardWithoutItsCaller(t *testing.T) {
	g := newGuard(t, new(idempotency.Memory), nil)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := g.Do(ctx, request("1", "a"), func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
		cancel()
		return idempotency.Result{Response: []byte("r")}, nil
	}); err != nil {
		t.Fatal(err)
	}
	if answer, err := g.Do(t.Context(), request("1", "a"), never(t)); err != nil || !answer.Duplicate {
		t.Errorf("got %+v, %v, want a duplicate", answer, err)
	}
}

// slow is a store with a delay after each claim.
type slow struct {
	idempotency.Store
	delay func()
}

func (s slow) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	out, err := s.Store.Claim(ctx, c)
	s.delay()
	return out, err
}

// An operation does not begin after the end of its lease or of its caller's context. A
// later call may run the operation.
func TestGuardDoesNotBeginTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, delay := range map[string]func(context.CancelFunc){
			"lease":  func(context.CancelFunc) { time.Sleep(61 * time.Second) },
			"caller": func(cancel context.CancelFunc) { cancel() },
		} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			memory := new(idempotency.Memory)
			_, err := newGuard(t, slow{memory, func() { delay(cancel) }}, nil).Do(ctx, request("1", "a"), never(t))
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v, want the context's error", name, err)
			}
			if _, err := newGuard(t, memory, nil).Do(t.Context(), request("1", "a"), returns("r")); err != nil {
				t.Errorf("%s: the next call: %v", name, err)
			}
		}
	})
}

// flaky is a store that loses answers, or returns an error for every claim.
type flaky struct {
	idempotency.Store
	lose atomic.Int64 // number of answers to lose
	down atomic.Bool
}

func (f *flaky) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if f.down.Load() {
		return idempotency.Outcome{}, errors.New("no route to host")
	}
	out, err := f.Store.Claim(ctx, c)
	if f.lose.Add(-1) >= 0 {
		return idempotency.Outcome{}, fmt.Errorf("commit: %w", idempotency.ErrAmbiguous)
	}
	return out, err
}

func (f *flaky) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	err := f.Store.Finish(ctx, ref, t)
	if f.lose.Add(-1) >= 0 {
		return fmt.Errorf("commit: %w", idempotency.ErrAmbiguous)
	}
	return err
}

func TestGuardRepeatsWhatWasNotConfirmed(t *testing.T) {
	store := &flaky{Store: new(idempotency.Memory)}
	g := newGuard(t, store, nil)
	store.lose.Store(1)
	answer, err := g.Do(t.Context(), request("1", "a"), func(_ context.Context, claimed idempotency.Outcome) (idempotency.Result, error) {
		if claimed.Decision != idempotency.DecisionRenewed {
			t.Errorf("the repeated claim is %v, want renewed", claimed.Decision)
		}
		store.lose.Store(1)
		return idempotency.Result{Response: []byte("r")}, nil
	})
	if err != nil || string(answer.Result.Response) != "r" {
		t.Fatalf("got %+v, %v", answer, err)
	}
	if answer, err = g.Do(t.Context(), request("1", "a"), never(t)); err != nil || !answer.Duplicate {
		t.Errorf("got %+v, %v, want a duplicate", answer, err)
	}
}

// departing is a store that calls depart, which cancels the caller's context, during the
// commit of a claim.
type departing struct {
	idempotency.Store
	depart func()
}

func (d *departing) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if d.depart == nil {
		return d.Store.Claim(ctx, c)
	}
	out, err := d.Store.Claim(ctx, c)
	d.depart()
	if d.depart = nil; err == nil {
		out, err = idempotency.Outcome{}, fmt.Errorf("%w: %w", idempotency.ErrAmbiguous, ctx.Err())
	}
	return out, err
}

// If the caller's context ends during the commit of its claim, the operation does not
// begin, and the guard releases the claim.
func TestGuardReleasesWhatDidNotBegin(t *testing.T) {
	memory := new(idempotency.Memory)
	ctx, cancel := context.WithCancel(t.Context())
	g := newGuard(t, &departing{memory, cancel}, nil)
	if _, err := g.Do(ctx, request("1", "a"), never(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if r, err := memory.Lookup(t.Context(), request("1", "a").Key); err != nil || r[0].Status != idempotency.StatusAbsent {
		t.Errorf("the record is %v, %v, want none", r[0].Status, err)
	}
	if _, err := g.Do(t.Context(), request("1", "a"), returns("r")); err != nil {
		t.Errorf("the next caller: %v", err)
	}
}

// Do repeats a claim that the store did not confirm. Do's error wraps ErrAmbiguous even
// if the second try fails for another reason.
func TestGuardSaysWhatIsAmbiguous(t *testing.T) {
	store := &flaky{Store: new(idempotency.Memory)}
	g := newGuard(t, store, nil)
	store.lose.Store(2)
	var storeErr *idempotency.StoreError
	if _, err := g.Do(t.Context(), request("1", "a"), never(t)); !errors.As(err, &storeErr) || !errors.Is(err, idempotency.ErrAmbiguous) {
		t.Errorf("got %v, want a StoreError that is ambiguous", err)
	}
	down := errors.New("no route to host")
	lost := &sequence{Store: new(idempotency.Memory), errs: []error{idempotency.ErrAmbiguous, down}}
	if _, err := newGuard(t, lost, nil).Do(t.Context(), request("1", "a"), never(t)); !errors.Is(err, down) || !errors.Is(err, idempotency.ErrAmbiguous) {
		t.Errorf("got %v, want both errors", err)
	}
}

// sequence is a store that returns the next error of errs for each claim.
type sequence struct {
	idempotency.Store
	errs []error
}

func (s *sequence) Claim(context.Context, idempotency.Claim) (idempotency.Outcome, error) {
	err := s.errs[0]
	s.errs = s.errs[1:]
	return idempotency.Outcome{}, err
}

// If the store does not answer, the operation does not run. If the function
// GuardConfig.FailOpen is set and returns nil, the operation runs, and Guard.Stats counts
// the run in FailedOpen.
func TestGuardWithoutItsStore(t *testing.T) {
	store := &flaky{Store: new(idempotency.Memory)}
	store.down.Store(true)
	var storeErr *idempotency.StoreError
	if _, err := newGuard(t, store, nil).Do(t.Context(), request("1", "a"), never(t)); !errors.As(err, &storeErr) {
		t.Errorf("got %v, want a StoreError", err)
	}
	var journal []string
	full := errors.New("journal full")
	open, err := idempotency.NewGuard(idempotency.GuardConfig{
		Store: store, Policy: newPolicy(t, nil),
		FailOpen: func(_ context.Context, r idempotency.Request, _ error) error {
			if len(journal) > 0 {
				return full
			}
			journal = append(journal, r.Key.Value)
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := open.Do(t.Context(), request("1", "a"), returns("r"))
	if err != nil || !answer.Unclaimed || len(journal) != 1 || open.Stats().FailedOpen != 1 {
		t.Errorf("got %+v, %v, journal %v, want a run that was recorded and counted", answer, err, journal)
	}
	if _, err := open.Do(t.Context(), request("2", "a"), never(t)); !errors.Is(err, full) {
		t.Errorf("got %v, want the journal's error and no run", err)
	}
	bad := request("", "a")
	if _, err := open.Do(t.Context(), bad, never(t)); err == nil {
		t.Error("an empty key ran")
	}
}

// The record's fingerprint was computed by the method "pay/1", and a new release of the
// program uses "pay/2". With Recompute, the guard recognises an equal request as a
// duplicate.
func TestGuardAcrossSpecs(t *testing.T) {
	store := new(idempotency.Memory)
	g := newGuard(t, store, nil)
	if _, err := g.Do(t.Context(), request("1", "a"), returns("r")); err != nil {
		t.Fatal(err)
	}
	later := func(body string) idempotency.Request {
		r := request("1", body)
		r.Fingerprint = idempotency.FingerprintOf("pay/2", []byte("v2:"+body))
		r.Recompute = func(stored idempotency.Record) (idempotency.Fingerprint, error) {
			return idempotency.FingerprintOf("pay/2", append([]byte("v2:"), stored.Body...)), nil
		}
		return r
	}
	if answer, err := g.Do(t.Context(), later("a"), never(t)); err != nil || !answer.Duplicate {
		t.Errorf("got %+v, %v, want a duplicate", answer, err)
	}
	var conflict *idempotency.ConflictError
	if _, err := g.Do(t.Context(), later("b"), never(t)); !errors.As(err, &conflict) {
		t.Errorf("got %v, want a ConflictError", err)
	}
	without := later("a")
	without.Recompute = nil
	var incomparable *idempotency.IncomparableError
	if _, err := g.Do(t.Context(), without, never(t)); !errors.As(err, &incomparable) || incomparable.Stored != "pay/1" {
		t.Errorf("got %v, want an IncomparableError that names pay/1", err)
	}
	broken := errors.New("cannot decode")
	without.Recompute = func(idempotency.Record) (idempotency.Fingerprint, error) { return idempotency.Fingerprint{}, broken }
	if _, err := g.Do(t.Context(), without, never(t)); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of Recompute", err)
	}
	open, err := idempotency.NewGuard(idempotency.GuardConfig{
		Store: store, Policy: newPolicy(t, nil),
		FailOpen: func(context.Context, idempotency.Request, error) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open.Do(t.Context(), without, never(t)); !errors.Is(err, broken) {
		t.Errorf("a guard that fails open: got %v, want the error of Recompute and no run", err)
	}
}

// Errors name the scope and the operation, and say that the operation did not run. They
// contain neither key nor payload.
func TestErrorsKeepSecrets(t *testing.T) {
	const secret = "s3cret"
	store := &flaky{Store: &idempotency.Memory{Capacity: 1}}
	g := newGuard(t, store, nil)
	_, _ = g.Do(t.Context(), request(secret, secret+"a"), returnsError(errors.New("boom")))
	var errs []error
	for _, r := range []idempotency.Request{request(secret, secret+"a"), request(secret, secret+"b"), request(secret+"2", secret)} {
		_, err := g.Do(t.Context(), r, never(t))
		errs = append(errs, err)
	}
	limited := newGuard(t, &idempotency.Memory{Quota: 1}, nil)
	_, _ = limited.Do(t.Context(), request(secret, secret+"a"), returnsError(errors.New("boom")))
	_, err := limited.Do(t.Context(), request(secret+"2", secret), never(t))
	if quota := (*idempotency.QuotaError)(nil); !errors.As(err, &quota) || quota.Quota != 1 {
		t.Errorf("got %v, want a QuotaError", err)
	}
	errs = append(errs, err)
	store.down.Store(true)
	_, err = g.Do(t.Context(), request(secret, secret), never(t))
	errs = append(errs, err)
	for _, err := range errs {
		if err == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), `pay in scope "tenant"`) || !strings.Contains(err.Error(), "not run") {
			t.Errorf("got %q, want what happened, the operation and the scope, and no payload", err)
		}
	}
}

// An inner operation returns an error marked with NoEffect. The outer operation takes
// effect, and then returns the same error. Its outcome must be unknown, not a failure.
func TestNoEffectOfAnInnerGuard(t *testing.T) {
	refused := errors.New("refused")
	failing := &brokenClaims{new(idempotency.Memory)}
	open, err := idempotency.NewGuard(idempotency.GuardConfig{
		Store: failing, Policy: newPolicy(t, nil),
		FailOpen: func(context.Context, idempotency.Request, error) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, inner := range map[string]*idempotency.Guard{"claimed": newGuard(t, new(idempotency.Memory), nil), "failed open": open} {
		outer := newGuard(t, new(idempotency.Memory), nil)
		effects := 0
		pay := func(ctx context.Context, _ idempotency.Outcome) (idempotency.Result, error) {
			effects++
			_, err := inner.Do(ctx, request("inner", "a"), returnsError(errors.Join(idempotency.NoEffect(refused), io.EOF)))
			if !errors.Is(err, refused) || !errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%s: got %v, want all errors of the inner operation", name, err)
			}
			return idempotency.Result{}, fmt.Errorf("pay: %w", err)
		}
		for range 3 {
			_, err = outer.Do(t.Context(), request("outer", "a"), pay)
		}
		if effects != 1 || !errors.As(err, new(*idempotency.UnresolvedError)) {
			t.Errorf("%s: the outer operation ran %d times; the last call returned %v", name, effects, err)
		}
	}
}

type brokenClaims struct{ *idempotency.Memory }

func (brokenClaims) Claim(context.Context, idempotency.Claim) (idempotency.Outcome, error) {
	return idempotency.Outcome{}, io.ErrUnexpectedEOF
}
