package replay

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// runner sends the items of one plan.
type runner struct {
	plan          *Plan
	config        Config
	meters        meters
	answers       chan answer     // has room for all messages in flight
	sends         context.Context // context of the sends
	withdraw      context.CancelCauseFunc
	broken        bool // the journal or the ledger failed
	history       *history
	ready         []*groupQueue // groups whose first item may be sent now, in order
	waiting       dueQueue      // groups whose first item waits (ActionWait)
	inFlight      int
	bytes         int // size of the bodies in flight
	unsaved       []journalEntry
	ledgerEntries []LedgerEntry // for outcomes not yet in the journal
	pace          pace
}

// groupQueue holds the remaining items of a message group.
type groupQueue struct {
	items []int     // item numbers
	due   time.Time // time at which the first item may be sent
}

// answer is the sender's answer for a message.
type answer struct {
	*attempt
	receipt sqsfifo.Receipt
	err     error
	cancel  context.CancelFunc // ends the deadline's context; nil without a deadline
}

// Run sends the items of a plan that have no final outcome in the journal. It returns
// when no item remains or can be sent, or when ctx ends. Another Run with the same plan
// and journal continues.
//
// A group continues after a sent, suppressed or skipped item and stops at any other item.
// A stopped group is not an error. Run returns these errors:
//
//   - When ctx ends, Run cancels the sends in flight and records their outcomes. The
//     error wraps the cause of ctx.
//   - If a field of c is unusable, Run returns before the first send.
//   - If the journal, the source or the ledger fails, Run sends no more messages. After a
//     failure of the journal, the report may contain outcomes unknown to the next run.
//   - If the report does not add up, the error is a [*ReportError] and the report is
//     empty.
//
// The report covers all runs of the plan.
func Run(ctx context.Context, plan *Plan, c Config) (Report, error) {
	c, err := c.complete(plan)
	if err != nil {
		return Report{}, err
	}
	r := &runner{plan: plan, config: c, answers: make(chan answer, c.InFlight)}
	if r.meters, err = newMeters(c.MeterProvider); err != nil {
		return Report{}, err
	}
	if r.history, err = readHistory(ctx, plan, c.Journal); err != nil {
		return Report{}, err
	}
	now := c.Now()
	r.pace = newPace(&c)
	if err := r.begin(ctx, now); err != nil {
		return Report{}, err
	}
	r.sends, r.withdraw = context.WithCancelCause(ctx)
	defer r.withdraw(nil)
	r.queueItems()
	return r.end(ctx, r.work(ctx))
}

// begin records the start of the run in the log, the ledger and the journal, before the
// first send.
func (r *runner) begin(ctx context.Context, now time.Time) error {
	r.config.Logger.Info("replay: a run begins", "run", r.config.ID, "plan", r.plan.ID, "source", r.plan.Source, "items", len(r.plan.Items), "earlier_runs", r.history.runs)
	if r.config.Ledger != nil {
		if err := r.config.Ledger(ctx, []LedgerEntry{r.ledgerEntry(ledgerStarted)}); err != nil {
			return fmt.Errorf("replay: not run: ledger: %w", err)
		}
	}
	m := journalEntry{Kind: entryBegin, At: now.UTC().Round(0), Plan: r.plan.ID, Run: r.config.ID}
	if err := r.config.Journal.append(ctx, []journalEntry{m}); err != nil {
		return fmt.Errorf("replay: not run: %w", err)
	}
	return r.history.apply(r.plan, &m)
}

func (r *runner) ledgerEntry(kind string) LedgerEntry {
	return LedgerEntry{Time: r.config.Now().UTC(), Kind: kind, Run: r.config.ID, Plan: r.plan.ID, Source: r.plan.Source}
}

// end saves known outcomes and returns the report.
func (r *runner) end(ctx context.Context, err error) (Report, error) {
	interrupted := err != nil
	if !r.broken {
		err = errors.Join(err, r.save(ctx, nil))
	}
	// After a complete run, each item in doubt is unresolved, and tally gets the zero time.
	// After an interruption, tally gets the present time, because the next run may still
	// resend some of these items.
	now := time.Time{}
	if interrupted {
		now = r.config.Now()
	}
	t := tally(r.plan, r.history, now)
	if checkErr := t.report.check(); checkErr != nil {
		return Report{}, errors.Join(err, checkErr)
	}
	if r.config.Ledger != nil && !r.broken {
		e := r.ledgerEntry(ledgerEnded)
		e.Report = &t.report
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
		defer cancel()
		if ledgerErr := r.config.Ledger(late, []LedgerEntry{e}); ledgerErr != nil {
			err = errors.Join(err, fmt.Errorf("replay: ledger: %w", ledgerErr))
		}
	}
	r.config.Logger.Info("replay: a run ended", "run", r.config.ID, "sent", t.report.Sent, "suppressed", t.report.Suppressed, "remaining", t.report.Remaining,
		"stopped_groups", t.report.StoppedGroups, "error", err)
	return t.report, err
}

// queueItems queues the remaining items by group, in plan order.
func (r *runner) queueItems() {
	byGroup := map[string]*groupQueue{}
	for i := range r.plan.Items {
		g := r.plan.Items[i].Group
		l := byGroup[g]
		if l == nil {
			l = new(groupQueue)
			byGroup[g] = l
			r.ready = append(r.ready, l)
		}
		l.items = append(l.items, i)
	}
	all := r.ready
	r.ready = nil
	for _, l := range all {
		r.advance(l)
	}
}

// advance moves a group to its next item to send. A group without such an item is
// finished.
func (r *runner) advance(l *groupQueue) {
	for len(l.items) > 0 {
		item, p := &r.plan.Items[l.items[0]], &r.history.items[l.items[0]]
		if p.groupContinues() || item.Action == ActionSkip && p.resolution == "" {
			l.items = l.items[1:]
			continue
		}
		r.ready = append(r.ready, l)
		return
	}
}

// work sends items until none can be sent and no send is in flight. After the end of ctx
// it only waits for answers to the sends in flight.
func (r *runner) work(ctx context.Context) error {
	for {
		ended := ctx.Err() != nil // after the end of ctx, only answers are collected
		r.collect(ctx)
		if ended && r.inFlight == 0 {
			return context.Cause(ctx)
		}
		now := r.config.Now()
		r.queueDue(now)
		n := 0
		if !ended && r.fits() {
			n = r.pace.allows(now, min(len(r.ready), r.config.InFlight-r.inFlight), r.inFlight)
		}
		if n > 0 || len(r.unsaved) > 0 {
			if err := r.commit(ctx, n); err != nil {
				return r.abort(err)
			}
			continue
		}
		if r.inFlight == 0 && len(r.ready) == 0 && len(r.waiting) == 0 {
			return nil
		}
		r.wait(ctx, now)
	}
}

// wait returns when an answer has arrived, a group is due or ctx has ended.
func (r *runner) wait(ctx context.Context, now time.Time) {
	done := ctx.Done()
	if ctx.Err() != nil {
		done = nil
	}
	next := time.Duration(-1)
	if ctx.Err() == nil {
		if len(r.waiting) > 0 {
			next = r.waiting[0].due.Sub(now)
		}
		if len(r.ready) > 0 && r.inFlight < r.config.InFlight && r.fits() {
			if w := r.pace.wait(now); next < 0 || w < next {
				next = w
			}
		}
	}
	var timer <-chan time.Time
	if next >= 0 {
		// Config.Now may run faster than the timer, so call it at least once a minute.
		t := time.NewTimer(min(max(next, time.Millisecond), time.Minute))
		defer t.Stop()
		timer = t.C
	}
	select {
	case a := <-r.answers:
		r.handleAnswer(a)
	case <-timer:
	case <-done:
	}
}

// gatherTime is the longest wait for more answers, so that one journal write and fsync
// records several answers.
const gatherTime = 2 * time.Millisecond

// collect handles all available answers. After an answer, it waits up to gatherTime for
// more.
func (r *runner) collect(ctx context.Context) {
	var enough <-chan time.Time
	for {
		select {
		case a := <-r.answers:
			r.handleAnswer(a)
			continue
		default:
		}
		if r.inFlight == 0 || len(r.unsaved) == 0 {
			return
		}
		if enough == nil {
			enough = time.After(gatherTime)
		}
		select {
		case a := <-r.answers:
			r.handleAnswer(a)
		case <-enough:
			return
		case <-ctx.Done():
			return
		}
	}
}

// queueDue moves the groups whose wait is over from r.waiting to r.ready.
func (r *runner) queueDue(now time.Time) {
	for len(r.waiting) > 0 && !now.Before(r.waiting[0].due) {
		r.ready = append(r.ready, heap.Pop(&r.waiting).(*groupQueue))
	}
}

// abort cancels the sends in flight when outcomes cannot be recorded any more. It waits
// for their answers and returns err.
func (r *runner) abort(err error) error {
	r.withdraw(err)
	for r.inFlight > 0 {
		r.handleAnswer(<-r.answers)
	}
	return err
}

// dueQueue is a heap of groups, ordered by the field `due`.
type dueQueue []*groupQueue

func (l dueQueue) Len() int           { return len(l) }
func (l dueQueue) Less(i, j int) bool { return l[i].due.Before(l[j].due) }
func (l dueQueue) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *dueQueue) Push(v any)        { *l = append(*l, v.(*groupQueue)) }

func (l *dueQueue) Pop() any {
	old := *l
	v := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return v
}
