package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// A run sends the items of the dry run, in the same order within each group.
func TestDryRun(t *testing.T) {
	q := newQueue(t)
	lines := many(t, 20, 20)
	for i := range lines {
		switch i % 17 {
		case 3:
			deliveredAt(noon.Add(-time.Hour))(&lines[i])
		case 5:
			deliveredAt(noon.Add(-time.Minute))(&lines[i])
		}
	}
	lines[200].BodyHash = strings.Repeat("0", 64) // a wrong hash: the item has drifted and stops its group
	s := sourceOf(t, lines...)
	plan := newPlan(t, s, replay.Options{Redeliver: true}, noon)
	clock := func() time.Time { return noon }
	for _, j := range []idempotency.Store{nil, new(idempotency.Memory)} {
		before := len(q.Messages())
		steps, err := replay.DryRun(t.Context(), plan, j, noon)
		require.NoError(t, err)
		assert.Len(t, q.Messages(), before, "a dry run makes no request")
		want, last := map[string][]string{}, 0
		for _, step := range steps {
			if step.Action == replay.ActionSend {
				want[step.Item.Group] = append(want[step.Item.Group], step.Item.DedupeKey)
			} else {
				assert.Equal(t, replay.ActionDrift, step.Action)
				last++
			}
		}
		assert.Equal(t, 1, last)
		if j == nil {
			assert.Equal(t, want, dryAfter(t, plan, noon))
			continue
		}
		report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Now: clock, Store: j})
		assert.Equal(t, want, sent(t, q))
		assert.Equal(t, 1, report.Drift)
		steps, err = replay.DryRun(t.Context(), plan, j, noon)
		require.NoError(t, err)
		require.Len(t, steps, 1, "only what stopped its group is left")
		assert.Equal(t, 200, steps[0].Item.Number)
	}
}

func dryAfter(t *testing.T, plan *replay.Plan, now time.Time) map[string][]string {
	steps, err := replay.DryRun(t.Context(), plan, new(idempotency.Memory), now)
	require.NoError(t, err)
	out := map[string][]string{}
	for _, s := range steps {
		if s.Action == replay.ActionSend {
			out[s.Item.Group] = append(out[s.Item.Group], s.Item.DedupeKey)
		}
	}
	return out
}

// With WindowWait, a run sends an item only after SQS has forgotten the original send. The
// report has two labels: the label in the plan (LabelInside or LabelEdge) and the label at
// the send (LabelOutside).
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t)
		p := newProducer(t, q, q.URL())
		_, err := p.Send(t.Context(), Event{ID: "a", Group: "g"})
		require.NoError(t, err)
		begin := time.Now()
		s := sourceOf(t, line(t, "a", "g", deliveredAt(begin)), line(t, "b", "g"), line(t, "c", "h"), line(t, "d", "i", deliveredAt(begin.Add(-4*time.Minute))))
		time.Sleep(time.Minute)
		plan := newPlan(t, s, replay.Options{Redeliver: true, Window: replay.WindowWait}, time.Now())
		report := run(t, plan, replay.Config{Source: s, Sender: p})
		assert.Equal(t, 4, report.Sent)
		assert.Equal(t, []replay.LabelCount{
			{Planned: replay.LabelNew, AtSend: replay.LabelNew, Items: 2},
			{Planned: replay.LabelInside, AtSend: replay.LabelOutside, Items: 1},
			{Planned: replay.LabelEdge, AtSend: replay.LabelOutside, Items: 1},
		}, report.Labels)
		var got []string
		for _, m := range q.Messages()[1:] {
			got = append(got, fmt.Sprint(m.Body[len(`{"dedupe_key":"`)], " ", m.AcceptedAt.Sub(begin)))
		}
		assert.Equal(t, []string{"99 1m0s", "100 1m30s", "97 5m30s", "98 5m30s"}, got)
	})
}

// An item may have been stored. When the plan is made, SQS would still suppress a second
// copy. The run begins so late that SQS might deliver a second copy, so the run does not
// send the item.
func TestDoubtThatGrowsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sourceOf(t, line(t, "a", "g", doubtAt(time.Now())), line(t, "b", "g"))
		plan := newPlan(t, s, replay.Options{}, time.Now())
		time.Sleep(replay.ResendFor)
		q := newQueue(t)
		j := new(idempotency.Memory)
		report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Store: j})
		assert.Equal(t, []int{0, 1, 1}, []int{report.Sent, report.Unresolved, report.Skipped})
		assert.Empty(t, q.Messages())

		// An operator resolves the item, and then the next run sends it.
		resolve(t, j, plan, idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll}))
		report = run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Store: j})
		assert.Equal(t, 2, report.Sent)
	})
}

// resolve records the outcome of the one unresolved item of a plan, as "sqsfifo keys resolve"
// does.
func resolve(t *testing.T, store idempotency.Store, plan *replay.Plan, e idempotency.Ending) {
	t.Helper()
	n := 0
	for r, err := range store.Scan(t.Context(), idempotency.Filter{Scope: replay.StoreScope(plan), Statuses: []idempotency.Status{idempotency.StatusRunning}}) {
		require.NoError(t, err)
		n++
		require.NoError(t, idempotency.Resolve(t.Context(), store, r, e))
	}
	require.Equal(t, 1, n)
}

// An unresolved item has stopped its group. After an operator's decision the group continues.
// The item then counts as suppressed (it took effect) or skipped (it is given up), or the next
// run sends it (it had no effect).
func TestResolve(t *testing.T) {
	for how, c := range map[string]struct {
		ending idempotency.Ending
		giveUp []int
		want   replay.PlanReport
		reason string
	}{
		"took effect": {idempotency.Completed(idempotency.Result{}), nil, replay.PlanReport{Sent: 1, Suppressed: 1}, "resolved: took_effect"},
		"give up":     {idempotency.Ending{}, []int{0}, replay.PlanReport{Sent: 1, Skipped: 1}, "given up"},
		"no effect":   {idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll, Reason: "asked the consumer"}), nil, replay.PlanReport{Sent: 2}, ""},
	} {
		t.Run(how, func(t *testing.T) {
			q := newQueue(t)
			s := sourceOf(t, line(t, "a", "g", doubtAt(noon)), line(t, "b", "g"))
			plan := newPlan(t, s, replay.Options{}, noon.Add(time.Hour))
			j := new(idempotency.Memory)
			r := replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Store: j}
			report := run(t, plan, r)
			assert.Equal(t, []int{1, 1}, []int{report.Unresolved, report.Skipped})
			if r.GiveUp = c.giveUp; c.giveUp == nil {
				resolve(t, j, plan, c.ending)
			}
			report, _, err := replay.ReadReport(t.Context(), plan, j, noon)
			require.NoError(t, err)
			assert.Equal(t, how == "give up", report.Unresolved == 1, "nothing stops the group after a decision in the store")
			for range 2 { // the second run, too, knows what was given up
				report = run(t, plan, r)
				assert.Equal(t, []int{c.want.Sent, c.want.Suppressed, c.want.Skipped}, []int{report.Sent, report.Suppressed, report.Skipped})
				assert.True(t, report.Complete())
				r.GiveUp = nil
			}
			_, results, err := replay.ReadReport(t.Context(), plan, j, noon)
			require.NoError(t, err)
			assert.Equal(t, c.reason, results[0].Reason)
		})
	}
}

// Run refuses an invalid Config, and the source or journal of another plan. NewPlan refuses
// invalid arguments.
func TestRefusals(t *testing.T) {
	s := sourceOf(t, line(t, "a", "g"))
	plan := newPlan(t, s, replay.Options{}, noon)
	q := newQueue(t)
	sender := newProducer(t, q, q.URL())
	good := replay.Config{Source: s, Sender: sender, Store: new(idempotency.Memory)}
	for field, change := range map[string]func(*replay.Config){
		"Source":            func(c *replay.Config) { c.Source = replay.NewJSONLines("other", strings.NewReader(""), 0) },
		"Sender":            func(c *replay.Config) { c.Sender = nil },
		"Store":             func(c *replay.Config) { c.Store = nil },
		"MessagesPerSecond": func(c *replay.Config) { c.MessagesPerSecond = -1 },
		"InFlight":          func(c *replay.Config) { c.InFlight = -1 },
		"GiveUp":            func(c *replay.Config) { c.GiveUp = []int{1} },
		"ID":                func(c *replay.Config) { c.ID = strings.Repeat("x", 129) },
	} {
		c := good
		change(&c)
		_, err := replay.Run(t.Context(), plan, c)
		var wrong *idempotency.InvalidError
		require.ErrorAs(t, err, &wrong, field)
		assert.Equal(t, "Config."+field, wrong.Field)
	}
	_, err := replay.Run(t.Context(), nil, good)
	require.Error(t, err)
	_, err = replay.NewPlan(t.Context(), nil, replay.Options{}, noon)
	require.ErrorContains(t, err, "nil source")
	_, err = replay.NewPlan(t.Context(), replay.NewJSONLines("", strings.NewReader(""), 0), replay.Options{}, noon)
	require.ErrorContains(t, err, "no name")
	_, err = replay.NewPlan(t.Context(), s, replay.Options{Window: "later"}, noon)
	require.ErrorContains(t, err, "Options.Window")
}
