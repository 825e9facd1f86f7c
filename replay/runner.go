package replay

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// runner sends the items of one plan. One goroutine at a time sends the items of a message
// group, and it alone uses their progress.
type runner struct {
	plan    *Plan
	config  Config
	meters  meters
	history *history
	token   idempotency.Token // of the claims of this run
	limiter *rate.Limiter     // nil means no limit
	slots   chan struct{}     // has an element for each group that is being sent
	stop    context.CancelCauseFunc

	serial sync.Mutex // held during a call of Source.Fetch or Config.Progress
}

// Run sends the items of a plan that have no final outcome in the store. It returns
// when no item remains or can be sent, or when ctx ends. Another Run with the same plan
// and store continues.
//
// A group continues after a sent, suppressed or skipped item and stops at any other item.
// A stopped group is not an error. Run returns these errors:
//
//   - When ctx ends, Run cancels the sends in flight and records their outcomes. The
//     error wraps the cause of ctx.
//   - If a field of c is unusable, Run returns before the first send. If another run uses
//     the source, the error is a [*LockedError].
//   - If the store or the source fails, Run sends no more messages.
//   - If the report does not add up, the error is a [*ReportError] and the report is
//     empty.
//
// The report covers all runs of the plan.
func Run(ctx context.Context, plan *Plan, c Config) (_ PlanReport, err error) {
	c, err = c.complete(plan)
	if err != nil {
		return PlanReport{}, err
	}
	r := &runner{plan: plan, config: c, slots: make(chan struct{}, c.InFlight)}
	if c.MessagesPerSecond > 0 {
		r.limiter = rate.NewLimiter(rate.Limit(c.MessagesPerSecond), max(1, int(c.MessagesPerSecond/10)))
	}
	if r.meters, err = newMeters(c.MeterProvider); err != nil {
		return PlanReport{}, err
	}
	lock, err := lockSource(ctx, &c, plan.Source)
	if err != nil {
		return PlanReport{}, err
	}
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stop = stop
	var keeping sync.WaitGroup
	kept, release := context.WithCancel(context.WithoutCancel(ctx)) // until the last outcome is recorded
	keeping.Go(func() { lock.keep(kept, stop) })
	defer func() {
		release()
		keeping.Wait()
		late, cancel := after(ctx)
		defer cancel()
		err = errors.Join(err, lock.end(late, idempotency.Released()))
	}()
	r.token = idempotency.NewTokenOf(plan.ID, time.UnixMilli(lock.ref.Fence)) // a later run succeeds this one
	if err := r.begin(running); err != nil {
		return PlanReport{}, err
	}
	r.work(running)
	return r.end(context.Cause(running))
}

// saveFor is the longest time of one write after the end of the run's context.
const saveFor = 30 * time.Second

// after returns a context for writes that are also made after the end of ctx.
func after(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), saveFor)
}

// begin records the start of the run in the store and the log, before the first
// send. It reads the records of the plan and adds those of the items that are given up.
func (r *runner) begin(ctx context.Context) (err error) {
	c := &r.config
	started := idempotency.Claim{
		Key: idempotency.Key{Scope: StoreScope(r.plan), Operation: operationRun, Value: c.ID}, Fingerprint: idempotency.FingerprintOf(operationRun + "/1"),
		Terms: idempotency.Terms{ResendFor: idempotency.Forever},
	}
	if _, err := r.complete(ctx, started, ""); err != nil {
		return fmt.Errorf("replay: not run: %w", err)
	}
	if r.history, err = readHistory(ctx, r.plan, c.Store); err != nil {
		return err
	}
	r.history.lastRun = c.ID
	c.Logger.Info("replay: a run begins", "run", c.ID, "plan", r.plan.ID, "source", r.plan.Source, "items", len(r.plan.Items), "runs", r.history.runs)
	for _, n := range c.GiveUp {
		item := &r.plan.Items[n]
		record, err := r.complete(ctx, r.claimOf(item, 0), textOf(OutcomeSkipped, given))
		if err != nil {
			return fmt.Errorf("replay: give up item %d: %w", n, err)
		}
		r.history.items[n] = progressOf(record)
	}
	return nil
}

// complete records an operation that needs no work as completed with the response, unless
// it is completed already.
func (r *runner) complete(ctx context.Context, c idempotency.Claim, response string) (idempotency.Record, error) {
	c.Resend = true
	c.Token, c.Terms = r.token, idempotency.Terms{Lease: lockLease, TTL: idempotency.Forever, ResendFor: c.Terms.ResendFor}
	out, err := r.claim(ctx, c)
	if err != nil || out.Decision == idempotency.DecisionDuplicate {
		return out.Record, err
	}
	if !out.Decision.Granted() {
		return out.Record, out.Err(c.Key)
	}
	return r.finish(ctx, &out, idempotency.Completed(idempotency.Result{Response: []byte(response)}))
}

// claim makes a claim, also after the end of ctx: a claim that is cut off may be granted, and
// the item is then in doubt, although it was not sent.
func (r *runner) claim(ctx context.Context, c idempotency.Claim) (out idempotency.Outcome, err error) {
	late, cancel := after(ctx)
	defer cancel()
	err = idempotency.Confirm(func() error {
		out, err = r.config.Store.Claim(late, c)
		return err
	})
	return out, err
}

// finish ends a granted claim and returns the record.
func (r *runner) finish(ctx context.Context, out *idempotency.Outcome, how idempotency.Ending) (idempotency.Record, error) {
	late, cancel := after(ctx)
	defer cancel()
	if err := idempotency.Confirm(func() error { return r.config.Store.Finish(late, out.Ref(), how) }); err != nil {
		return out.Record, err
	}
	return idempotency.ApplyEnding(out.Record, out.Ref(), how, out.Record.ReadAt)
}

// itemLease is how long "keys resolve" must wait after a killed run. A later run of the plan
// waits for no lease.
const itemLease = Interval

// claimOf returns the claim of an item. SQS certainly recognises a resend of the item for
// the time resendFor; 0 means that the item is not sent.
func (r *runner) claimOf(item *PlannedItem, resendFor time.Duration) idempotency.Claim {
	return idempotency.Claim{
		Key: item.key(r.plan), Token: r.token, Group: item.Group[:min(len(item.Group), idempotency.MaxGroup)],
		Fingerprint: idempotency.FingerprintOf(operationItem+"/1", []byte(item.BodyHash), []byte(item.Group)),
		Terms:       idempotency.Terms{Lease: itemLease, TTL: idempotency.Forever, ResendFor: resendFor},
	}
}

// end returns the report.
func (r *runner) end(err error) (PlanReport, error) {
	// After a complete run, each item in doubt is unresolved, and tally gets the zero time.
	// After an interruption, tally gets the present time, because the next run may still
	// resend some of these items.
	now := time.Time{}
	if err != nil {
		now = r.config.Now()
	}
	t := tally(r.plan, r.history, now)
	if checkErr := t.report.check(); checkErr != nil {
		return PlanReport{}, errors.Join(err, checkErr)
	}
	r.config.Logger.Info("replay: a run ended", "run", r.config.ID, "sent", t.report.Sent, "suppressed", t.report.Suppressed, "remaining", t.report.Remaining,
		"stopped_groups", t.report.StoppedGroups, "error", err)
	return t.report, err
}

// work sends the items of all groups, at most Config.InFlight groups at once. Groups begin in
// plan order.
func (r *runner) work(ctx context.Context) {
	byGroup := map[string]int{}
	var groups [][]*PlannedItem
	for i := range r.plan.Items {
		item := &r.plan.Items[i]
		n, known := byGroup[item.Group]
		if !known {
			n = len(groups)
			byGroup[item.Group], groups = n, append(groups, nil)
		}
		groups[n] = append(groups[n], item)
	}
	var running sync.WaitGroup
	for _, items := range groups {
		taken := false
		select {
		case r.slots <- struct{}{}:
			taken = true
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			if taken {
				<-r.slots // another group may wait for it
			}
			break
		}
		running.Go(func() {
			defer func() { <-r.slots }()
			for _, item := range items {
				if !r.sendItem(ctx, item) {
					return
				}
			}
		})
	}
	running.Wait()
}

// sleep waits until the time `due` or the end of ctx. Meanwhile another group is sent.
func (r *runner) sleep(ctx context.Context, due time.Time) {
	<-r.slots
	for wait := due.Sub(r.config.Now()); wait > 0 && ctx.Err() == nil; wait = due.Sub(r.config.Now()) {
		select {
		case <-time.After(min(max(wait, time.Millisecond), time.Minute)): // Config.Now may run faster than the timer
		case <-ctx.Done():
		}
	}
	r.slots <- struct{}{}
}

// sendAndWait sends a message and waits for the outcome. An attribute of the message names
// the run, unless the message has no room for it.
func sendAndWait(ctx context.Context, s Sender, m *sqsfifo.Message, run string) (receipt sqsfifo.Receipt, err error) {
	send := func(m *sqsfifo.Message) {
		done := make(chan struct{})
		s.SendMessageAsync(ctx, m, func(got sqsfifo.Receipt, gotErr error) {
			receipt, err = got, gotErr
			close(done)
		})
		<-done
	}
	tagged := *m
	tagged.Attributes = map[string]string{sqsfifo.ReplayAttribute: run}
	for name, value := range m.Attributes {
		if name != sqsfifo.ReplayAttribute {
			tagged.Attributes[name] = value
		}
	}
	send(&tagged)
	var violation *sqsfifo.ViolationError
	if errors.As(err, &violation) && ctx.Err() == nil {
		// The attribute may have exceeded a limit of SQS.
		send(m)
	}
	return receipt, err
}
