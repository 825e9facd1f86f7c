package dispatch

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
)

// check makes the model sender's checks at the end of a test, when the dispatcher is
// closed and every report has returned.
func (c *modelSender) check() {
	c.t.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	assert.Len(c.t, c.reports, c.submitted, "outcomes")
	for n, r := range c.items {
		if r.submitted && r.reports != 1 || !r.submitted && r.reports != 0 {
			c.errorf("%s: submitted %t, reported %d times", r.key, r.submitted, r.reports)
		}
		if r.concluded == 1 && r.released != 1 && c.event(r.key).known != attempt.FateStored {
			c.errorf("%s (item %d) is not released", r.key, n)
		}
	}
	last := map[string]int{}
	ended := map[string]map[context.Context]int{}
	for _, r := range c.reports {
		rec := c.items[r.n]
		c.checkReport(rec, r)
		if rec.anyOrder {
			continue
		}
		// After its context ends, an item keeps its order only among items of the same
		// context and group.
		if rec.context != nil && context.Cause(rec.context) != nil {
			if ended[rec.group] == nil {
				ended[rec.group] = map[context.Context]int{}
			}
			if before, ok := ended[rec.group][rec.context]; ok && before > rec.place && r.Cause != nil {
				c.errorf("group %s: the item at place %d is reported before that at %d, and they have the same context", rec.group, before, rec.place)
			}
			ended[rec.group][rec.context] = rec.place
			continue
		}
		if before, ok := last[rec.group]; ok && before > rec.place {
			c.errorf("group %s: the item at place %d is reported before that at %d", rec.group, before, rec.place)
		}
		last[rec.group] = rec.place
	}
	if c.d.options.PerGroup == 1 {
		assert.Empty(c.t, c.reordered(false), "items that the service stored out of order")
	}
	assert.Empty(c.t, c.reordered(true), "items that the service stored out of order, and nobody says so")
	checkEmpty(c.t, c.d)
}

// checkReport compares the reported outcome of an item with the state of its event in the
// simulated service.
func (c *modelSender) checkReport(rec *itemState, r report) {
	e := c.event(rec.key)
	if r.Fate == attempt.FateStored && e.storedItem < 0 {
		c.errorf("%s is said to be stored", rec.key)
	}
	if r.Fate == attempt.FateNotStored && e.storedItem == r.n {
		c.errorf("%s is said not to be stored (%+v)", rec.key, r.Outcome)
	}
	if r.Reason == ReasonAnswered && r.Fate == attempt.FateStored && r.Answer.Fate == attempt.FateStored && r.Answer.Sequence != e.sequence {
		c.errorf("%s has sequence number %s, not %s", rec.key, r.Answer.Sequence, e.sequence)
	}
	if (r.Reason == ReasonWithdrawn) != (r.Cause != nil) && r.Reason != ReasonRefused || (r.Reason == ReasonPaused) != (r.By != nil) {
		c.errorf("%s: %+v", rec.key, r.Outcome)
	}
}

// reordered returns the items that the service stored after a later item of the same
// group. It considers only items reported as stored. If skipReported is true, it also
// ignores items with Outcome.Overtaken set.
func (c *modelSender) reordered(skipReported bool) (found []string) {
	skip := map[int]bool{}
	for _, r := range c.reports {
		skip[r.n] = r.Fate != attempt.FateStored || r.Reason != ReasonAnswered || skipReported && r.Overtaken
	}
	for group, order := range c.order {
		highest := -1
		for _, n := range order {
			place := c.items[n].place
			if place < highest && !skip[n] {
				found = append(found, fmt.Sprintf("%s: item %d at place %d after place %d (%v)", group, n, place, highest, order))
			}
			highest = max(highest, place)
		}
	}
	return found
}

func used(b *buffer, o Options) (items, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return o.Items - b.items, o.Bytes - b.bytes
}

// checkEmpty checks that a dispatcher has no items left after all reports.
func checkEmpty[M any](t testing.TB, d *Dispatcher[M]) {
	t.Helper()
	items, bytes := used(&d.buffer, d.options)
	assert.Zero(t, items, "places in use")
	assert.Zero(t, bytes, "bytes in use")
	d.mu.Lock()
	defer d.mu.Unlock()
	assert.Zero(t, d.items)
	// After the last item of a group was withdrawn, the dispatcher may keep the group in
	// d.ready or d.delayed. The group's queue must then be empty.
	for group, g := range d.groups {
		assert.True(t, g.head == nil && g.outcomes.head == nil && g.queued && !g.busy && !g.reportQueued, group)
	}
	assert.Zero(t, d.calls)
	assert.Zero(t, d.workers)
	assert.Zero(t, d.prepared)
	assert.Zero(t, d.reporters)
	assert.Zero(t, d.toReport.n)
	assert.LessOrEqual(t, d.spares, mostSpare)
	assert.LessOrEqual(t, len(d.spareBatches), d.options.InFlight)
	for _, e := range d.epochs {
		assert.Zero(t, e.items)
	}
}
