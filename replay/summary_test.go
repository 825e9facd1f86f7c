package replay_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

func ExamplePlan_WriteSummary() {
	file := strings.NewReader(storedYesterday())
	source := replay.NewJSONLines("yesterday.jsonl", file, file.Size())
	now := time.Date(2026, 11, 21, 9, 7, 0, 0, time.UTC) // of the same day
	plan, err := replay.NewPlan(context.Background(), source, replay.Options{Redeliver: true}, now)
	if err == nil {
		plan.ID = "0123456789abcdef" // which is that of the plan's bytes
		err = plan.WriteSummary(os.Stdout)
	}
	fmt.Println(err)
	// Output:
	// plan 0123456789abcdef of yesterday.jsonl, made 2026-11-21 09:07:00Z: 3 items, 0 excluded
	// ACTION  WINDOW   ITEMS  GROUPS  REASON
	// send    outside  2      2       -
	// skip    edge     1      1       window
	// <nil>
}

// The sum of a summary is the plan's.
func TestSummary(t *testing.T) {
	lines := many(t, 4, 5)
	for i := range lines {
		if i%3 == 0 {
			deliveredAt(noon)(&lines[i])
		}
	}
	plan := newPlan(t, sourceOf(t, lines...), replay.Options{}, noon)
	sum := 0
	for _, c := range plan.Summary() {
		sum += c.Items
		assert.Equal(t, 4, c.Groups)
	}
	assert.Equal(t, 20, sum)
	assert.Equal(t, []replay.PlanCount{
		{Action: replay.ActionSend, Items: 13, Groups: 4},
		{Action: replay.ActionSkip, Label: replay.Inside, Reason: replay.ReasonDelivered, Items: 7, Groups: 4},
	}, plan.Summary())
}

func TestReportText(t *testing.T) {
	var out strings.Builder
	require.NoError(t, replay.Report{
		Plan: "p", Source: "s", Run: "r", Runs: 2, Planned: 6, Sent: 2, Skipped: 3, Failed: 1, StoppedGroups: 1,
		SkippedFor: map[string]int{replay.ReasonGroupStopped: 1, replay.ReasonDelivered: 2},
		Labels:     []replay.LabelCount{{Planned: replay.Edge, AtSend: replay.Outside, Items: 2}},
	}.Write(&out))
	assert.Equal(t, `plan p of s, run 2 (r)
planned                     6
sent                        2
suppressed                  0
skipped                     3
conflict                    0
drift                       0
indeterminate               0
failed                      1
remaining                   0
skipped: delivered          2
skipped: group stopped      1
groups that stopped         1
planned edge, sent outside  2
`, out.String())
}
