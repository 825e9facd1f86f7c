package dispatch

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

func preparing() Options {
	o := options()
	o.Prepared = 8
	return o
}

// During a request with an item of a group, the dispatcher calls Prepare for the next items
// of the group. One call gets at most half of Options.Prepared items, and fewer while others
// are prepared. Afterwards the items are sent in order.
func TestPrepare(t *testing.T) {
	try(t, preparing(), func(t *testing.T, c *modelSender) {
		c.prepare = func([]*item) { time.Sleep(12 * time.Millisecond) } // longer than two requests take
		c.submit(c.make("a", 12)...)
		pass(time.Millisecond)
		require.Equal(t, [][]int{{1, 2, 3, 4}}, c.prepared)
		pass(6 * time.Millisecond)
		require.Equal(t, [][]int{{0}}, c.sent(), "the group waits for Prepare")
		pass(6 * time.Millisecond)
		require.Equal(t, [][]int{{0}, {1}}, c.sent())
		require.Equal(t, [][]int{{1, 2, 3, 4}, {5, 6, 7, 8}}, c.prepared)
		c.flush()
		require.Equal(t, [][]int{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}}, c.sent())
		require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, c.reported())
		require.Equal(t, [][]int{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10}, {11}}, c.prepared)
	})
}

// If a request contains items of several groups, Prepare gets equal numbers of items from
// these groups. Groups without further items are left out.
func TestPrepareIsFair(t *testing.T) {
	try(t, preparing(), func(t *testing.T, c *modelSender) {
		items := slices.Concat(c.make("a", 9), c.make("b", 9), c.make("c", 1))
		c.submit(items...)
		c.flush()
		for _, together := range c.prepared {
			of := map[string]int{}
			for _, n := range together {
				of[items[n].Group]++
			}
			require.Equal(t, of["a"], of["b"])
			require.Zero(t, of["c"])
		}
		require.Len(t, c.sent(), 9, "the groups stay in step")
	})
}

// Each of 52 groups has two items. The first items of the groups that have no request yet
// fill the next requests, so these items are prepared, and no second items. Their groups
// keep their turn.
func TestPrepareReadyGroups(t *testing.T) {
	o := preparing()
	o.InFlight = 1
	try(t, o, func(t *testing.T, c *modelSender) {
		var items []*item
		for _, group := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
			items = append(items, c.make(string(group), 2)...)
		}
		c.submit(items...)
		pass(time.Millisecond)
		c.mu.Lock()
		prepared := slices.Clone(c.prepared)
		c.mu.Unlock()
		require.Len(t, prepared, 1)
		require.ElementsMatch(t, []int{20, 22, 24, 26}, prepared[0])
		pass(6 * time.Millisecond)
		require.Equal(t, [][]int{{0, 2, 4, 6, 8, 10, 12, 14, 16, 18}, {20, 22, 24, 26, 28, 30, 32, 34, 36, 38}}, c.sent())
	})
}

// While Prepare runs for the first items of ready groups, these groups wait, even if they get
// another item, and the groups after them are sent. A group whose context has ended meanwhile
// is not sent.
func TestReadyGroupsWaitForPrepare(t *testing.T) {
	o := preparing()
	o.InFlight = 1
	try(t, o, func(t *testing.T, c *modelSender) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c.prepare = func([]*item) { time.Sleep(7 * time.Millisecond) }
		var items []*item
		for _, group := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJ" {
			items = append(items, c.make(string(group), 1)...)
		}
		items[11].Context = ctx
		c.submit(items...)
		pass(time.Millisecond)
		cancel(errOver)
		c.submit(c.make("k", 1)...) // the group of item 10
		pass(5 * time.Millisecond)
		require.Equal(t, []int{14, 15, 16, 17, 18, 19, 20, 21, 22, 23}, c.sent()[1])
		c.flush()
		require.Equal(t, []int{10, 12, 13}, c.sent()[2][:3])
		require.Equal(t, 1, c.items[11].released)
	})
}

// Nothing is prepared behind a request of which no item was admitted. This request is not made,
// and its items may have to wait for the end of other claims.
func TestReadyGroupsBehindAdmittedItems(t *testing.T) {
	o := preparing()
	o.InFlight = 1
	try(t, o, func(t *testing.T, c *modelSender) {
		var items []*item
		for i := range 30 {
			items = append(items, c.item(fmt.Sprint("group ", i)))
		}
		c.admit = func(it *item) verdict.Verdict {
			if it.Message.n < 10 && c.since() < time.Second {
				return later(time.Second)
			}
			return send
		}
		c.submit(items...)
		c.flush()
		require.Len(t, c.prepared, 1)
		require.ElementsMatch(t, []int{20, 21, 22, 23}, c.prepared[0], "behind the second request")
	})
}

// Item 0 of each group is being sent. Item 1 must not be prepared: in group a it has the
// same event as item 0, in group b it is refused. Item 2 comes after item 1, so it must
// not be prepared either.
func TestNotPrepared(t *testing.T) {
	try(t, preparing(), func(t *testing.T, c *modelSender) {
		items := c.make("a", 3)
		items[1].Key = items[0].Key
		c.items[1].key = items[0].Key
		refused := c.make("b", 3)
		refused[1].Verdict = verdict.KindRefuse
		c.submit(append(items, refused...)...)
		pass(time.Millisecond)
		require.Empty(t, c.prepared)
	})
}

// Items are prepared behind admitted items only. If the first item has to wait, for example
// for other claims to end, the claims after it might be those that it waits for.
func TestPreparedBehindAdmittedItems(t *testing.T) {
	try(t, preparing(), func(t *testing.T, c *modelSender) {
		items := c.make("a", 3)
		c.admit = putOff(items[0], 3, 100*time.Millisecond)
		c.submit(items...)
		pass(250 * time.Millisecond)
		require.Empty(t, c.prepared)
		c.flush()
		require.Equal(t, [][]int{{1, 2}}, c.prepared)
	})
}

// The context of an item ends while the sender's Prepare runs for the item. The item
// gets its outcome immediately. The sender's Release is called after Prepare.
func TestWithdrawnInPrepare(t *testing.T) {
	try(t, preparing(), func(t *testing.T, c *modelSender) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c.prepare = func([]*item) { time.Sleep(time.Second) }
		items := c.make("a", 3)
		items[1].Context = ctx
		c.submit(items...)
		pass(time.Millisecond)
		require.Len(t, c.prepared, 1)
		cancel(errOver)
		synctest.Wait()
		require.Equal(t, attempt.FateNotStored, c.outcome(items[1]).Fate)
		require.Zero(t, c.outcome(items[1]).Attempts)
		require.Zero(t, c.items[1].released)
		c.flush()
		require.Equal(t, 1, c.items[1].released)
		require.Equal(t, [][]int{{0}, {2}}, c.sent())
	})
}

// The context of the group's waiting items ends while Prepare runs for these items. The
// next item of the group is sent as usual.
func TestGroupWithdrawnInPrepare(t *testing.T) {
	try(t, preparing(), func(t *testing.T, c *modelSender) {
		ctx, cancel := context.WithCancelCause(t.Context())
		c.prepare = func([]*item) { time.Sleep(time.Second) }
		items := c.make("a", 3)
		items[1].Context, items[2].Context = ctx, ctx
		c.submit(items...)
		pass(10 * time.Millisecond)
		require.Equal(t, [][]int{{0}}, c.sent())
		cancel(errOver)
		synctest.Wait()
		other := c.item("b")
		next := c.item("a")
		c.submit(other, next)
		c.flush()
		require.Equal(t, attempt.FateStored, c.outcome(other).Fate)
		require.Equal(t, attempt.FateStored, c.outcome(next).Fate)
		pass(time.Second)
		require.Equal(t, 1, c.items[2].released)
	})
}
