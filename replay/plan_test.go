package replay_test

import (
	"bytes"
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

// The label of a message changes exactly at the documented times after the original send.
// SQS suppresses a copy with LabelInside, and delivers a copy with LabelOutside.
func TestLabels(t *testing.T) {
	for _, tc := range []struct {
		after time.Duration
		want  replay.Label
	}{
		{-time.Hour, replay.LabelEdge}, // an hour before the send, because the clock was set back
		{-replay.Margin - 1, replay.LabelEdge},
		{-replay.Margin, replay.LabelInside},
		{0, replay.LabelInside},
		{replay.ResendFor - 1, replay.LabelInside},
		{replay.ResendFor, replay.LabelEdge},
		{replay.Interval, replay.LabelEdge},
		{replay.Interval + replay.Margin - 1, replay.LabelEdge},
		{replay.Interval + replay.Margin, replay.LabelOutside},
		{24 * time.Hour, replay.LabelOutside},
	} {
		assert.Equal(t, tc.want, replay.SentBetween{From: noon, To: noon}.Label(noon.Add(tc.after)), "%v", tc.after)
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
			case replay.LabelInside:
				assert.Len(t, q.Messages(), 1, "%v", tc.after)
			case replay.LabelOutside:
				assert.Len(t, q.Messages(), 2, "%v", tc.after)
				assert.Equal(t, 1, report.Sent)
			}
		})
	}
	assert.Equal(t, replay.LabelNew, replay.SentBetween{}.Label(noon))
	// SQS accepted the message at an unknown time between 11:00 and 12:00.
	wide := replay.SentBetween{From: noon.Add(-time.Hour), To: noon}
	assert.Equal(t, replay.LabelEdge, wide.Label(noon))
	assert.Equal(t, replay.LabelOutside, wide.Label(noon.Add(replay.Interval+replay.Margin)))
	assert.Equal(t, replay.LabelEdge, replay.SentBetween{To: noon}.Label(noon.Add(time.Minute)))
}

func TestPlan(t *testing.T) {
	lines := []replay.MessageLine{
		line(t, "pending", "a"),
		line(t, "unknown", "a", func(l *replay.MessageLine) { l.Status = replay.StatusUnknown }),
		line(t, "discarded", "a", func(l *replay.MessageLine) { l.Status = replay.StatusDiscarded }),
		line(t, "delivered-inside", "b", deliveredAt(noon.Add(-time.Minute))),
		line(t, "delivered-edge", "b", deliveredAt(noon.Add(-5*time.Minute))),
		line(t, "delivered-outside", "b", deliveredAt(noon.Add(-time.Hour))),
		line(t, "doubt-inside", "c", doubtAt(noon.Add(-time.Minute))),
		line(t, "doubt-edge", "d", doubtAt(noon.Add(-5*time.Minute))),
		line(t, "doubt-outside", "e", doubtAt(noon.Add(-time.Hour))),
	}
	const unresolved = " unresolved it may have been stored, and SQS may have forgotten it"
	for _, tc := range []struct {
		name    string
		options replay.Options
		want    []string
	}{
		{"the zero value", replay.Options{}, []string{
			"pending new send", "unknown edge skip window", "discarded edge skip discarded",
			"delivered-inside inside skip delivered", "delivered-edge edge skip delivered", "delivered-outside outside skip delivered",
			"doubt-inside inside send", "doubt-edge edge" + unresolved, "doubt-outside outside" + unresolved,
		}},
		{"redeliver", replay.Options{Redeliver: true}, []string{
			"pending new send", "unknown edge skip window", "discarded edge skip discarded",
			"delivered-inside inside skip window", "delivered-edge edge skip window", "delivered-outside outside send",
			"doubt-inside inside send", "doubt-edge edge" + unresolved, "doubt-outside outside" + unresolved,
		}},
		{"send", replay.Options{Redeliver: true, Window: replay.WindowSend}, []string{
			"pending new send", "unknown edge send", "discarded edge skip discarded",
			"delivered-inside inside send", "delivered-edge edge send", "delivered-outside outside send",
			"doubt-inside inside send", "doubt-edge edge" + unresolved, "doubt-outside outside" + unresolved,
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
	lines := []replay.MessageLine{
		line(t, "a", "g", deliveredAt(noon)),
		line(t, "b", "g", deliveredAt(noon.Add(time.Hour))),
		line(t, "c", "h", doubtAt(noon.Add(2*time.Hour))),
		line(t, "d", "h"), // no send time, so the filter uses the event_time, which is before noon
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
		"statuses":      {replay.Filter{Statuses: []replay.Status{replay.StatusPending, replay.StatusInDoubt}}, "cd"},
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

// NewPlan joins the statuses of a message's lines before it applies the filter. If two
// different messages have the same dedupe key, one of them becomes a conflict.
func TestFold(t *testing.T) {
	other := func(l *replay.MessageLine) {
		m, err := builder.Build(Event{ID: l.DedupeKey, Group: l.Group, Note: "another"})
		require.NoError(t, err)
		l.Message, l.BodyHash = *m, ""
	}
	elsewhere := func(l *replay.MessageLine) { l.Group = "elsewhere" }
	for name, tc := range map[string]struct {
		lines []replay.MessageLine
		want  []string
	}{
		"not stored, then delivered": {
			[]replay.MessageLine{line(t, "a", "g"), line(t, "a", "g", deliveredAt(noon.Add(-time.Hour)))},
			[]string{"a outside skip delivered", "a outside skip delivered"},
		},
		"in doubt, then not stored": {
			[]replay.MessageLine{line(t, "a", "g", doubtAt(noon.Add(-time.Minute))), line(t, "a", "g")},
			[]string{"a inside send", "a inside skip repeated"},
		},
		"twice": {
			[]replay.MessageLine{line(t, "a", "g"), line(t, "b", "g"), line(t, "a", "g")},
			[]string{"a new send", "b new send", "a new skip repeated"},
		},
		"another body": {
			[]replay.MessageLine{line(t, "a", "g"), line(t, "a", "g", other), line(t, "b", "h")},
			[]string{"a new send", "a new conflict another message of the source has its dedupe key", "b new send"},
		},
		"another body that was delivered": {
			[]replay.MessageLine{line(t, "a", "g"), line(t, "a", "g", deliveredAt(noon.Add(-time.Hour)), other)},
			[]string{"a new conflict another message of the source has its dedupe key", "a outside skip delivered"},
		},
		"another group": {
			[]replay.MessageLine{line(t, "a", "g"), line(t, "a", "g", elsewhere)},
			[]string{"a new send", "a new conflict another message of the source has its dedupe key"},
		},
		"bounds": {
			[]replay.MessageLine{line(t, "a", "g", doubtAt(noon.Add(-time.Minute))), line(t, "a", "g", doubtAt(noon.Add(-10*time.Minute)))},
			[]string{"a edge unresolved it may have been stored, and SQS may have forgotten it", "a edge skip repeated"},
		},
		"no bounds": {
			[]replay.MessageLine{line(t, "a", "g", doubtAt(noon.Add(-time.Hour))), line(t, "a", "g", func(l *replay.MessageLine) { l.Status = replay.StatusInDoubt })},
			[]string{"a edge unresolved it may have been stored, and SQS may have forgotten it", "a edge skip repeated"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sourceOf(t, tc.lines...)
			assert.Equal(t, tc.want, actions(newPlan(t, s, replay.Options{}, noon)))
			pending := newPlan(t, s, replay.Options{Filter: replay.Filter{Before: noon.Add(-30 * time.Minute), Statuses: []replay.Status{replay.StatusPending}}}, noon)
			if name == "not stored, then delivered" {
				assert.Empty(t, pending.Items)
			}
		})
	}
}

// Plans made of the same source at the same time with the same options are equal. ReadPlan
// reads the output of Plan.Write, and refuses a changed text.
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

// NewPlan makes a plan even if lines of the source are not messages or have a very long key.
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
		if i == 0 || i == 4 { // the producer refuses these lines
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
