package replay

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Runner sends the items of one plan. Make another one to resume.
type Runner struct {
	plan    *Plan
	config  Config
	meters  meters
	began   atomic.Bool
	answers chan answer   // has room for all that are under way
	poke    chan struct{} // Pause or Resume was called

	mu     sync.Mutex
	paused bool

	// The goroutine of Run owns the rest.
	sends    context.Context // of the messages
	withdraw context.CancelCauseFunc
	broken   bool // the journal or the ledger
	history  *history
	ready    []*lane // first come, first served
	waiting  lanes   // for the end of a window
	inFlight int
	bytes    int // of the bodies under way
	unsaved  []Mark
	entries  []LedgerEntry // of the unsaved marks
	pace     pace
}

// lane is the items of a message group.
type lane struct {
	items []int     // numbers of those that are left
	due   time.Time // until which it waits
}

// answer is the outcome of a message.
type answer struct {
	*try
	receipt sqsfifo.Receipt
	err     error
	cancel  context.CancelFunc // of a resend
}

// ErrRan is returned by a second call of [Runner.Run].
var ErrRan = errors.New("replay: the run was begun before; make another Runner to resume")

// NewRunner returns a runner, or a [*ConfigError]. It makes no request and reads
// nothing.
func NewRunner(plan *Plan, c Config) (*Runner, error) {
	c, err := c.complete(plan)
	if err != nil {
		return nil, err
	}
	r := &Runner{plan: plan, config: c, answers: make(chan answer, c.InFlight), poke: make(chan struct{}, 1)}
	r.meters, err = newMeters(c.MeterProvider)
	return r, err
}

// Pause lets no further message begin, until Resume is called. Those that are under way
// get their outcomes.
func (r *Runner) Pause() { r.setPaused(true) }

// Resume ends a pause.
func (r *Runner) Resume() { r.setPaused(false) }

func (r *Runner) setPaused(yes bool) {
	r.mu.Lock()
	r.paused = yes
	r.mu.Unlock()
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

func (r *Runner) isPaused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paused
}

// Run sends what the plan says and the journal does not have yet, and returns when
// nothing is left or can be sent, or when ctx ends: then what is under way is withdrawn
// and noted, and the error wraps the cause of ctx. Any other error is that of the journal, the
// source or the ledger, after which nothing more is sent; a run with the same plan
// and journal goes on where this one ended.
//
// A group goes on after an item that was sent, suppressed or skipped, and stops at
// every other one; that is not an error of Run. The report is about all runs of the
// plan; if the journal has failed, it may know outcomes that the next run does not. It
// is empty if the error is a [*ReportError].
func (r *Runner) Run(ctx context.Context) (Report, error) {
	if r.began.Swap(true) {
		return Report{}, ErrRan
	}
	h, err := readHistory(ctx, r.plan, r.config.Journal)
	if err != nil {
		return Report{}, err
	}
	r.history = h
	now := r.config.Now()
	r.pace = pace{messages: newBucket(r.config.MessagesPerSecond, now)}
	if r.config.CallsPerSecond > 0 {
		r.pace.calls, r.pace.made = newBucket(r.config.CallsPerSecond, now), r.config.Calls
		r.pace.paid = r.config.Calls()
	}
	if err := r.begin(ctx, now); err != nil {
		return Report{}, err
	}
	r.sends, r.withdraw = context.WithCancelCause(ctx)
	defer r.withdraw(nil)
	r.arrange()
	err = r.work(ctx)
	return r.end(ctx, err)
}

// begin notes that the run begins, before anything is sent.
func (r *Runner) begin(ctx context.Context, now time.Time) error {
	r.config.Logger.Info("replay: a run begins", "run", r.config.ID, "plan", r.plan.ID, "source", r.plan.Source, "items", len(r.plan.Items), "earlier_runs", r.history.runs)
	if r.config.Ledger != nil {
		if err := r.config.Ledger.Append(ctx, []LedgerEntry{r.entry(LedgerStarted)}); err != nil {
			return fmt.Errorf("replay: not run: ledger: %w", err)
		}
	}
	m := Mark{Kind: MarkBegin, At: now.UTC().Round(0), Plan: r.plan.ID, Run: r.config.ID}
	if err := r.config.Journal.Append(ctx, []Mark{m}); err != nil {
		return fmt.Errorf("replay: not run: %w", err)
	}
	return r.history.apply(r.plan, &m)
}

func (r *Runner) entry(kind LedgerKind) LedgerEntry {
	return LedgerEntry{Time: r.config.Now().UTC(), Kind: kind, Run: r.config.ID, Plan: r.plan.ID, Source: r.plan.Source}
}

// end saves what is known and reports.
func (r *Runner) end(ctx context.Context, err error) (Report, error) {
	interrupted := err != nil
	if !r.broken {
		err = errors.Join(err, r.save(ctx, nil))
	}
	now := time.Time{} // nothing is left for an item in doubt but the next run
	if interrupted {
		now = r.config.Now()
	}
	t := tally(r.plan, r.history, now)
	if checkErr := t.report.Check(); checkErr != nil {
		return Report{}, errors.Join(err, checkErr)
	}
	if r.config.Ledger != nil && !r.broken {
		e := r.entry(LedgerEnded)
		e.Report = &t.report
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveFor)
		defer cancel()
		if ledgerErr := r.config.Ledger.Append(late, []LedgerEntry{e}); ledgerErr != nil {
			err = errors.Join(err, fmt.Errorf("replay: ledger: %w", ledgerErr))
		}
	}
	r.config.Logger.Info("replay: a run ended", "run", r.config.ID, "sent", t.report.Sent, "suppressed", t.report.Suppressed, "remaining", t.report.Remaining,
		"stopped_groups", t.report.StoppedGroups, "error", err)
	return t.report, err
}

// arrange puts what is left into lanes, in the order of the plan.
func (r *Runner) arrange() {
	byGroup := map[string]*lane{}
	for i := range r.plan.Items {
		g := r.plan.Items[i].Group
		l := byGroup[g]
		if l == nil {
			l = new(lane)
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

// advance goes to the next item of a lane that is to be sent. A lane without one is
// over.
func (r *Runner) advance(l *lane) {
	for len(l.items) > 0 {
		item, p := &r.plan.Items[l.items[0]], &r.history.items[l.items[0]]
		if p.done() || item.Action == ActionSkip && p.verdict == 0 {
			l.items = l.items[1:]
			continue
		}
		r.ready = append(r.ready, l)
		return
	}
}

// work sends until nothing is left or the context ends.
func (r *Runner) work(ctx context.Context) error {
	for {
		ended := ctx.Err() != nil // only the answers are of interest from then on
		r.collect(ctx)
		if ended && r.inFlight == 0 {
			return context.Cause(ctx)
		}
		now := r.config.Now()
		r.wakeUp(now)
		n := 0
		if !ended && !r.isPaused() && r.fits() {
			n = r.pace.allows(now, min(len(r.ready), r.config.InFlight-r.inFlight), r.inFlight)
		}
		if n > 0 || len(r.unsaved) > 0 {
			if err := r.wave(ctx, n); err != nil {
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

// wait returns when something may have changed.
func (r *Runner) wait(ctx context.Context, now time.Time) {
	done := ctx.Done()
	if ctx.Err() != nil {
		done = nil
	}
	next := time.Duration(-1)
	if !r.isPaused() && ctx.Err() == nil {
		if len(r.waiting) > 0 {
			next = r.waiting[0].due.Sub(now)
		}
		if len(r.ready) > 0 && r.inFlight < r.config.InFlight && r.fits() {
			if w := r.pace.wait(); next < 0 || w < next {
				next = w
			}
		}
	}
	var timer <-chan time.Time
	if next >= 0 {
		// A clock that is not this machine's is looked at again and again.
		t := time.NewTimer(min(max(next, time.Millisecond), time.Minute))
		defer t.Stop()
		timer = t.C
	}
	select {
	case a := <-r.answers:
		r.take(a)
	case <-timer:
	case <-r.poke:
	case <-done:
	}
}

// gather is how long a wave waits for the answers to other groups, so that they share
// its fsync.
const gather = 2 * time.Millisecond

// collect takes the answers that are there, and after one those that come soon.
func (r *Runner) collect(ctx context.Context) {
	var enough <-chan time.Time
	for {
		select {
		case a := <-r.answers:
			r.take(a)
			continue
		default:
		}
		if r.inFlight == 0 || len(r.unsaved) == 0 {
			return
		}
		if enough == nil {
			enough = time.After(gather)
		}
		select {
		case a := <-r.answers:
			r.take(a)
		case <-enough:
			return
		case <-ctx.Done():
			return
		}
	}
}

// wakeUp makes lanes ready whose windows are over.
func (r *Runner) wakeUp(now time.Time) {
	for len(r.waiting) > 0 && !now.Before(r.waiting[0].due) {
		r.ready = append(r.ready, heap.Pop(&r.waiting).(*lane))
	}
}

// abort withdraws what is under way, because nothing can be noted any more.
func (r *Runner) abort(err error) error {
	r.withdraw(err)
	for r.inFlight > 0 {
		r.take(<-r.answers)
	}
	return err
}

// lanes is a heap by due.
type lanes []*lane

func (l lanes) Len() int           { return len(l) }
func (l lanes) Less(i, j int) bool { return l[i].due.Before(l[j].due) }
func (l lanes) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *lanes) Push(v any)        { *l = append(*l, v.(*lane)) }

func (l *lanes) Pop() any {
	old := *l
	v := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return v
}
