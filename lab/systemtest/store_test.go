package systemtest

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// handle is a process's connection to the store. At each step, a call may fail or be
// slow, or the process may die.
type handle struct {
	p *process
	s idempotency.Store
}

// begin simulates the faults that may happen before a call reaches the store.
func (h *handle) begin(ctx context.Context, crash string) error {
	if h.p.crash(crash) {
		return errDead
	}
	d := h.p.w.span(20 * time.Millisecond)
	if h.p.w.happens("store is slow") {
		d = h.p.w.span(8 * time.Second)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.p.alive.Done():
		return errDead
	case <-ctx.Done():
		return fmt.Errorf("the store: %w", context.Cause(ctx))
	}
	if h.p.w.happens("store fails") {
		h.p.w.count(&h.p.w.totals.storeFaults)
		return fmt.Errorf("the store does not answer")
	}
	if h.p.w.happens("store is ambiguous") {
		h.p.w.count(&h.p.w.totals.ambiguous)
		return fmt.Errorf("%w: not committed", idempotency.ErrAmbiguous)
	}
	return nil
}

// end simulates the faults that may happen after the commit of a call.
func (h *handle) end(crash string) error {
	if h.p.crash(crash) {
		return errDead
	}
	if h.p.w.happens("store is ambiguous after its commit") {
		h.p.w.count(&h.p.w.totals.ambiguous)
		return fmt.Errorf("%w: committed", idempotency.ErrAmbiguous)
	}
	return nil
}

func (h *handle) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	out, err := h.ClaimBatch(ctx, []idempotency.Claim{c})
	if err != nil {
		return idempotency.Outcome{}, err
	}
	return out[0], nil
}

func (h *handle) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if err := h.begin(ctx, "crash before a claim"); err != nil {
		return nil, err
	}
	out, err := h.s.ClaimBatch(context.Background(), claims)
	if err != nil {
		return nil, err
	}
	for i, o := range out {
		h.p.w.note(claims[i].Key.Value, "%s claims it: %v", h.p.name, o.Decision)
		if h.p.w.sabotage == "generous store" && (o.Decision == idempotency.DecisionUnresolved || o.Decision == idempotency.DecisionInProgress) {
			out[i].Decision = idempotency.DecisionReclaimed
			out[i].Record.ResendUntil = o.Record.ReadAt.Add(time.Hour)
			out[i].Record.LeaseUntil = o.Record.ReadAt.Add(time.Hour)
		}
	}
	return out, h.end("crash after a claim")
}

func (h *handle) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	key, what := ref.Key.Value, t.String()
	if err := h.begin(ctx, "crash before an ending"); err != nil {
		return err
	}
	if err := h.s.Finish(context.Background(), ref, t); err != nil {
		h.p.w.note(key, "%s could not record %s: %v", h.p.name, what, err)
		return err
	}
	h.p.w.note(key, "%s recorded %s", h.p.name, what)
	return h.end("crash after an ending")
}

func (h *handle) Extend(ctx context.Context, ref idempotency.Ref, lease time.Duration) error {
	if err := h.begin(ctx, "crash before an extension"); err != nil {
		return err
	}
	if err := h.s.Extend(context.Background(), ref, lease); err != nil {
		return err
	}
	return h.end("crash after an extension")
}

func (h *handle) Lookup(ctx context.Context, keys ...idempotency.Key) ([]idempotency.Record, error) {
	if err := h.begin(ctx, "crash before a claim"); err != nil {
		return nil, err
	}
	return h.s.Lookup(context.Background(), keys...)
}

func (h *handle) Scan(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Record, error] {
	return h.s.Scan(ctx, f)
}

// resolveByTruth acts as an operator. It resolves a record that is still running 30
// seconds after the end of its lease, when no process works on the operation. The
// function `truth` reports whether the operation's effect happened.
func (w *world) resolveByTruth(k idempotency.Key, truth func(idempotency.Record) (bool, idempotency.Result)) {
	ctx := context.Background()
	records, err := w.store.Lookup(ctx, k)
	if err != nil {
		w.fail(k.Value, "the operator cannot look it up: %v", err)
		return
	}
	r := records[0]
	if r.Status != idempotency.StatusRunning || !r.ReadAt.After(r.LeaseUntil.Add(30*time.Second)) {
		return
	}
	happened, result := truth(r)
	t := idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll, Reason: "looked for and not found"})
	if happened {
		t = idempotency.Completed(result)
	}
	err = idempotency.Resolve(ctx, w.store, r, t)
	if err != nil {
		w.note(k.Value, "the operator's resolution came too late: %v", err)
		return
	}
	w.count(&w.totals.resolved)
	w.note(k.Value, "the operator resolves it: %v", happened)
}
