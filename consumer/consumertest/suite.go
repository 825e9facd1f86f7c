package consumertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// TestConsumer runs every case as a subtest. A violated invariant fails the subtest. Of
// each invariant at most three violations are reported.
func TestConsumer(t *testing.T, run Run) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, violation := range c.check(t, run) {
				t.Error(violation)
			}
		})
	}
}

// suiteCase is one case of the suite. Its function `play` sends messages and starts
// consumers. Meanwhile the methods of world check the invariants and record violations.
type suiteCase struct {
	name   string
	config sqstest.Config
	play   func(w *world)
}

func (c suiteCase) check(t *testing.T, run Run) (violations []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, run, c.config)
		c.play(w)
		w.mu.Lock()
		defer w.mu.Unlock()
		violations = w.errs
	})
	return violations
}

var cases = []suiteCase{
	{"groups run concurrently and in order", sqstest.Config{}, playOrder},
	{"order under faults of every call", sqstest.Config{}, playFaults},
	{"two consumers share the groups", sqstest.Config{}, playTwo},
	{"poison with one message per receive", sqstest.Config{MaxReceiveCount: 3}, func(w *world) { w.env.PerReceive = 1; playPoison(w, 1) }},
	{"poison with ten messages per receive", sqstest.Config{MaxReceiveCount: 3}, func(w *world) { playPoison(w, 1) }},
	{"nine poison messages and maxReceiveCount 1", sqstest.Config{MaxReceiveCount: 1}, func(w *world) { playPoison(w, 9) }},
	{"a message that kills its consumer", sqstest.Config{MaxReceiveCount: 10}, playCrashLoop},
	{"kills at every step", sqstest.Config{}, playKills},
	{"a delete that fails holds its group", sqstest.Config{}, playDeletes},
	{"a shutdown leaves nothing in flight", sqstest.Config{}, playShutdown},
	{"a handler of two hours", sqstest.Config{MaxReceiveCount: 1}, playLong},
	{"a stalled consumer learns of its loss", sqstest.Config{}, playStalled},
	{"bounded memory", sqstest.Config{}, playMemory},
	{"a standard queue with group IDs", sqstest.Config{Standard: true}, playStandard},
	{"a quota of 300 calls a second", sqstest.Config{DiscardDeleted: true}, playQuota},
	{"purge, clock step and redrive", sqstest.Config{}, playClockAndPurge},
}

func works(d time.Duration) func(context.Context, *process, Delivery) error {
	return func(ctx context.Context, _ *process, _ Delivery) error { return clock.Sleep(ctx, d) }
}

// stop ends the processes without a kill. It checks that Run returns nil and leaves no
// message in flight (I6).
func (w *world) stop(processes ...*process) {
	for _, p := range processes {
		p.cancel()
	}
	for _, p := range processes {
		if err := <-p.ended; err != nil && !p.killed.Load() {
			w.violate("I6: Run returned %v", err)
		}
	}
	for _, m := range w.left() {
		if !m.HiddenUntil.IsZero() {
			w.violate("I6: %s is in flight after the shutdown", m.Body)
		}
	}
	// Wait, so that the checks find calls that a consumer makes after Run has returned.
	time.Sleep(time.Minute)
}

func (w *world) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail(format, args...)
}

// finished checks invariant I5: every message was handled or copied to the parking queue,
// and no message is left in the queue.
func (w *world) finished() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.left() {
		w.fail("I5: %s was not deleted", m.Body)
	}
	for body := range w.position {
		if !w.ended[body] {
			w.fail("I5: %s was neither handled nor parked", body)
		}
	}
}

func playOrder(w *world) {
	const groups, each = 10, 20
	for g := range groups {
		w.send(fmt.Sprintf("g%d", g), each)
	}
	most, running := 0, 0
	p := w.start("a", func(ctx context.Context, p *process, d Delivery) error {
		w.mu.Lock()
		running++
		most = max(most, running)
		w.mu.Unlock()
		err := works(time.Second)(ctx, p, d)
		w.mu.Lock()
		running--
		w.mu.Unlock()
		return err
	})
	time.Sleep(10 * time.Minute)
	w.stop(p)
	w.finished()
	if most < groups {
		w.violate("I1: at most %d of %d groups ran at once", most, groups)
	}
}

// injectFaults makes every call of a consumer fail now and then.
func (w *world) injectFaults(rate float64, seed uint64) {
	i := seed * 100
	for _, calls := range []sqstest.Action{sqstest.ActionReceive, sqstest.ActionDelete, sqstest.ActionVisibility} {
		for _, f := range []sqstest.Fault{
			sqstest.LoseAnswer(), sqstest.DropRequest(), sqstest.Throttle(), sqstest.ServerError(), sqstest.TruncateAnswer(), sqstest.DelayAnswer(2 * time.Second),
		} {
			i++
			w.queue.InjectRandomly(f.On(calls), rate/6, i)
		}
		if calls != sqstest.ActionReceive {
			i++
			w.queue.InjectRandomly(sqstest.FailEntries("InternalFailure", smithy.FaultServer, nil).On(calls), rate/2, i)
		}
	}
}

func playFaults(w *world) {
	w.injectFaults(0.3, 1)
	for g := range 5 {
		w.send(fmt.Sprintf("g%d", g), 20)
	}
	p := w.start("a", works(time.Second))
	time.Sleep(2 * time.Hour)
	w.queue.ClearFaults()
	time.Sleep(10 * time.Minute)
	w.stop(p)
	w.finished()
}

func playTwo(w *world) {
	w.injectFaults(0.1, 2)
	for range 4 {
		for g := range 8 {
			w.send(fmt.Sprintf("g%d", g), 5)
		}
	}
	handle := func(ctx context.Context, p *process, d Delivery) error {
		if len(d.Body)%3 == 0 && time.Now().UnixNano()%3 == 0 {
			return errors.New("not this time")
		}
		w.mu.Lock()
		long := w.position[d.Body]%5 == 0
		w.mu.Unlock()
		if long {
			return works(w.env.Visibility*3/2)(ctx, p, d)
		}
		return works(5*time.Second)(ctx, p, d)
	}
	w.env.Attempts = 100
	a, b := w.start("a", handle), w.start("b", handle)
	time.Sleep(6 * time.Hour)
	w.queue.ClearFaults()
	time.Sleep(10 * time.Minute)
	w.stop(a, b)
	w.finished()
}

func playPoison(w *world, poison int) {
	w.send("g", 10)
	calls := map[string]int{}
	p := w.start("a", func(_ context.Context, _ *process, d Delivery) error {
		if w.position[d.Body] < poison {
			w.mu.Lock()
			calls[d.Body]++
			w.mu.Unlock()
			return errors.New("poison")
		}
		return nil
	})
	time.Sleep(3 * time.Hour)
	w.stop(p)
	w.finished()
	if n := len(w.dead.Messages()); n > 0 {
		w.violate("I4: %d messages reached the dead-letter queue, %d are poison", n, poison)
	}
	if n := len(w.parking.Messages()); n != poison {
		w.violate("I4: %d messages were parked, %d are poison", n, poison)
	}
	for body, n := range calls {
		if n != w.env.Attempts {
			w.violate("I4: %s was parked after %d calls of the handler, not %d", body, n, w.env.Attempts)
		}
	}
}

func playCrashLoop(w *world) {
	for range 5 {
		for g := range 40 {
			w.send(fmt.Sprintf("g%d", g), 1)
		}
	}
	handle := func(ctx context.Context, p *process, d Delivery) error {
		if d.Body == "g20/2" {
			p.kill()
			return errKilled
		}
		return works(100*time.Millisecond)(ctx, p, d)
	}
	p := w.start("a", handle)
	for end := time.Now().Add(2 * time.Hour); time.Now().Before(end); {
		select {
		case <-p.ended:
			time.Sleep(time.Second)
			p = w.start("a", handle)
		case <-time.After(time.Until(end)):
		}
	}
	w.stop(p)
	w.finished()
	if n := len(w.dead.Messages()) + len(w.parking.Messages()); n != 1 {
		w.violate("I4: %d messages were parked or dead-lettered, one kills its consumer", n)
	}
}

// playKills kills the consumer "a" in one of its steps, when "a" and "b" together have made
// at least 3 steps. It kills the restarted "a" after at least 4 further steps, then after at
// least 5, and so on. The share of "b" in these steps varies, so the kills hit every kind of
// step of "a".
func playKills(w *world) {
	for g := range 4 {
		w.send(fmt.Sprintf("g%d", g), 30)
	}
	steps, next := 0, 3
	w.point = func(p *process, name string) {
		w.mu.Lock()
		steps++
		die := steps >= next && p.name == "a" && !p.killed.Load()
		if die {
			steps, next = 0, next+1
		}
		w.mu.Unlock()
		if die {
			p.kill()
		}
	}
	handle := works(time.Second)
	a, b := w.start("a", handle), w.start("b", handle)
	for end := time.Now().Add(4 * time.Hour); time.Now().Before(end); {
		select {
		case <-a.ended:
			a = w.start("a", handle)
		case <-time.After(time.Until(end)):
		}
	}
	w.mu.Lock()
	next = 1 << 30
	w.mu.Unlock()
	time.Sleep(10 * time.Minute)
	w.stop(a, b)
	w.finished()
}

func playDeletes(w *world) {
	w.send("g", 3)
	w.queue.Inject(sqstest.ServerError().On(sqstest.ActionDelete), 8)
	p := w.start("a", func(_ context.Context, _ *process, d Delivery) error {
		for _, m := range w.left() {
			if w.position[m.Body] < w.position[d.Body] {
				w.violate("I1: %s starts before %s was deleted", d.Body, m.Body)
			}
		}
		return nil
	})
	time.Sleep(time.Hour)
	w.stop(p)
	w.finished()
}

func playShutdown(w *world) {
	for g := range 20 {
		w.send(fmt.Sprintf("g%d", g), 10)
	}
	for range 20 {
		p := w.start("a", works(700*time.Millisecond))
		time.Sleep(time.Duration(1300+len(w.left())) * time.Millisecond)
		w.stop(p)
	}
	p := w.start("a", works(10*time.Millisecond))
	time.Sleep(30 * time.Minute)
	w.stop(p)
	w.finished()
}

func playLong(w *world) {
	w.send("g", 2)
	handle := func(ctx context.Context, p *process, d Delivery) error {
		for range 120 {
			if err := works(time.Minute)(ctx, p, d); err != nil {
				return err
			}
			for _, m := range w.left() {
				if m.Body == d.Body && m.HiddenUntil.IsZero() {
					w.violate("I7: %s is visible while its handler runs", d.Body)
				}
			}
		}
		return nil
	}
	a, b := w.start("a", handle), w.start("b", handle)
	time.Sleep(5 * time.Hour)
	w.stop(a, b)
	w.finished()
	if n := len(w.dead.Messages()); n > 0 {
		w.violate("I7: %d messages were received again while their handlers ran", n)
	}
	if w.starts != 2 {
		w.violate("I7: %d starts of 2 messages", w.starts)
	}
}

func playStalled(w *world) {
	w.send("g", 3)
	var learned, second time.Time
	handle := func(ctx context.Context, p *process, d Delivery) error {
		w.mu.Lock()
		starts := w.starts
		if starts == 2 {
			second = time.Now()
		}
		w.mu.Unlock()
		if starts > 1 {
			return nil
		}
		w.queue.InjectRandomly(sqstest.DropRequest().On(sqstest.ActionVisibility), 1, 1)
		<-time.After(20 * time.Second)
		select {
		case <-ctx.Done():
			w.mu.Lock()
			learned = time.Now()
			w.mu.Unlock()
		case <-time.After(30 * time.Minute):
		}
		w.queue.ClearFaults()
		return context.Cause(ctx)
	}
	a, b := w.start("a", handle), w.start("b", handle)
	time.Sleep(time.Hour)
	w.stop(a, b)
	w.finished()
	if learned.IsZero() || !learned.Before(second) {
		w.violate("I8: the handler learned of its loss at %v, another one started at %v", learned, second)
	}
}

func playMemory(w *world) {
	w.env.MaxMessages, w.env.Attempts = 50, 1000
	for g := range 300 {
		w.send(fmt.Sprintf("g%d", g), 1)
	}
	p := w.start("a", func(ctx context.Context, p *process, d Delivery) error {
		if err := works(10*time.Second)(ctx, p, d); err != nil {
			return err
		}
		return errors.New("later")
	})
	for range 300 {
		time.Sleep(time.Second)
		held := 0
		for _, m := range w.left() {
			if !m.HiddenUntil.IsZero() {
				held++
			}
		}
		if held > w.env.MaxMessages {
			w.violate("I9: %d messages in hand, at most %d are allowed", held, w.env.MaxMessages)
		}
	}
	w.stop(p)
}

// playStandard runs a consumer on a standard queue, and the handler fails for the first
// message of a group. The consumer must return an error, or handle all the other messages.
func playStandard(w *world) {
	w.send("g", 5)
	w.mu.Lock()
	// All messages get position 0, so the checks accept any order.
	w.order = map[string][]string{"g": make([]string, 5)}
	for i := range w.order["g"] {
		w.order["g"][i] = fmt.Sprintf("g/%d", i)
		w.position[w.order["g"][i]] = 0
	}
	w.mu.Unlock()
	p := w.start("a", func(_ context.Context, _ *process, d Delivery) error {
		if strings.HasSuffix(d.Body, "/0") {
			return errors.New("the first fails")
		}
		return nil
	})
	time.Sleep(4 * time.Second)
	select {
	case err := <-p.ended:
		if err == nil {
			w.violate("I11: the consumer ended on a standard queue without an error")
		}
		return
	default:
	}
	w.mu.Lock()
	if len(w.ended) < 4 {
		w.fail("I11: %d of 4 messages of a standard queue were handled after one failed", len(w.ended))
	}
	w.mu.Unlock()
	p.cancel()
	<-p.ended
}

func playQuota(w *world) {
	const groups, each = 100, 100
	for range each {
		for g := range groups {
			w.send(fmt.Sprintf("g%d", g), 1)
		}
	}
	w.queue.SetQuota(300, sqstest.ActionReceive, sqstest.ActionDelete, sqstest.ActionVisibility)
	p := w.start("a", works(time.Millisecond))
	// 10,000 messages need 1,000 receives and 1,000 deletes, so about 4 s with this quota.
	for range 20 {
		time.Sleep(time.Second)
		w.mu.Lock()
		done := len(w.ended) == groups*each
		w.mu.Unlock()
		if done {
			break
		}
	}
	w.mu.Lock()
	if n := len(w.ended); n < groups*each {
		w.fail("I12: %d of %d messages after 20 s at 300 calls a second", n, groups*each)
	}
	w.mu.Unlock()
	w.stop(p)
}

// playClockAndPurge first advances the queue's clock by an hour, so that messages become
// visible although the consumer has received them. The consumer must still handle these
// messages. Then the queue is purged, and the consumer must handle messages sent later.
func playClockAndPurge(w *world) {
	w.send("g", 5)
	handle := works(2 * time.Second)
	p := w.start("a", handle)
	time.Sleep(3 * time.Second)
	w.queue.Advance(time.Hour) // longer than every visibility timeout
	time.Sleep(10 * time.Minute)
	w.finished()
	w.send("h", 5)
	time.Sleep(time.Second)
	w.purge()
	time.Sleep(10 * time.Minute)
	w.send("k", 5)
	time.Sleep(10 * time.Minute)
	w.stop(p)
	w.mu.Lock()
	for _, body := range w.order["k"] {
		if !w.ended[body] {
			w.fail("I5: %s was not handled after a purge", body)
		}
	}
	w.mu.Unlock()
}
