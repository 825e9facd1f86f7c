package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

// replayFlags are the flags of "replay run" except the name of the plan.
type replayFlags struct {
	Source sourceFlags `embed:"" group:"Source (that of the plan):"`
	Queue  queueFlags  `embed:"" group:"Queue:"`

	Journal  string        `placeholder:"FILE" help:"Store each message in this file (SQLite) before it is sent. Runs of the plan continue with the same journal; journals of several plans may be one file."`
	GiveUp   []int         `sep:"none" placeholder:"N" help:"Do not send the message with this number in the plan, and go on with its group; may be repeated. Later runs know it."`
	Rate     float64       `placeholder:"N" help:"Most messages a second (default: no limit but that of SQS)."`
	InFlight int           `default:"64" placeholder:"N" help:"Most messages at once, of as many groups (default ${default})."`
	RetryFor time.Duration `default:"${retry_for}" placeholder:"TIME" help:"How long a message is tried when SQS throttles or does not answer (default ${default})."`
	RunID    string        `placeholder:"ID" help:"Name of the run in the attribute of its messages and in the journal (default: a random one)."`
	JSON     bool          `name:"json" help:"Print the report as one JSON object."`
	Quiet    bool          `short:"q" help:"No progress, and no lines about messages that stopped their groups."`
}

func (c *replayFlags) check() error {
	var errs flagErrors
	errs.addIf(c.Rate < 0, "--rate: %v is below 0", c.Rate)
	errs.addIf(c.InFlight < 1, "--in-flight: %d is below 1", c.InFlight)
	errs.addIf(c.RetryFor < 0, "--retry-for: %v is below 0", c.RetryFor)
	errs.addIf(c.Journal == "" && c.Queue.QueueURL != "", "--queue-url needs --journal: without a journal no run can continue a killed one")
	errs.addIf(c.Journal != "" && c.Queue.QueueURL == "", "--journal needs --queue-url: the fake queue ends with this process, and a journal of it would say that messages are sent")
	return errors.Join(errs...)
}

type replayRunCmd struct {
	replayFlags `embed:""`

	DryRun bool   `help:"Send nothing: print what a run that begins now would do with each message."`
	Plan   string `arg:"" help:"File that \"replay plan\" wrote."`
}

func (*replayRunCmd) Help() string {
	return `Sends what a plan says: the stored bytes to the stored groups, each group in its order. A group stops at its first message that is a conflict, drifted, failed or is unresolved, and the others go on. Messages name the run in an attribute, never in the body.

Each message is in the journal, on disk, before it is sent. After an interrupted or killed run, or after a group stopped, the same command continues: a sent message is not sent again. A message without an answer is sent again, with the same bytes, as long as SQS surely recognises it; later it is unresolved: "sqsfifo keys list --unresolved" shows it in the journal, and "sqsfifo keys resolve" decides. Any message that stopped its group can be given up with --give-up. Only one run at a time has a journal. The report is about all runs of the plan.

Without --queue-url the messages go to a fake queue in this process, which ends with it: a rehearsal, whose journal is thrown away. --dry-run needs neither a source nor a queue; with --journal it says what is left.

Standard output has the report: planned = sent + suppressed + skipped + conflict + drift + unresolved + failed + remaining. The exit code is 0 if each message was sent, suppressed or skipped; 1 if one is a conflict, has drifted, failed, is unresolved or remains; 2 if the run could not do its work, or was interrupted.

Examples:

	sqsfifo replay run day.plan --dry-run
	sqsfifo replay run day.plan --lines day.jsonl
	sqsfifo replay run day.plan --lines day.jsonl --queue-url http://127.0.0.1:9324/000000000000/events.fifo --journal day.db --rate 50 --json`
}

func (c *replayRunCmd) run(ctx context.Context, std stdio) error {
	if c.DryRun {
		return c.dryRun(ctx, std)
	}
	return c.send(ctx, std)
}

// dryRun prints the steps that a run beginning now would take, and sends nothing.
func (c *replayRunCmd) dryRun(ctx context.Context, std stdio) (err error) {
	plan, err := readPlan(c.Plan)
	if err != nil {
		return err
	}
	var store idempotency.Store
	if c.Journal != "" {
		opened, db, err := openStore(ctx, c.Journal)
		if err == nil {
			store = opened
			defer closing(closeAll(opened, db), &err)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("--journal: %w", err)
		}
	}
	steps, err := replay.DryRun(ctx, plan, store, time.Now())
	if err != nil {
		return err
	}
	if c.JSON {
		err = writeSteps(std.out, steps)
	} else {
		err = writeStepsTable(std.out, steps)
	}
	if err != nil {
		return err
	}
	if !c.Quiet {
		fmt.Fprintf(std.err, "dry run: %s, nothing was sent\n", counted(len(steps), "step"))
	}
	return findingsIf(slices.ContainsFunc(steps, func(s replay.DryRunStep) bool { return stopsGroup(s.Action) }))
}

// stepLine is one step of a dry run, about one message, in --json output. Member names are
// stable.
type stepLine struct {
	Item      int           `json:"n"`
	Group     string        `json:"group"`
	DedupeKey string        `json:"dedupe_key"`
	EventID   string        `json:"event_id"`
	Planned   replay.Label  `json:"planned"`
	Now       replay.Label  `json:"now"`
	Action    replay.Action `json:"action"`
	Reason    string        `json:"reason,omitempty"`
	Resend    bool          `json:"resend,omitempty"`
}

func writeSteps(w io.Writer, steps []replay.DryRunStep) error {
	out := newLineWriter(w)
	for _, s := range steps {
		out.write(stepLine{s.Item.Number, s.Item.Group, s.Item.DedupeKey, s.Item.EventID.String(), s.Item.Label, s.Label, s.Action, s.Reason, s.Resend})
	}
	return out.flush()
}

// send sends the messages of the plan. If the journal has an earlier run of the plan, send
// continues where that run ended.
func (c *replayRunCmd) send(ctx context.Context, std stdio) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	plan, err := readPlan(c.Plan)
	if err != nil {
		return err
	}
	source, closeSource, err := c.Source.open(ctx)
	if err != nil {
		return err
	}
	defer closing(closeSource, &err)
	if source.Name() != plan.Source {
		return fmt.Errorf("the plan is about %s, and the flags name %s; name the source of the plan", plan.Source, source.Name())
	}
	rc := replay.Config{Source: source, ID: c.RunID, GiveUp: c.GiveUp, InFlight: c.InFlight, MessagesPerSecond: c.Rate, Store: new(idempotency.Memory)}
	if c.Journal != "" {
		j, err := openJournal(ctx, c.Journal)
		if err != nil {
			return fmt.Errorf("--journal: %w", err)
		}
		defer closing(j.Close, &err)
		rc.Store, rc.Owner = j.store, j.path
	}
	target, err := c.Queue.open(ctx, false)
	if err != nil {
		return err
	}
	if target.note != "" && !c.Quiet {
		fmt.Fprintln(std.err, target.note)
	}
	return c.sendTo(ctx, std, target, plan, rc)
}

func (c *replayRunCmd) sendTo(ctx context.Context, std stdio, target target, plan *replay.Plan, rc replay.Config) (err error) {
	d := sqsfifo.Delivery{RetryFor: max(c.RetryFor, 1)} // at least 1 ns, because 0 means the producer's default
	d.Memory.DetectForeignDuplicates = true             // report messages that SQS already had
	queue, err := sqsfifo.NewQueue(target.client, sqsfifo.QueueConfig{URL: target.url, Deduplication: target.deduplication, Delivery: d})
	if err != nil {
		return flagWords(err)
	}
	defer closing(func() error { return queue.Close(context.WithoutCancel(ctx)) }, &err)
	if rc.Sender, err = newPrebuiltProducer(queue); err != nil {
		return flagWords(err)
	}
	w := &watched{progress: newProgress(std.err, int64(sendable(plan)), c.Quiet)}
	rc.Progress = w.add
	report, err := replay.Run(ctx, plan, rc)
	w.progress.finish()
	if report.Plan == "" { // the run has not begun, or its report does not add up
		return flagWords(err)
	}
	if printErr := printReport(std, report, c.JSON); printErr != nil {
		return errors.Join(err, printErr)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = errInterrupted
		}
		return err
	}
	_, results, err := replay.ReadReport(ctx, plan, rc.Store, time.Now())
	if err != nil {
		return err
	}
	if !c.Quiet {
		printStops(std.err, results)
	}
	return unfinished(report)
}

// sendable returns the number of plan items that are not skipped.
func sendable(plan *replay.Plan) int {
	n := 0
	for i := range plan.Items {
		if plan.Items[i].Action != replay.ActionSkip {
			n++
		}
	}
	return n
}

// watched counts the outcomes of a run's messages and shows the counts in the progress bar.
type watched struct {
	progress *progress

	done, suppressed, stopped int
}

func (w *watched) add(_ *replay.PlannedItem, o replay.Outcome) {
	if o != replay.OutcomeNone {
		w.done++
	}
	switch {
	case o == replay.OutcomeSuppressed:
		w.suppressed++
	case o.Stops():
		w.stopped++
	}
	w.progress.setDone(w.done, w.String())
}

func (w *watched) String() string {
	return fmt.Sprintf("%s, %d suppressed, %s stopped", counted(w.done, "message"), w.suppressed, counted(w.stopped, "group"))
}
