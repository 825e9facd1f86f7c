package replay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// All items are sent, in order, byte for byte, with the run's ID in an attribute.
func TestRun(t *testing.T) {
	q := newQueue(t)
	lines := many(t, 7, 30)
	lines[0].Attributes = map[string]string{"region": "ks"}
	s := sourceOf(t, lines...)
	plan := newPlan(t, s, replay.Options{}, time.Now())
	j := new(idempotency.Memory)
	report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Store: j, ID: "run-1", InFlight: 3})
	assert.Equal(t, 210, report.Sent)
	assert.True(t, report.Complete())
	assert.Equal(t, []replay.LabelCount{{Planned: replay.LabelNew, AtSend: replay.LabelNew, Items: 210}}, report.Labels)
	assert.Equal(t, planned(plan, replay.ActionSend), sent(t, q))
	bodies := map[string]sqstest.Message{}
	for _, m := range q.Messages() {
		bodies[m.Body] = m
		assert.Equal(t, "run-1", *m.Attributes[sqsfifo.ReplayAttribute].StringValue)
	}
	for _, l := range lines {
		assert.Contains(t, bodies, l.Body)
	}
	// Requests of different groups overlap, so any group's message may be the first.
	assert.Equal(t, "ks", *bodies[lines[0].Body].Attributes["region"].StringValue)
	assert.NotContains(t, lines[0].Attributes, sqsfifo.ReplayAttribute)

	// Another run with the same plan and journal sends nothing.
	report = run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Store: j})
	assert.Equal(t, 210, report.Sent)
	assert.Equal(t, 2, report.Runs)
	assert.Len(t, q.Messages(), 210)
	assert.Empty(t, q.Suppressed())
}

// The store has a record of each item before its send. Each group has at most one item
// without an outcome.
func TestRecordedBeforeSent(t *testing.T) {
	q := newQueue(t)
	s := sourceOf(t, many(t, 5, 20)...)
	plan := newPlan(t, s, replay.Options{}, time.Now())
	j := new(idempotency.Memory)
	p := newProducer(t, q, q.URL())
	run(t, plan, replay.Config{Source: s, Store: j, Sender: senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
		open := 0
		for r, err := range j.Scan(ctx, idempotency.Filter{Scope: replay.StoreScope(plan), Statuses: []idempotency.Status{idempotency.StatusRunning}}) {
			assert.NoError(t, err)
			if r.Group == m.Group {
				open++
				assert.True(t, strings.HasSuffix(r.Key.Value, " "+m.DedupeKey), "%s is sent under the record %s", m.DedupeKey, r.Key.Value)
			}
		}
		assert.Equal(t, 1, open, "records of group %s without an outcome", m.Group)
		return sendAndWait(ctx, p, m)
	})})
	assert.Len(t, q.Messages(), 100)
}

// A group stops at its first failure. The other groups continue, and the next run
// begins with the failed item.
func TestAFailureStopsItsGroup(t *testing.T) {
	for name, failure := range map[string]func(*sqsfifo.Message) error{"refused": refused, "in doubt": doubt} {
		t.Run(name, func(t *testing.T) {
			q := newQueue(t)
			s := sourceOf(t, many(t, 4, 10)...)
			plan := newPlan(t, s, replay.Options{}, time.Now())
			j := new(idempotency.Memory)
			p := newProducer(t, q, q.URL())
			report := run(t, plan, replay.Config{Source: s, Store: j, Sender: senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
				if m.DedupeKey == "g002-0004" {
					return sqsfifo.Receipt{}, failure(m)
				}
				return sendAndWait(ctx, p, m)
			})})
			want := replay.PlanReport{
				Plan: plan.ID, Source: plan.Source, Run: report.Run, Runs: 1, Planned: 40, Sent: 34, Skipped: 5, StoppedGroups: 1,
				SkippedFor: map[string]int{"group stopped": 5}, Labels: []replay.LabelCount{{Planned: replay.LabelNew, AtSend: replay.LabelNew, Items: 35}},
			}
			if name == "refused" {
				want.Failed = 1
			} else {
				want.Unresolved = 1
			}
			assert.Equal(t, want, report)
			assert.False(t, report.Complete())
			assert.Len(t, sent(t, q)["g002"], 4)
			report = run(t, plan, replay.Config{Source: s, Store: j, Sender: p})
			assert.Equal(t, 40, report.Sent)
			assert.Equal(t, planned(plan, replay.ActionSend), sent(t, q))
		})
	}
}

// A killed run sent an item and got no answer. The next run resends the item if less than
// the time ResendFor has passed since then. Otherwise the item is unresolved.
func TestWithoutAnAnswer(t *testing.T) {
	for _, tc := range []struct {
		after time.Duration
		again bool
	}{{0, true}, {replay.ResendFor - time.Microsecond, true}, {replay.ResendFor, false}, {time.Hour, false}} {
		t.Run(tc.after.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := sourceOf(t, line(t, "a", "g"), line(t, "b", "g"), line(t, "c", "h"))
				plan := newPlan(t, s, replay.Options{}, time.Now())
				j := new(idempotency.Memory)
				killed(t, s, plan, j)
				time.Sleep(tc.after)
				var order []string
				report := run(t, plan, replay.Config{Source: s, Store: j, InFlight: 1, Sender: senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
					order = append(order, m.DedupeKey)
					deadline, ok := ctx.Deadline()
					assert.Equal(t, m.DedupeKey == "a", ok)
					if ok {
						assert.Equal(t, replay.ResendFor-tc.after, time.Until(deadline))
					}
					return sqsfifo.Receipt{MessageID: m.DedupeKey}, nil
				})})
				if tc.again {
					assert.Equal(t, []string{"a", "b", "c"}, order)
					assert.Equal(t, 3, report.Sent)
				} else {
					assert.Equal(t, []string{"c"}, order)
					assert.Equal(t, []int{1, 1, 1}, []int{report.Sent, report.Unresolved, report.Skipped})
				}
			})
		})
	}
}

// killed leaves the records of a run that was killed after it had sent the first item.
func killed(t *testing.T, s replay.Source, plan *replay.Plan, j idempotency.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	dead := &deadStore{Store: j}
	_, err := start(ctx, plan, replay.Config{Source: s, Store: dead, Owner: "killed", InFlight: 1, Sender: senderFunc(func(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error) {
		dead.dead.Store(true)
		cancel()
		return sqsfifo.Receipt{}, nil
	})})
	require.Error(t, err)
	// The lock of the killed run.
	for r, err := range j.Scan(t.Context(), idempotency.Filter{Scope: "replay"}) {
		require.NoError(t, err)
		require.NoError(t, j.Finish(t.Context(), idempotency.Ref{Key: r.Key, Fence: r.Fence}, idempotency.Released()))
	}
}

// deadStore fails after the death of its process.
type deadStore struct {
	idempotency.Store
	dead atomic.Bool
}

var errDead = errors.New("the process is dead")

func (d *deadStore) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if d.dead.Load() {
		return idempotency.Outcome{}, errDead
	}
	return d.Store.Claim(ctx, c)
}

func (d *deadStore) Finish(ctx context.Context, ref idempotency.Ref, e idempotency.Ending) error {
	if d.dead.Load() {
		return errDead
	}
	return d.Store.Finish(ctx, ref, e)
}

// The first attempt gets no answer, and SQS refuses the next ones. The item stays in
// doubt, because the first attempt may have stored it.
func TestARefusalLeavesTheEarlierDoubt(t *testing.T) {
	s := sourceOf(t, line(t, "a", "g"))
	now := time.Now()
	plan := newPlan(t, s, replay.Options{}, now)
	j := new(idempotency.Memory)
	for i, failure := range []func(*sqsfifo.Message) error{doubt, refused, refused} {
		report := run(t, plan, replay.Config{Source: s, Store: j, Sender: senderFunc(func(_ context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			return sqsfifo.Receipt{}, failure(m)
		})})
		assert.Equal(t, 1, report.Unresolved, "after failure %d", i)
	}
	clock := time.Now().Add(replay.ResendFor)
	j.Now = func() time.Time { return clock }
	report := run(t, plan, replay.Config{Source: s, Store: j, Now: j.Now, Sender: senderFunc(func(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error) {
		t.Error("it was sent again")
		return sqsfifo.Receipt{}, nil
	})})
	assert.Equal(t, 1, report.Unresolved)
}

// The source has the item in doubt, and SQS refuses the run's attempt. The original send may
// still have stored the item, so it is not sent after the window. If an operator finds out that
// it was not stored, a refusal proves that the item is not stored at all.
func TestARefusalLeavesTheDoubtOfTheSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sourceOf(t, line(t, "a", "g", doubtAt(time.Now())))
		plan := newPlan(t, s, replay.Options{}, time.Now())
		j := new(idempotency.Memory)
		sends := 0
		c := replay.Config{Source: s, Store: j, Sender: senderFunc(func(_ context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			sends++
			return sqsfifo.Receipt{}, refused(m)
		})}
		report := run(t, plan, c)
		assert.Equal(t, []int{1, 0}, []int{report.Unresolved, report.Failed})
		time.Sleep(replay.ResendFor)
		report = run(t, plan, c)
		assert.Equal(t, []int{1, 1}, []int{report.Unresolved, sends})
		resolve(t, j, plan, idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll}))
		for range 2 {
			report = run(t, plan, c)
			assert.Equal(t, []int{0, 1}, []int{report.Unresolved, report.Failed})
		}
		assert.Equal(t, 3, sends)
	})
}

// If SQS stored altered content, the item is not resent: SQS might suppress the resend as
// a duplicate.
func TestAltered(t *testing.T) {
	s := sourceOf(t, line(t, "a", "g"), line(t, "b", "g"))
	plan := newPlan(t, s, replay.Options{}, time.Now())
	j := new(idempotency.Memory)
	var n atomic.Int64
	sender := senderFunc(func(context.Context, *sqsfifo.Message) (sqsfifo.Receipt, error) {
		n.Add(1)
		return sqsfifo.Receipt{}, &sqsfifo.AlteredError{Field: "MessageAttributes"}
	})
	for range 2 {
		report := run(t, plan, replay.Config{Source: s, Store: j, Sender: sender})
		assert.Equal(t, []int{1, 1}, []int{report.Unresolved, report.Skipped})
	}
	assert.EqualValues(t, 1, n.Load())
	clock := time.Now().Add(replay.Interval)
	j.Now = func() time.Time { return clock }
	resolve(t, j, plan, idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll}))
	run(t, plan, replay.Config{Source: s, Store: j, Sender: sender})
	assert.EqualValues(t, 2, n.Load())
}

// Before the send, a run compares an item's body, group and key with the plan. A
// different or missing item is not sent and stops its group.
func TestDrift(t *testing.T) {
	good := []replay.MessageLine{line(t, "a", "g"), line(t, "b", "g"), line(t, "c", "h")}
	for name, change := range map[string]func(*replay.MessageLine){
		"body":  func(l *replay.MessageLine) { l.Body = strings.Replace(l.Body, `"group":"g"`, `"group":"j"`, 1) },
		"group": func(l *replay.MessageLine) { l.Group = "j" },
		"key":   func(l *replay.MessageLine) { l.DedupeKey = "j" },
		"hash":  func(l *replay.MessageLine) { l.BodyHash = "j" },
		"gone":  func(l *replay.MessageLine) { *l = replay.MessageLine{} },
		"body of which only the plan has the hash": func(l *replay.MessageLine) {
			l.Body = strings.Replace(l.Body, `"group":"g"`, `"group":"j"`, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			good := slices.Clone(good)
			if strings.Contains(name, "only the plan") {
				good[0].BodyHash = ""
			}
			s := sourceOf(t, good...)
			plan := newPlan(t, s, replay.Options{}, time.Now())
			lines := slices.Clone(good)
			change(&lines[0])
			text := encode(t, lines)
			// The change "hash" replaces 64 bytes with one. The others keep the length.
			if name != "gone" {
				require.Len(t, text, len(encode(t, good))-map[string]int{"hash": 63}[name])
			}
			q := newQueue(t)
			j := new(idempotency.Memory)
			changed := &changedFirst{s, sourceOf(t, lines...)}
			report := run(t, plan, replay.Config{Source: changed, Store: j, Sender: newProducer(t, q, q.URL())})
			assert.Equal(t, []int{1, 1, 1}, []int{report.Sent, report.Drift, report.Skipped})
			report = run(t, plan, replay.Config{Source: s, Store: j, Sender: newProducer(t, q, q.URL())})
			assert.Equal(t, 3, report.Sent)
		})
	}
}

// An item planned as drift stops its group, even while SQS would suppress the recorded
// message. The run reads the item again. If the message and the record now agree, the
// window policy decides.
func TestDriftWithinTheWindow(t *testing.T) {
	for name, c := range map[string]struct {
		window  replay.WindowPolicy
		after   time.Duration // from the plan to the second run
		sent    []string      // of group g, by the second run
		skipped map[string]int
	}{
		"skip":       {replay.WindowSkip, 0, []string{"b"}, map[string]int{"window": 1}},
		"skip later": {replay.WindowSkip, time.Hour, []string{"a", "b"}, map[string]int{}},
		"send":       {replay.WindowSend, 0, []string{"a", "b"}, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			made := time.Now()
			good := []replay.MessageLine{line(t, "a", "g", deliveredAt(made)), line(t, "b", "g"), line(t, "c", "h")}
			bad := slices.Clone(good)
			bad[0].Body = strings.Replace(bad[0].Body, `"group":"g"`, `"group":"j"`, 1)
			source := func(lines []replay.MessageLine) replay.Source {
				text := append(encode(t, lines), `{"group":"torn`...)
				return replay.NewJSONLines("events.jsonl", bytes.NewReader(text), int64(len(text)))
			}
			plan := newPlan(t, source(bad), replay.Options{Redeliver: true, Window: c.window}, made)
			drifted := []int{}
			for _, it := range plan.Items {
				if it.Action == replay.ActionDrift {
					drifted = append(drifted, it.Number)
				}
			}
			require.Equal(t, []int{0, 3}, drifted)
			steps, err := replay.DryRun(t.Context(), plan, nil, made)
			require.NoError(t, err)
			got := map[int]replay.Action{}
			for _, step := range steps {
				got[step.Item.Number] = step.Action
			}
			assert.Equal(t, map[int]replay.Action{0: replay.ActionDrift, 2: replay.ActionSend, 3: replay.ActionDrift}, got)

			q := newQueue(t)
			j := new(idempotency.Memory)
			report := run(t, plan, replay.Config{Source: source(bad), Store: j, Sender: newProducer(t, q, q.URL())})
			assert.Equal(t, []int{1, 2, 1, 2}, []int{report.Sent, report.Drift, report.Skipped, report.StoppedGroups})
			assert.Equal(t, map[string][]string{"h": {"c"}}, sent(t, q))

			now := func() time.Time { return made.Add(c.after) }
			report = run(t, plan, replay.Config{Source: source(good), Store: j, Now: now, Sender: newProducer(t, q, q.URL())})
			assert.Equal(t, []int{len(c.sent) + 1, 1}, []int{report.Sent, report.Drift})
			assert.Equal(t, c.skipped, report.SkippedFor)
			assert.Equal(t, c.sent, sent(t, q)["g"])
		})
	}
}

// The plan says that an item is pending, but the source now says that it was delivered,
// without a time. With WindowWait, the run waits once until SQS has certainly forgotten the
// delivery, and then sends the item.
func TestNewsWithoutATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := func(l replay.MessageLine) replay.Source {
			text := encode(t, []replay.MessageLine{l})
			return replay.NewJSONLines("events.jsonl", bytes.NewReader(text), int64(len(text)))
		}
		planned, delivered := line(t, "a", "g"), line(t, "a", "g")
		delivered.Status = replay.StatusDelivered
		plan := newPlan(t, source(planned), replay.Options{Redeliver: true, Window: replay.WindowWait}, time.Now())
		q := newQueue(t)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		report, err := start(ctx, plan, replay.Config{Source: source(delivered), Sender: newProducer(t, q, q.URL())})
		require.NoError(t, err)
		assert.Equal(t, 1, report.Sent)
	})
}

// A killed run may have sent an item. The next run finds a different message, or none, and
// makes no attempt. The item stays in doubt: a further run with the right message resends it
// only while SQS recognises the resend.
func TestDriftLeavesTheEarlierDoubt(t *testing.T) {
	for name, bad := range map[string]replay.MessageLine{"changed": line(t, "b", "g"), "gone": {}} {
		for after, sent := range map[time.Duration]int{0: 1, time.Hour: 0} {
			t.Run(fmt.Sprint(name, after), func(t *testing.T) {
				s := sourceOf(t, line(t, "a", "g"))
				plan := newPlan(t, s, replay.Options{}, time.Now())
				j := new(idempotency.Memory)
				killed(t, s, plan, j)
				sends := 0
				sender := senderFunc(func(_ context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
					sends++
					return sqsfifo.Receipt{MessageID: "m"}, nil
				})
				run(t, plan, replay.Config{Source: &changedFirst{s, sourceOf(t, bad)}, Store: j, Sender: sender})
				assert.Zero(t, sends)
				j.Now = func() time.Time { return time.Now().Add(after) }
				report := run(t, plan, replay.Config{Source: s, Store: j, Now: j.Now, Sender: sender})
				assert.Equal(t, sent, sends)
				assert.Equal(t, []int{sent, 1 - sent}, []int{report.Sent, report.Unresolved})
			})
		}
	}
}

// changedFirst is a source with a changed first item: Fetch reads the item at position 0
// from another source.
type changedFirst struct {
	replay.Source
	from replay.Source
}

func (m *changedFirst) Fetch(ctx context.Context, positions []string) ([]replay.Item, error) {
	out, err := m.Source.Fetch(ctx, positions)
	for i, p := range positions {
		if p == "0" && err == nil {
			var changed []replay.Item
			changed, err = m.from.Fetch(ctx, []string{p})
			out[i] = changed[0]
		}
	}
	return out, err
}

// The producer has another message with the same dedupe key. The item is a conflict, and
// its group stops.
func TestConflictAtTheSend(t *testing.T) {
	q := newQueue(t)
	p := newProducer(t, q, q.URL())
	_, err := p.Send(t.Context(), Event{ID: "a", Group: "g", Note: "another"})
	require.NoError(t, err)
	// The producer sent the event in group g. The source has it in group h: drift.
	_, err = p.Send(t.Context(), Event{ID: "c", Group: "g"})
	require.NoError(t, err)
	s := sourceOf(t, line(t, "a", "g"), line(t, "b", "g"), func() replay.MessageLine {
		l := line(t, "c", "g")
		l.Group = "h"
		return l
	}())
	plan := newPlan(t, s, replay.Options{}, time.Now())
	report := run(t, plan, replay.Config{Source: s, Sender: p})
	assert.Equal(t, []int{0, 1, 1, 1}, []int{report.Sent, report.Conflict, report.Drift, report.Skipped})
}

// When the context ends, the sends in flight are cancelled and their outcomes are
// recorded. The next run continues.
func TestInterrupted(t *testing.T) {
	before := runtime.NumGoroutine()
	q := newQueue(t)
	s := sourceOf(t, many(t, 10, 50)...)
	plan := newPlan(t, s, replay.Options{}, time.Now())
	j := new(idempotency.Memory)
	cause := errors.New("enough")
	for round := 0; ; round++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		p := newProducer(t, q, q.URL())
		var n atomic.Int64
		report, err := start(ctx, plan, replay.Config{Source: s, Store: j, Sender: senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			if n.Add(1) == 60 {
				cancel(cause)
			}
			return sendAndWait(ctx, p, m)
		})})
		cancel(nil)
		require.NoError(t, p.Close(t.Context()))
		if err == nil {
			assert.Equal(t, 500, report.Sent)
			break
		}
		require.ErrorIs(t, err, cause)
		again, _, err := replay.ReadReport(t.Context(), plan, j, time.Now())
		require.NoError(t, err)
		assert.Equal(t, report, again, "all that is known is noted")
		assert.Positive(t, report.Remaining)
		assert.Zero(t, report.Failed)
		require.Less(t, round, 50)
	}
	assert.Equal(t, planned(plan, replay.ActionSend), sent(t, q))
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines before, %d after", before, runtime.NumGoroutine())
}

// interrupting ends the run during a claim. Like a database, it may still grant the claim
// after the end of the call's context.
type interrupting struct {
	idempotency.Store
	stop  context.CancelFunc
	calls atomic.Int64
}

func (s *interrupting) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if s.calls.Add(1) == 20 {
		s.stop()
	}
	out, err := s.Store.Claim(context.WithoutCancel(ctx), c)
	if ctx.Err() != nil {
		return idempotency.Outcome{}, errors.Join(err, idempotency.ErrAmbiguous)
	}
	return out, err
}

// A run that ends during a claim leaves no item in doubt that it has not sent. What the run
// has begun to send when it ends is sent to its end, so no doubt comes from there.
func TestInterruptedDuringAClaim(t *testing.T) {
	q := newQueue(t)
	s := sourceOf(t, many(t, 5, 20)...)
	plan := newPlan(t, s, replay.Options{}, time.Now())
	ctx, cancel := context.WithCancel(t.Context())
	j := &interrupting{Store: new(idempotency.Memory), stop: cancel}
	p := newProducer(t, q, q.URL())
	_, err := start(ctx, plan, replay.Config{Source: s, Store: j, Sender: senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
		return sendAndWait(context.WithoutCancel(ctx), p, m)
	})})
	require.ErrorIs(t, err, context.Canceled)
	report, _, err := replay.ReadReport(t.Context(), plan, j, time.Time{})
	require.NoError(t, err)
	assert.Zero(t, report.Unresolved)
	assert.Positive(t, report.Remaining)
}

// forgetful does not confirm its first call of each kind.
type forgetful struct {
	idempotency.Store
	claims, ends atomic.Int64
}

func (s *forgetful) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	out, err := s.Store.Claim(ctx, c)
	if c.Key.Operation == "replay.item" && s.claims.Add(1) == 1 {
		return idempotency.Outcome{}, errors.Join(err, idempotency.ErrAmbiguous)
	}
	return out, err
}

func (s *forgetful) Finish(ctx context.Context, r idempotency.Ref, how idempotency.Ending) error {
	err := s.Store.Finish(ctx, r, how)
	if r.Key.Operation == "replay.item" && s.ends.Add(1) == 1 {
		return errors.Join(err, idempotency.ErrAmbiguous)
	}
	return err
}

// An answer of the store that is lost once does not end the run.
func TestLostAnswersOfTheStore(t *testing.T) {
	q := newQueue(t)
	s := sourceOf(t, many(t, 2, 5)...)
	plan := newPlan(t, s, replay.Options{}, time.Now())
	report := run(t, plan, replay.Config{Source: s, Store: &forgetful{Store: new(idempotency.Memory)}, Sender: newProducer(t, q, q.URL())})
	assert.Equal(t, 10, report.Sent)
	assert.Equal(t, planned(plan, replay.ActionSend), sent(t, q))
}

// After a failure of the store or the source, no more messages are sent.
func TestFailsClosed(t *testing.T) {
	broken := errors.New("broken")
	for _, what := range []string{"store", "source"} {
		t.Run(what, func(t *testing.T) {
			q := newQueue(t)
			s := sourceOf(t, many(t, 5, 20)...)
			plan := newPlan(t, s, replay.Options{}, time.Now())
			j, f := &deadStore{Store: new(idempotency.Memory)}, &brittle{Source: s}
			p := newProducer(t, q, q.URL())
			var failed atomic.Bool
			var n atomic.Int64
			report, err := start(t.Context(), plan, replay.Config{Source: f, Store: j, Sender: senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
				if n.Add(1) == 30 {
					switch failed.Store(true); what {
					case "store":
						j.dead.Store(true)
					case "source":
						f.fetch.Store(&broken)
					}
				}
				if n.Load() > 35 {
					t.Error("sent after the failure")
				}
				return sendAndWait(ctx, p, m)
			})})
			if what == "store" {
				broken = errDead
			}
			require.ErrorIs(t, err, broken)
			assert.Positive(t, report.Remaining)
			j.dead.Store(false)
			j.Store.(*idempotency.Memory).Now = func() time.Time { return time.Now().Add(time.Minute) } // the lease of the lock is over
			report = run(t, plan, replay.Config{Source: s, Store: j, Sender: p})
			assert.Equal(t, 100, report.Sent+report.Suppressed)
			assert.Equal(t, planned(plan, replay.ActionSend), sent(t, q))
		})
	}
}

// brittle is a source with a switchable failure.
type brittle struct {
	replay.Source
	fetch atomic.Pointer[error]
}

func (b *brittle) Fetch(ctx context.Context, positions []string) ([]replay.Item, error) {
	if err := b.fetch.Load(); err != nil {
		return nil, *err
	}
	return b.Source.Fetch(ctx, positions)
}

// A run adds its items to the producer's provenance records and to the counter
// sqs_fifo.replay.items.
func TestRecords(t *testing.T) {
	q := newQueue(t)
	var mu sync.Mutex
	var records []sqsfifo.ProvenanceRecord
	p := newProducer(t, q, q.URL(), func(c *sqsfifo.Config[Event]) {
		c.Telemetry.Provenance = func(r sqsfifo.ProvenanceRecord) error {
			mu.Lock()
			defer mu.Unlock()
			records = append(records, r)
			return nil
		}
	})
	s := &brittle{Source: sourceOf(t, line(t, "a", "g"), line(t, "b", "g", deliveredAt(time.Now())), line(t, "c", "h"))}
	plan := newPlan(t, s, replay.Options{}, time.Now())
	reader := metric.NewManualReader()
	run(t, plan, replay.Config{
		Source: s, ID: "run-7", MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
		Sender: senderFunc(func(ctx context.Context, m *sqsfifo.Message) (sqsfifo.Receipt, error) {
			if m.DedupeKey == "c" {
				return sqsfifo.Receipt{}, refused(m)
			}
			return sendAndWait(ctx, p, m)
		}),
	})
	require.NoError(t, p.Close(t.Context()))
	require.Len(t, records, 1)
	assert.True(t, records[0].ReplayTriggered)

	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &all))
	m := all.ScopeMetrics[0].Metrics[0]
	assert.Equal(t, "sqs_fifo.replay.items", m.Name)
	counts := map[string]int64{}
	for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
		outcome, _ := point.Attributes.Value("sqs_fifo.outcome")
		if point.Value > 0 {
			counts[outcome.AsString()] = point.Value
		}
	}
	assert.Equal(t, map[string]int64{"sent": 1, "failed": 1}, counts)
}

// A closed producer refuses each message before SendMessageAsync returns. The run still
// ends: the first item of each group has failed, and the other items are skipped.
func TestClosedProducer(t *testing.T) {
	q := newQueue(t)
	p := newProducer(t, q, q.URL())
	require.NoError(t, p.Close(t.Context()))
	s := sourceOf(t, many(t, 50, 2)...)
	plan := newPlan(t, s, replay.Options{}, time.Now())
	report := run(t, plan, replay.Config{Source: s, Sender: p, InFlight: 7})
	assert.Equal(t, []int{50, 50}, []int{report.Failed, report.Skipped})
	assert.Empty(t, q.Messages())
}
