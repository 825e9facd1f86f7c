package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

type replayReportCmd struct {
	JournalDir string `required:"" placeholder:"DIR" help:"Folder of the journals."`
	Items      bool   `help:"Print one JSON object for each message of the plan instead of the report."`
	JSON       bool   `name:"json" help:"Print the report as one JSON object."`
	Quiet      bool   `short:"q" help:"No lines about messages that stopped their groups."`

	Plan string `arg:"" help:"File that \"replay plan\" wrote."`
}

func (*replayReportCmd) Help() string {
	return `Prints what became of a plan over all its runs, also while one is under way: nothing is locked and nothing is sent. Messages that stopped their groups are named on standard error, with their numbers in the plan.

The exit code is that of "replay run" for the same report: 0 if each message was sent, suppressed or skipped, 1 if one is a conflict, has drifted, failed, is unresolved or remains, 2 if plan or journal cannot be read.

Examples:

	sqsfifo replay report day.plan --journal-dir journals
	sqsfifo replay report day.plan --journal-dir journals --items`
}

// resultLine is one line of --items output. Member names are stable.
type resultLine struct {
	Item           int            `json:"n"`
	Group          string         `json:"group"`
	DedupeKey      string         `json:"dedupe_key"`
	EventID        string         `json:"event_id"`
	Outcome        replay.Outcome `json:"outcome"`
	Planned        replay.Label   `json:"planned"`
	AtSend         string         `json:"at_send,omitempty"` // replay.Label at the time of the send; "" if the message was never tried
	Reason         string         `json:"reason,omitempty"`
	MessageID      string         `json:"message_id,omitempty"`
	SequenceNumber string         `json:"sequence_number,omitempty"`
}

func (c *replayReportCmd) run(ctx context.Context, std stdio) error {
	plan, err := readPlan(c.Plan)
	if err != nil {
		return err
	}
	journal, err := replay.ReadJournal(c.JournalDir, plan)
	if err != nil {
		return fmt.Errorf("--journal-dir: %w", err)
	}
	defer journal.Close()
	report, results, err := replay.ReadReport(ctx, plan, journal, time.Now())
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

func writeResults(w io.Writer, results []replay.Result) error {
	out := newLineWriter(w)
	for _, r := range results {
		l := resultLine{
			Item: r.Item.Number, Group: r.Item.Group, DedupeKey: r.Item.DedupeKey, EventID: r.Item.EventID.String(), Outcome: cmp.Or(r.Outcome, "remaining"),
			Planned: r.Item.Label, Reason: r.Reason, MessageID: r.MessageID, SequenceNumber: r.SequenceNumber,
		}
		if r.Tried {
			l.AtSend = string(r.Label)
		}
		out.write(l)
	}
	return out.flush()
}

// unfinished returns errFindings if items remain to be sent, or if an item stopped its
// message group.
func unfinished(r replay.Report) error {
	return findingsIf(r.Conflict+r.Drift+r.Unresolved+r.Failed+r.Remaining > 0)
}

func printReport(std stdio, r replay.Report, asJSON bool) error {
	if asJSON {
		return printLine(std.out, true, r, "")
	}
	return writeReportTable(std.out, r)
}

// shownStops is the largest number of messages that printStops prints.
const shownStops = 20

// printStops prints one line for each stopped message group, with the message at which
// the run stopped the group.
func printStops(w io.Writer, results []replay.Result) {
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

type replayResolveCmd struct {
	JournalDir string `required:"" placeholder:"DIR" help:"Folder of the journals."`
	As         string `required:"" enum:"took_effect,no_effect,give_up" placeholder:"RESOLUTION" help:"took_effect, no_effect or give_up."`
	Yes        bool   `help:"Record it. Without it the message is shown and nothing is changed."`

	Plan string `arg:"" help:"File that \"replay plan\" wrote."`
	Item int    `arg:"" help:"Number of the message in the plan, as the report prints it."`
}

func (*replayResolveCmd) Help() string {
	return `Records in the journal a decision about an unresolved, conflicting, drifted or failed message, for the next "replay run". Nothing is sent. Look for its dedupe key at the consumer first.

	took_effect  the consumer has it. It counts as suppressed
	no_effect    the consumer does not have it, or recognises it. The next run sends it
	give_up      it is not to be sent. It counts as skipped, and its group goes on

The exit code is 0 if the decision is recorded, 2 if nothing was changed.

Examples:

	sqsfifo replay resolve day.plan 17 --journal-dir journals --as give_up --yes`
}

func (c *replayResolveCmd) run(ctx context.Context, std stdio) (err error) {
	plan, err := readPlan(c.Plan)
	if err != nil {
		return err
	}
	if c.Item < 0 || c.Item >= len(plan.Items) {
		return fmt.Errorf("the plan has no item %d, only %s counted from 0", c.Item, counted(len(plan.Items), "item"))
	}
	if !c.Yes {
		return c.show(ctx, std, plan)
	}
	journal, err := replay.OpenJournal(c.JournalDir, plan, "")
	if err != nil {
		return fmt.Errorf("--journal-dir: %w", err)
	}
	defer closing(journal.Close, &err)
	if err := replay.Resolve(ctx, plan, journal, c.Item, idempotency.Resolution(c.As), time.Now()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "item %d, group %s: resolved as %s\n", c.Item, plan.Items[c.Item].Group, c.As)
	return err
}

// show prints the message to resolve, and changes nothing. The command calls it if the
// user did not set --yes.
func (c *replayResolveCmd) show(ctx context.Context, std stdio, plan *replay.Plan) error {
	journal, err := replay.ReadJournal(c.JournalDir, plan)
	if err != nil {
		return fmt.Errorf("--journal-dir: %w", err)
	}
	defer journal.Close()
	_, results, err := replay.ReadReport(ctx, plan, journal, time.Now())
	if err != nil {
		return err
	}
	r := results[c.Item]
	identity := ""
	if r.Item.DedupeKey != "" { // an unreadable message has no key
		identity = fmt.Sprintf(", dedupe key %s, event ID %s", r.Item.DedupeKey, r.Item.EventID)
	}
	fmt.Fprintf(std.out, "item %d, group %s, position %s of the source%s: %s: %s\n", r.Item.Number, r.Item.Group, r.Item.Position, identity, cmp.Or(r.Outcome, "remaining"), cmp.Or(r.Reason, "-"))
	return errors.New("nothing was changed; --yes resolves it")
}
