package replay_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// The run sends what the dry run says: the same items in the same order of each group.
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
	lines[200].BodyHash = strings.Repeat("0", 64) // which stops its group
	s := sourceOf(t, lines...)
	plan := newPlan(t, s, replay.Options{Redeliver: true}, noon)
	clock := func() time.Time { return noon }
	for _, j := range []replay.Journal{nil, new(memory)} {
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
		report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Now: clock, Journal: j})
		assert.Equal(t, want, sent(t, q))
		assert.Equal(t, 1, report.Drift)
		steps, err = replay.DryRun(t.Context(), plan, j, noon)
		require.NoError(t, err)
		require.Len(t, steps, 1, "only what stopped its group is left")
		assert.Equal(t, 200, steps[0].Item.Number)
	}
	var out strings.Builder
	steps, err := replay.DryRun(t.Context(), plan, nil, noon.Add(time.Hour))
	require.NoError(t, err)
	require.NoError(t, replay.WriteSteps(&out, steps[:2]))
	assert.Equal(t, []string{"ITEM", "GROUP", "EVENT", "PLANNED", "NOW", "ACTION", "REASON", "0", "g000"}, strings.Fields(out.String())[:9])
}

func dryAfter(t *testing.T, plan *replay.Plan, now time.Time) map[string][]string {
	steps, err := replay.DryRun(t.Context(), plan, new(memory), now)
	require.NoError(t, err)
	out := map[string][]string{}
	for _, s := range steps {
		if s.Action == replay.ActionSend {
			out[s.Item.Group] = append(out[s.Item.Group], s.Item.DedupeKey)
		}
	}
	return out
}

// A run waits until SQS has forgotten an item, and the label at the send shows it.
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
			{Planned: replay.New, AtSend: replay.New, Items: 2},
			{Planned: replay.Inside, AtSend: replay.Outside, Items: 1},
			{Planned: replay.Edge, AtSend: replay.Outside, Items: 1},
		}, report.Labels)
		var got []string
		for _, m := range q.Messages()[1:] {
			got = append(got, fmt.Sprint(m.Body[len(`{"dedupe_key":"`)], " ", m.AcceptedAt.Sub(begin)))
		}
		assert.Equal(t, []string{"99 1m0s", "100 1m30s", "97 5m30s", "98 5m30s"}, got)
	})
}

// An item in doubt that was inside the window in the plan and is not any more at the send
// is not sent.
func TestDoubtThatGrowsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sourceOf(t, line(t, "a", "g", doubtAt(time.Now())), line(t, "b", "g"))
		plan := newPlan(t, s, replay.Options{}, time.Now())
		time.Sleep(replay.ResendFor)
		q := newQueue(t)
		j := new(memory)
		report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Journal: j})
		assert.Equal(t, []int{0, 1, 1}, []int{report.Sent, report.Indeterminate, report.Skipped})
		assert.Empty(t, q.Messages())

		// Until somebody says what became of it.
		require.NoError(t, replay.Settle(t.Context(), plan, j, 0, replay.VerdictSendAgain, time.Now()))
		require.ErrorIs(t, replay.Settle(t.Context(), plan, j, 1, replay.VerdictSendAgain, time.Now()), replay.ErrNotStopped)
		report = run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Journal: j})
		assert.Equal(t, 2, report.Sent)
	})
}

// Each verdict lets the group go on in its own way.
func TestSettle(t *testing.T) {
	for v, want := range map[replay.Verdict]replay.Report{
		replay.VerdictDelivered: {Sent: 1, Suppressed: 1},
		replay.VerdictDiscard:   {Sent: 1, Skipped: 1},
		replay.VerdictSendAgain: {Sent: 2},
	} {
		t.Run(v.String(), func(t *testing.T) {
			q := newQueue(t)
			s := sourceOf(t, line(t, "a", "g", doubtAt(noon)), line(t, "b", "g"))
			plan := newPlan(t, s, replay.Options{}, noon.Add(time.Hour))
			j := new(memory)
			c := replay.Config{Source: s, Sender: newProducer(t, q, q.URL()), Journal: j}
			run(t, plan, c)
			require.NoError(t, replay.Settle(t.Context(), plan, j, 0, v, noon))
			if v != replay.VerdictSendAgain {
				require.ErrorIs(t, replay.Settle(t.Context(), plan, j, 0, v, noon), replay.ErrNotStopped)
			}
			report := run(t, plan, c)
			assert.Equal(t, []int{want.Sent, want.Suppressed, want.Skipped}, []int{report.Sent, report.Suppressed, report.Skipped})
			assert.True(t, report.Complete())
			_, results, err := replay.ReadReport(t.Context(), plan, j, noon)
			require.NoError(t, err)
			if v != replay.VerdictSendAgain {
				assert.Equal(t, "settled: "+v.String(), results[0].Reason)
			}
		})
	}
	s := sourceOf(t, line(t, "a", "g"))
	plan := newPlan(t, s, replay.Options{}, noon)
	require.ErrorContains(t, replay.Settle(t.Context(), plan, new(memory), 0, 9, noon), "unknown verdict")
	require.ErrorContains(t, replay.Settle(t.Context(), plan, new(memory), 7, replay.VerdictDiscard, noon), "no item 7")
}

// A plan that is run against the source of another one, or with the journal of another
// one, is refused.
func TestRefusals(t *testing.T) {
	s := sourceOf(t, line(t, "a", "g"))
	plan := newPlan(t, s, replay.Options{}, noon)
	q := newQueue(t)
	sender := newProducer(t, q, q.URL())
	good := replay.Config{Source: s, Sender: sender, Journal: new(memory)}
	for field, change := range map[string]func(*replay.Config){
		"Source":            func(c *replay.Config) { c.Source = replay.NewJSONLines("other", strings.NewReader(""), 0) },
		"Sender":            func(c *replay.Config) { c.Sender = nil },
		"Journal":           func(c *replay.Config) { c.Journal = nil },
		"MessagesPerSecond": func(c *replay.Config) { c.MessagesPerSecond = -1 },
		"Calls":             func(c *replay.Config) { c.CallsPerSecond = 1 },
		"InFlight":          func(c *replay.Config) { c.InFlight = -1 },
		"BytesInFlight":     func(c *replay.Config) { c.BytesInFlight = -1 },
		"ID":                func(c *replay.Config) { c.ID = strings.Repeat("x", 129) },
	} {
		c := good
		change(&c)
		_, err := replay.NewRunner(plan, c)
		var wrong *replay.ConfigError
		require.ErrorAs(t, err, &wrong, field)
		assert.Equal(t, field, wrong.Field)
	}
	_, err := replay.NewRunner(nil, good)
	require.Error(t, err)
	other := newPlan(t, s, replay.Options{}, noon.Add(1))
	run(t, other, good)
	_, err = newRunner(t, plan, good).Run(t.Context())
	require.ErrorContains(t, err, "one journal for each plan")
	_, err = replay.NewPlan(t.Context(), nil, replay.Options{}, noon)
	require.ErrorContains(t, err, "nil source")
	_, err = replay.NewPlan(t.Context(), replay.NewJSONLines("", strings.NewReader(""), 0), replay.Options{}, noon)
	require.ErrorContains(t, err, "no name")
	_, err = replay.NewPlan(t.Context(), s, replay.Options{Window: 9}, noon)
	require.ErrorContains(t, err, "Options.Window")
}
