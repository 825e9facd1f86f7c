package replay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

func ExamplePlan_Summary() {
	file := strings.NewReader(storedYesterday())
	source := replay.NewJSONLines("yesterday.jsonl", file, file.Size())
	now := time.Date(2026, 11, 21, 9, 7, 0, 0, time.UTC) // the messages were sent from 9:00 to 9:02 on this day
	plan, err := replay.NewPlan(context.Background(), source, replay.Options{Redeliver: true}, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range plan.Summary() {
		fmt.Printf("%s %s %d %q\n", c.Action, c.Label, c.Items, c.Reason)
	}
	// Output:
	// send outside 2 ""
	// skip edge 1 "window"
}

// The sum of a summary equals the plan's number of items.
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
		{Action: replay.ActionSend, Label: replay.LabelNew, Items: 13, Groups: 4},
		{Action: replay.ActionSkip, Label: replay.LabelInside, Reason: "delivered", Items: 7, Groups: 4},
	}, plan.Summary())
}
