package replay_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// The labels at the ends of their ranges, and what SQS then does.
func TestLabels(t *testing.T) {
	for _, tc := range []struct {
		after time.Duration
		want  replay.Label
	}{
		{-time.Hour, replay.Edge}, // the clock was set back
		{-replay.Margin - 1, replay.Edge},
		{-replay.Margin, replay.Inside},
		{0, replay.Inside},
		{replay.ResendFor - 1, replay.Inside},
		{replay.ResendFor, replay.Edge},
		{replay.Interval, replay.Edge},
		{replay.Interval + replay.Margin - 1, replay.Edge},
		{replay.Interval + replay.Margin, replay.Outside},
		{24 * time.Hour, replay.Outside},
	} {
		assert.Equal(t, tc.want, replay.Sent{From: noon, To: noon}.Label(noon.Add(tc.after)), "%v", tc.after)
		if tc.after < 0 {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t)
			p := newProducer(t, q, q.URL())
			_, err := p.Send(t.Context(), Event{ID: "a", Group: "g"})
			require.NoError(t, err)
			s := sourceOf(t, line(t, "a", "g", deliveredAt(time.Now())))
			time.Sleep(tc.after)
			plan := newPlan(t, s, replay.Options{Redeliver: true, Window: replay.WindowSend}, time.Now())
			assert.Equal(t, tc.want, plan.Items[0].Label, "%v", tc.after)
			report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL())})
			switch tc.want {
			case replay.Inside:
				assert.Len(t, q.Messages(), 1, "%v", tc.after)
			case replay.Outside:
				assert.Len(t, q.Messages(), 2, "%v", tc.after)
				assert.Equal(t, 1, report.Sent)
			}
		})
	}
	assert.Equal(t, replay.New, replay.Sent{}.Label(noon))
	// Between its bounds nothing is certain.
	wide := replay.Sent{From: noon.Add(-time.Hour), To: noon}
	assert.Equal(t, replay.Edge, wide.Label(noon))
	assert.Equal(t, replay.Outside, wide.Label(noon.Add(replay.Interval+replay.Margin)))
	assert.Equal(t, replay.Edge, replay.Sent{To: noon}.Label(noon.Add(time.Minute)))
}

// What is planned for each status, label and policy.
func TestPlan(t *testing.T) {
	lines := []replay.Line{
		line(t, "pending", "a"),
		line(t, "unknown", "a", func(l *replay.Line) { l.Status = replay.Unknown }),
		line(t, "discarded", "a", func(l *replay.Line) { l.Status = replay.Discarded }),
		line(t, "delivered-inside", "b", deliveredAt(noon.Add(-time.Minute))),
		line(t, "delivered-edge", "b", deliveredAt(noon.Add(-5*time.Minute))),
		line(t, "delivered-outside", "b", deliveredAt(noon.Add(-time.Hour))),
		line(t, "doubt-inside", "c", doubtAt(noon.Add(-time.Minute))),
		line(t, "doubt-edge", "d", doubtAt(noon.Add(-5*time.Minute))),
		line(t, "doubt-outside", "e", doubtAt(noon.Add(-time.Hour))),
	}
	const held = " hold it may have been stored, and SQS may have forgotten it"
	for _, tc := range []struct {
		name    string
		options replay.Options
		want    []string
	}{
		{"the zero value", replay.Options{}, []string{
			"pending new send", "unknown edge skip window", "discarded edge skip discarded",
			"delivered-inside inside skip delivered", "delivered-edge edge skip delivered", "delivered-outside outside skip delivered",
			"doubt-inside inside send", "doubt-edge edge" + held, "doubt-outside outside" + held,
		}},
		{"redeliver", replay.Options{Redeliver: true}, []string{
			"pending new send", "unknown edge skip window", "discarded edge skip discarded",
			"delivered-inside inside skip window", "delivered-edge edge skip window", "delivered-outside outside send",
			"doubt-inside inside send", "doubt-edge edge" + held, "doubt-outside outside" + held,
		}},
		{"send", replay.Options{Redeliver: true, Window: replay.WindowSend}, []string{
			"pending new send", "unknown edge send", "discarded edge skip discarded",
			"delivered-inside inside send", "delivered-edge edge send", "delivered-outside outside send",
			"doubt-inside inside send", "doubt-edge edge" + held, "doubt-outside outside" + held,
		}},
		{"wait, in doubt too", replay.Options{Redeliver: true, Window: replay.WindowWait, ResendInDoubt: true}, []string{
			"pending new send", "unknown edge wait", "discarded edge skip discarded",
			"delivered-inside inside wait", "delivered-edge edge wait", "delivered-outside outside send",
			"doubt-inside inside send", "doubt-edge edge wait", "doubt-outside outside send",
		}},
		{"in doubt", replay.Options{ResendInDoubt: true}, []string{
			"pending new send", "unknown edge skip window", "discarded edge skip discarded",
			"delivered-inside inside skip delivered", "delivered-edge edge skip delivered", "delivered-outside outside skip delivered",
			"doubt-inside inside send", "doubt-edge edge skip window", "doubt-outside outside send",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, actions(newPlan(t, sourceOf(t, lines...), tc.options, noon)))
		})
	}
}

func TestFilters(t *testing.T) {
	lines := []replay.Line{
		line(t, "a", "g", deliveredAt(noon)),
		line(t, "b", "g", deliveredAt(noon.Add(time.Hour))),
		line(t, "c", "h", doubtAt(noon.Add(2*time.Hour))),
		line(t, "d", "h"), // whose event is older
	}
	for name, tc := range map[string]struct {
		filter replay.Filter
		want   string
	}{
		"none":          {replay.Filter{}, "abcd"},
		"from":          {replay.Filter{From: noon.Add(time.Hour)}, "bc"},
		"before":        {replay.Filter{Before: noon.Add(time.Hour)}, "ad"},
		"keys":          {replay.Filter{DedupeKeys: []string{"d", "a"}}, "ad"},
		"groups":        {replay.Filter{Groups: []string{"h"}}, "cd"},
		"statuses":      {replay.Filter{Statuses: []replay.Status{replay.Pending, replay.InDoubt}}, "cd"},
		"event source":  {replay.Filter{EventSources: []string{"kfm.test.replay"}}, "abcd"},
		"other sources": {replay.Filter{EventSources: []string{"kfm.test.other"}}, ""},
		"several":       {replay.Filter{Groups: []string{"g"}, From: noon.Add(1)}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlan(t, sourceOf(t, lines...), replay.Options{Filter: tc.filter}, noon)
			got := ""
			for i, it := range p.Items {
				got += it.DedupeKey
				assert.Equal(t, i, it.Number)
			}
			assert.Equal(t, tc.want, got)
			assert.Equal(t, 4-len(tc.want), p.Excluded)
		})
	}
}

// All that a source says of one message is joined, before a filter leaves out a part of
// it, and one event with two messages is a conflict.
func TestFold(t *testing.T) {
	other := func(l *replay.Line) {
		m, err := builder.Build(Event{ID: l.DedupeKey, Group: l.Group, Note: "another"})
		require.NoError(t, err)
		l.Message, l.BodyHash = *m, ""
	}
	elsewhere := func(l *replay.Line) { l.Group = "elsewhere" }
	for name, tc := range map[string]struct {
		lines []replay.Line
		want  []string
	}{
		"not stored, then delivered": {
			[]replay.Line{line(t, "a", "g"), line(t, "a", "g", deliveredAt(noon.Add(-time.Hour)))},
			[]string{"a outside skip delivered", "a outside skip delivered"},
		},
		"in doubt, then not stored": {
			[]replay.Line{line(t, "a", "g", doubtAt(noon.Add(-time.Minute))), line(t, "a", "g")},
			[]string{"a inside send", "a inside skip repeated"},
		},
		"twice": {
			[]replay.Line{line(t, "a", "g"), line(t, "b", "g"), line(t, "a", "g")},
			[]string{"a new send", "b new send", "a new skip repeated"},
		},
		"another body": {
			[]replay.Line{line(t, "a", "g"), line(t, "a", "g", other), line(t, "b", "h")},
			[]string{"a new send", "a new conflict another message of the source has its dedupe key", "b new send"},
		},
		"another body that was delivered": {
			[]replay.Line{line(t, "a", "g"), line(t, "a", "g", deliveredAt(noon.Add(-time.Hour)), other)},
			[]string{"a new conflict another message of the source has its dedupe key", "a outside skip delivered"},
		},
		"another group": {
			[]replay.Line{line(t, "a", "g"), line(t, "a", "g", elsewhere)},
			[]string{"a new send", "a new conflict another message of the source has its dedupe key"},
		},
		"bounds": {
			[]replay.Line{line(t, "a", "g", doubtAt(noon.Add(-time.Minute))), line(t, "a", "g", doubtAt(noon.Add(-10*time.Minute)))},
			[]string{"a edge hold it may have been stored, and SQS may have forgotten it", "a edge skip repeated"},
		},
		"no bounds": {
			[]replay.Line{line(t, "a", "g", doubtAt(noon.Add(-time.Hour))), line(t, "a", "g", func(l *replay.Line) { l.Status = replay.InDoubt })},
			[]string{"a edge hold it may have been stored, and SQS may have forgotten it", "a edge skip repeated"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sourceOf(t, tc.lines...)
			assert.Equal(t, tc.want, actions(newPlan(t, s, replay.Options{}, noon)))
			pending := newPlan(t, s, replay.Options{Filter: replay.Filter{Before: noon.Add(-30 * time.Minute), Statuses: []replay.Status{replay.Pending}}}, noon)
			if name == "not stored, then delivered" {
				assert.Empty(t, pending.Items)
			}
		})
	}
}

// A plan is a function of the source, the options and the time, and its text is the
// plan.
func TestPlanText(t *testing.T) {
	lines := many(t, 3, 5)
	lines[4] = line(t, "x", "g001", deliveredAt(noon.Add(-time.Hour)))
	s := sourceOf(t, lines...)
	o := replay.Options{Redeliver: true, Filter: replay.Filter{Groups: []string{"g001", "g002"}, From: noon.Add(-1e6 * time.Hour)}}
	write := func(p *replay.Plan) []byte {
		var text bytes.Buffer
		require.NoError(t, p.Write(&text))
		return text.Bytes()
	}
	plan := newPlan(t, s, o, noon)
	text := write(plan)
	assert.Equal(t, text, write(newPlan(t, s, o, noon)))
	assert.NotEqual(t, plan.ID, newPlan(t, s, o, noon.Add(1)).ID)
	assert.NotContains(t, string(text), "payload")
	again, err := replay.ReadPlan(bytes.NewReader(text))
	require.NoError(t, err)
	assert.Equal(t, plan, again)

	full := bytes.SplitAfter(text, []byte("\n"))
	var wrong *replay.PlanError
	for name, changed := range map[string][]byte{
		"empty":     nil,
		"cut off":   text[:len(text)/2],
		"no end":    bytes.Join(full[:len(full)-2], nil),
		"one less":  bytes.Join(append(slices.Clone(full[:3]), full[4:]...), nil),
		"swapped":   bytes.Join(append([][]byte{full[0], full[2], full[1]}, full[3:]...), nil),
		"edited":    bytes.Replace(text, []byte(`"action":"send"`), []byte(`"action":"skip"`), 1),
		"more":      append(slices.Clone(text), '{'),
		"version":   bytes.Replace(text, []byte(`"replay_plan":1`), []byte(`"replay_plan":2`), 1),
		"respelled": bytes.Replace(text, []byte(`"n":1`), []byte(`"n":1 `), 1),
		"long":      append([]byte(strings.Repeat(" ", 1<<17)), text...),
	} {
		_, err := replay.ReadPlan(bytes.NewReader(changed))
		require.ErrorAs(t, err, &wrong, name)
	}
}

// A plan can be made of lines that are not messages, and of texts that JSON does not
// keep.
func TestPlanOfRubbish(t *testing.T) {
	text := "\n{\"group\":\"g\",\"dedupe_key\":\"k\",\"body\":\"no envelope\"}\nnot JSON\n[]\n{\"body\":\"\"}\n" + `{"group":"g","dedupe_key":"` + strings.Repeat("k", 100_000) + `","body":"x"}` + "\n" + `{"group":"torn`
	s := replay.NewJSONLines("x", strings.NewReader(text), int64(len(text)))
	plan := newPlan(t, s, replay.Options{}, noon)
	require.Len(t, plan.Items, 6)
	var out bytes.Buffer
	require.NoError(t, plan.Write(&out))
	_, err := replay.ReadPlan(&out)
	require.NoError(t, err)
	for i, it := range plan.Items {
		want := replay.ActionDrift
		if i == 0 || i == 4 { // the producer refuses them
			want = replay.ActionSkip
		}
		assert.Equal(t, want, it.Action, "%d", i)
	}
	q := newQueue(t)
	plan = newPlan(t, s, replay.Options{Window: replay.WindowSend}, noon)
	report := run(t, plan, replay.Config{Source: s, Sender: newProducer(t, q, q.URL())})
	assert.Zero(t, report.Sent)
	assert.Equal(t, 1, report.Failed)
}

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
