package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

type replayReportCmd struct {
	Journal string `required:"" placeholder:"FILE" help:"Journal of the runs."`
	Items   bool   `help:"Print one JSON object for each message of the plan instead of the report."`
	JSON    bool   `name:"json" help:"Print the report as one JSON object."`
	Quiet   bool   `short:"q" help:"No lines about messages that stopped their groups."`

	Plan string `arg:"" help:"File that \"replay plan\" wrote."`
}

func (*replayReportCmd) Help() string {
	return `Prints what became of a plan over all its runs, also while one is under way: nothing is locked and nothing is sent. Messages that stopped their groups are named on standard error, with their numbers in the plan.

The exit code is that of "replay run" for the same report: 0 if each message was sent, suppressed or skipped, 1 if one is a conflict, has drifted, failed, is unresolved or remains, 2 if plan or journal cannot be read.

Examples:

	sqsfifo replay report day.plan --journal day.db
	sqsfifo replay report day.plan --journal day.db --items`
}

// resultLine is one line of --items output. Member names are stable.
type resultLine struct {
	Item           int            `json:"n"`
	Group          string         `json:"group"`
	DedupeKey      string         `json:"dedupe_key"`
	EventID        string         `json:"event_id"`
	Outcome        replay.Outcome `json:"outcome"`
	Planned        replay.Label   `json:"planned"`
	AtSend         replay.Label   `json:"at_send,omitempty"` // "" if the message was never tried
	Reason         string         `json:"reason,omitempty"`
	MessageID      string         `json:"message_id,omitempty"`
	SequenceNumber string         `json:"sequence_number,omitempty"`
}

func (c *replayReportCmd) run(ctx context.Context, std stdio) (err error) {
	plan, err := readPlan(c.Plan)
	if err != nil {
		return err
	}
	store, db, err := openStore(ctx, c.Journal)
	if err != nil {
		return fmt.Errorf("--journal: %w", err)
	}
	defer closing(closeAll(store, db), &err)
	report, results, err := replay.ReadReport(ctx, plan, store, time.Now())
	if err != nil {
		return err
	}
	if c.Items {
		err = writeResults(std.out, results)
	} else {
		err = printReport(std, report, c.JSON)
	}
	if err != nil {
		return err
	}
	if !c.Quiet {
		printStops(std.err, results)
	}
	return unfinished(report)
}

func writeResults(w io.Writer, results []replay.ItemResult) error {
	out := newLineWriter(w)
	for _, r := range results {
		l := resultLine{
			Item: r.Item.Number, Group: r.Item.Group, DedupeKey: r.Item.DedupeKey, EventID: r.Item.EventID.String(), Outcome: cmp.Or(r.Outcome, "remaining"),
			Planned: r.Item.Label, AtSend: r.Label, Reason: r.Reason, MessageID: r.MessageID, SequenceNumber: r.SequenceNumber,
		}
		out.write(l)
	}
	return out.flush()
}

// unfinished returns errFindings if items remain to be sent, or if an item stopped its
// message group.
func unfinished(r replay.PlanReport) error {
	return findingsIf(r.Conflict+r.Drift+r.Unresolved+r.Failed+r.Remaining > 0)
}

func printReport(std stdio, r replay.PlanReport, asJSON bool) error {
	if asJSON {
		return printLine(std.out, true, r, "")
	}
	return writeReportTable(std.out, r)
}

// shownStops is the largest number of messages that printStops prints.
const shownStops = 20

// printStops prints one line for each stopped message group, with the message at which
// the run stopped the group.
func printStops(w io.Writer, results []replay.ItemResult) {
	more := 0
	for _, r := range results {
		if !r.Outcome.Stops() {
			continue
		}
		if more++; more > shownStops {
			continue
		}
		fmt.Fprintf(w, "item %d, group %s: %s: %s\n", r.Item.Number, r.Item.Group, r.Outcome, r.Reason)
	}
	if more > shownStops {
		fmt.Fprintf(w, "%d more; replay report --items has all\n", more-shownStops)
	}
}
