package dispatch

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// parcel is the type of the messages in these tests.
type parcel struct {
	n        int    // number of the item, counted in the order of creation
	onReport func() // called by Report; may block, or end its goroutine with runtime.Goexit
	// anyOrder turns off the check of the report order for an item that the test may
	// withdraw.
	anyOrder bool
}

type item = Item[parcel]

// interval is the time for which the simulated service of the model sender remembers an
// event.
const interval = 5 * time.Minute

// modelSender is a Sender for tests. It simulates the service SQS, and checks every call of
// the dispatcher. It knows whether the service has stored an event, whether an answer has
// proved this, and when a doubt about the event began.
type modelSender struct {
	t     testing.TB
	d     *Dispatcher[parcel]
	start time.Time

	// A test may set these functions. The methods Admit, Send, Prepare, Revise and GiveUpAt
	// call them.
	admit   func(*item) verdict.Verdict                                // nil admits every item
	serve   func(items []*item, answers []attempt.Answer) attempt.Load // nil stores every item after 5 ms
	prepare func(items []*item)                                        // nil does nothing
	revise  func(*item)                                                // not nil if admit returns Change
	giveUp  func(*item) time.Time                                      // nil sets no time limit

	// submitting is locked during Submit, so that itemState.place follows the order of
	// submission.
	submitting sync.Mutex
	places     int

	mu        sync.Mutex
	items     []*itemState
	numbers   map[*item]int
	submitted int
	events    map[string]*event
	order     map[string][]int // items of each group in the order of storing
	sequence  int
	requests  [][]int
	prepared  [][]int
	starts    []time.Duration // start times of the requests
	groups    map[string]bool // groups with a request under way
	reporting map[string]bool
	reports   []report
	refreshed int
	paused    []string // group and key of each pause
	sweeps    int
}

// event is the state of one event in the model.
type event struct {
	storedItem int // number of the item that was stored for the event, -1 if none was
	sequence   string
	known      attempt.Fate // FateStored or FateAltered, if proved
	// doubt is the start of the first attempt that may have stored the event. It is zero
	// without such an attempt, and after a proof (the field `known`).
	doubt   time.Time
	flights int // attempts under way
}

// itemState has the calls that the modelSender has received for an item.
type itemState struct {
	group, key                             string
	context                                context.Context
	anyOrder                               bool
	admitted, inFlight, submitted          bool
	preparing                              bool
	attempts, concluded, released, reports int
	place                                  int // position in the order of submission
	concluding                             attempt.Fate
}

type report struct {
	n  int
	at time.Duration
	Outcome
}

func newModelSender(t testing.TB, o Options) *modelSender {
	c := &modelSender{
		// The sequence numbers begin at 96, so that tests compare numbers with two digits
		// to numbers with three digits.
		t: t, start: time.Now(), sequence: 95,
		numbers: map[*item]int{}, events: map[string]*event{}, order: map[string][]int{}, groups: map[string]bool{}, reporting: map[string]bool{},
	}
	c.d = New(c, o)
	return c
}

func options() Options {
	return Options{PerGroup: 1, RetryFor: time.Minute, Linger: 5 * time.Millisecond, InFlight: 4, Items: 10_000, Bytes: 64 << 20}
}

func runs() Options {
	o := options()
	o.PerGroup = 10
	return o
}

// try runs a test in a synctest bubble, then closes the dispatcher and calls check.
func try(t *testing.T, o Options, test func(t *testing.T, c *modelSender)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newModelSender(t, o)
		test(t, c)
		unreported, err := c.d.Close(context.Background(), func() {})
		require.NoError(t, err)
		require.Zero(t, unreported)
		c.check()
	})
}

// item returns an item with a new event.
func (c *modelSender) item(group string) *item {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(c.items)
	it := &item{Group: group, Key: "event " + strconv.Itoa(n), Size: 100, Message: parcel{n: n}}
	c.items = append(c.items, &itemState{group: group, key: it.Key})
	c.numbers[it] = n
	return it
}

// make returns new items of one group.
func (c *modelSender) make(group string, n int) []*item {
	items := make([]*item, n)
	for i := range items {
		items[i] = c.item(group)
	}
	return items
}

// submit waits for room and submits the items together.
func (c *modelSender) submit(items ...*item) {
	c.t.Helper()
	for _, it := range items {
		require.NoError(c.t, c.d.Reserve(context.Background(), it.Size, nil))
	}
	require.True(c.t, c.enqueue(items...))
}

// enqueue submits items. The caller has reserved room for them in the buffer.
func (c *modelSender) enqueue(items ...*item) bool {
	c.submitting.Lock()
	defer c.submitting.Unlock()
	c.mu.Lock()
	for _, it := range items {
		c.places++
		r := c.items[it.Message.n]
		r.place = c.places
		r.key, r.context, r.anyOrder, r.submitted = it.Key, it.Context, it.Message.anyOrder, true
	}
	c.submitted += len(items)
	c.mu.Unlock()
	if c.d.Submit(items...) {
		return true
	}
	for _, it := range items {
		c.d.Cancel(it.Size)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.submitted -= len(items)
	for _, it := range items {
		c.items[it.Message.n].submitted = false
	}
	return false
}

// flush waits until every submitted item has its outcome.
func (c *modelSender) flush() {
	c.t.Helper()
	require.NoError(c.t, c.d.Flush(context.Background()))
}

// outcome returns the report of an item. The item must have been reported.
func (c *modelSender) outcome(it *item) report {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	n, ok := c.numbers[it]
	require.True(c.t, ok)
	i := slices.IndexFunc(c.reports, func(r report) bool { return r.n == n })
	require.GreaterOrEqual(c.t, i, 0, "%s has no outcome", it.Key)
	return c.reports[i]
}

// reported returns the numbers of the reported items, in order.
func (c *modelSender) reported() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	reported := []int{}
	for _, r := range c.reports {
		reported = append(reported, r.n)
	}
	return reported
}

func (c *modelSender) sent() [][]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}

// pass lets d of virtual time pass and waits until all goroutines are blocked.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (c *modelSender) since() time.Duration { return time.Since(c.start) }

// event returns the state of an event. The caller holds c.mu.
func (c *modelSender) event(key string) *event {
	e := c.events[key]
	if e == nil {
		e = &event{storedItem: -1}
		c.events[key] = e
	}
	return e
}

// errorf makes the test fail, but lets the goroutine continue: it may be a goroutine that
// the dispatcher still needs.
func (c *modelSender) errorf(format string, args ...any) { c.t.Errorf(format, args...) }

func (c *modelSender) Admit(items []*item, verdicts []verdict.Verdict) {
	c.mu.Lock()
	if len(items) == 0 || len(items) > 10 || len(verdicts) != len(items) {
		c.errorf("a request with %d items and %d verdicts", len(items), len(verdicts))
	}
	admit := c.admit
	bytes, of := 0, map[string]int{}
	for i, it := range items {
		bytes += it.Size
		of[it.Group]++
		if of[it.Group] == 1 && c.groups[it.Group] {
			c.errorf("two requests with group %s", it.Group)
		}
		c.groups[it.Group] = true
		if of[it.Group] > 1 && items[i-1].Group != it.Group {
			c.errorf("the items of group %s are not side by side", it.Group)
		}
		if of[it.Group] > c.d.options.PerGroup {
			c.errorf("%d items of group %s in a request", of[it.Group], it.Group)
		}
		for _, other := range items[:i] {
			if other.Key == it.Key {
				c.errorf("%s twice in a request", it.Key)
			}
		}
	}
	if bytes > 1<<20 && len(items) > 1 {
		c.errorf("a request of %d bytes", bytes)
	}
	c.mu.Unlock()
	for i, it := range items {
		verdicts[i] = send
		if i > 0 && verdicts[i-1] != send && items[i-1].Group == it.Group {
			verdicts[i] = hold
		} else if admit != nil {
			verdicts[i] = admit(it)
		}
		if verdicts[i] == send {
			c.mu.Lock()
			c.items[it.Message.n].admitted = true
			c.event(it.Key).flights++
			c.mu.Unlock()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, it := range items {
		if verdicts[i] != send && !slices.ContainsFunc(items[:i], func(e *item) bool { return e.Group == it.Group }) {
			// No item of this group is sent, so another request may contain the group.
			delete(c.groups, it.Group)
		}
	}
}

// Drop takes back an item that was withdrawn during Admit, or whose Admit has ended the
// goroutine.
func (c *modelSender) Drop(it *item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.items[it.Message.n]
	if r.inFlight {
		c.errorf("%s is dropped during a request", it.Key)
	}
	if r.admitted {
		r.admitted = false
		c.event(it.Key).flights--
	}
	if !slices.ContainsFunc(c.items, func(r *itemState) bool { return r.group == it.Group && r.admitted }) {
		delete(c.groups, it.Group)
	}
}

func (c *modelSender) Prepare(items []*item) {
	c.d.mu.Lock()
	prepared := c.d.prepared
	c.d.mu.Unlock()
	c.mu.Lock()
	if prepared > c.d.options.Prepared {
		c.errorf("%d items are prepared in all", prepared)
	}
	c.prepared = append(c.prepared, nil)
	for _, it := range items {
		c.prepared[len(c.prepared)-1] = append(c.prepared[len(c.prepared)-1], it.Message.n)
		if r := c.items[it.Message.n]; r.preparing || r.admitted {
			c.errorf("%s is prepared: in Prepare %t, admitted %t, in a request %t", it.Key, r.preparing, r.admitted, r.inFlight)
		}
		c.items[it.Message.n].preparing = true
	}
	if most := c.d.options.Prepared / 2; len(items) == 0 || len(items) > most {
		c.errorf("%d items are prepared at once", len(items))
	}
	prepare := c.prepare
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, it := range items {
			c.items[it.Message.n].preparing = false
		}
	}()
	if prepare != nil {
		prepare(items)
	}
}

func (c *modelSender) Send(items []*item, answers []attempt.Answer) attempt.Load {
	c.mu.Lock()
	start := time.Now()
	numbers := []int{}
	for _, it := range items {
		numbers = append(numbers, it.Message.n)
		r := c.items[it.Message.n]
		if !r.admitted || r.inFlight || r.preparing {
			c.errorf("%s is sent: admitted %t, in another request %t, in Prepare %t", it.Key, r.admitted, r.inFlight, r.preparing)
		}
		if r.concluded > 0 && r.concluding == attempt.FateNotStored {
			c.errorf("%s is sent after it was said not to be stored", it.Key)
		}
		r.inFlight = true
		r.attempts++
		if it.Attempts() != r.attempts {
			c.errorf("attempt %d of %s is counted as %d", r.attempts, it.Key, it.Attempts())
		}
	}
	c.requests = append(c.requests, numbers)
	c.starts = append(c.starts, c.since())
	serve := c.serve
	c.mu.Unlock()
	defer c.noteAnswers(items, answers, start)
	if serve == nil {
		serve = c.storeAll
	}
	return serve(items, answers)
}

func (c *modelSender) noteAnswers(items []*item, answers []attempt.Answer, start time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, it := range items {
		r, e := c.items[it.Message.n], c.event(it.Key)
		r.inFlight, r.admitted = false, false
		e.flights--
		delete(c.groups, it.Group)
		switch answers[i].Fate {
		case attempt.FateStored, attempt.FateAltered:
			e.known, e.doubt = answers[i].Fate, time.Time{}
			if e.storedItem != it.Message.n {
				it.MarkDuplicate()
			}
		case attempt.FateInDoubt:
			if e.doubt.IsZero() {
				e.doubt = start
			}
		case attempt.FateNotStored:
		}
	}
}

func (e *event) fate() attempt.Fate {
	switch {
	case e.known != attempt.FateInDoubt:
		return e.known
	case e.flights > 0 || !e.doubt.IsZero() && time.Since(e.doubt) < interval:
		return attempt.FateInDoubt
	default:
		return attempt.FateNotStored
	}
}

func (c *modelSender) Conclude(it *item) attempt.Fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.items[it.Message.n]
	if r.concluded++; r.concluded > 1 || r.reports > 0 {
		c.errorf("%s is concluded %d times and was reported %d times", it.Key, r.concluded, r.reports)
	}
	r.concluding = c.event(it.Key).fate()
	return r.concluding
}

func (c *modelSender) Release(it *item) (attempt.Fate, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.items[it.Message.n]
	if r.released++; r.released > 1 || r.concluded != 1 || r.inFlight || r.preparing {
		c.errorf("%s is released %d times; concluded %d times, in a request %t, in Prepare %t", it.Key, r.released, r.concluded, r.inFlight, r.preparing)
	}
	e := c.event(it.Key)
	since := e.doubt
	if since.IsZero() {
		since = time.Now()
	}
	return e.fate(), since.Add(interval)
}

func (c *modelSender) GiveUpAt(it *item) time.Time {
	if c.giveUp == nil {
		return time.Time{}
	}
	return c.giveUp(it)
}

func (c *modelSender) Refresh(it *item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refreshed++
	if r := c.items[it.Message.n]; r.concluded > 0 || r.reports > 0 {
		c.errorf("%s is refreshed and has its outcome", it.Key)
	}
}

func (c *modelSender) Revise(it *item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.items[it.Message.n]
	if r.concluded > 0 || r.reports > 0 {
		c.errorf("%s is revised and does not wait", it.Key)
	}
	c.revise(it)
	if r.group != it.Group {
		c.places++
		r.group, r.place = it.Group, c.places
	}
}

func (c *modelSender) Paused(group string, p *Pause) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused = append(c.paused, group+" "+p.Key)
}

func (c *modelSender) Sweep() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sweeps++
	return c.sweeps < 10
}

func (c *modelSender) Report(it *item) {
	c.mu.Lock()
	r := c.items[it.Message.n]
	if r.reports++; r.reports > 1 {
		c.errorf("%s is reported %d times", it.Key, r.reports)
	}
	if !r.anyOrder {
		if c.reporting[it.Group] {
			c.errorf("two reports of group %s at once", it.Group)
		}
		c.reporting[it.Group] = true
	}
	c.reports = append(c.reports, report{it.Message.n, c.since(), it.Outcome})
	onReport, anyOrder := it.Message.onReport, r.anyOrder
	group := it.Group
	c.mu.Unlock()
	defer func() {
		if anyOrder {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reporting[group] = false
	}()
	if onReport != nil {
		onReport()
	}
}

var (
	send    = verdict.Verdict{Kind: verdict.KindGo}
	refuses = verdict.Verdict{Kind: verdict.KindRefuse}
	tooLate = verdict.Verdict{Kind: verdict.KindLate}
	hold    = verdict.Verdict{Kind: verdict.KindHold}
	known   = verdict.Verdict{Kind: verdict.KindKnown}
	change  = verdict.Verdict{Kind: verdict.KindAdopt}
)

func later(delay time.Duration) verdict.Verdict {
	return verdict.Verdict{Kind: verdict.KindWait, Delay: delay}
}
