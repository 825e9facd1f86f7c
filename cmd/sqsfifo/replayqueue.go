package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
)

type replayQueueCmd struct {
	Queue queueFlags `embed:"" group:"Target queue:"`

	FromQueue string        `required:"" placeholder:"URL" help:"URL of the parking queue or dead-letter queue."`
	Journal   string        `placeholder:"FILE" help:"Store each message in this file (SQLite) before it is sent. A rerun with the same journal and run ID continues."`
	RunID     string        `required:"" placeholder:"ID" help:"Name of the replay, as in incident-17. A message that failed again and came back is sent again only by a run with another name."`
	Wait      time.Duration `default:"${forgotten_after}" placeholder:"TIME" help:"How long after its last send a message waits, because SQS suppresses an equal message for five minutes (default ${default}). 0s is for a target that never had the messages."`
	Idle      time.Duration `default:"45s" placeholder:"TIME" help:"End after this time without a message (default ${default})."`
	InFlight  int           `default:"10" placeholder:"N" help:"Most messages at once, of as many groups (default ${default})."`
	DryRun    bool          `help:"Send and delete nothing: print the first message of each group. It counts as one receive."`
	JSON      bool          `name:"json" help:"Print one JSON object for each message, then the report as one."`
	Quiet     bool          `short:"q" help:"No progress, and no lines about messages that stopped their groups."`
}

func (*replayQueueCmd) Help() string {
	return `Sends the messages of a parking queue or a dead-letter queue to another queue, with their bodies and groups, and deletes each one after SQS has acknowledged its copy. Messages of a group are sent in their order. A group stops at its first message that is not sent: the message and the later ones stay in the source, and the other groups go on. SQS's own redrive replaces deduplication IDs.

SQS shows at most ten messages of a group until they are deleted, so there is no plan of a whole queue. --dry-run prints the first message of each group.

Each message is in the journal, on disk, before it is sent. After an interrupted or killed run the same command continues: a message that was sent and not deleted is deleted, and a message without an answer is sent again as long as SQS surely recognises it. Later it is unresolved: "sqsfifo keys list" shows it in the journal, and "sqsfifo keys resolve" decides.

Standard output has the report: received = sent + suppressed + stopped + remaining. The exit code is 0 if the source is empty afterwards, 1 if messages are left, 2 if the replay could not do its work or was interrupted.

Permissions: on the source those of "sqsfifo consume", on the target sqs:SendMessage and sqs:GetQueueAttributes.

Examples:

	sqsfifo replay queue --from-queue https://sqs.eu-central-1.amazonaws.com/123456789012/parking.fifo --run-id incident-17 --dry-run
	sqsfifo replay queue --from-queue https://sqs.eu-central-1.amazonaws.com/123456789012/parking.fifo --queue-url https://sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo --journal incident-17.db --run-id incident-17`
}

func (c *replayQueueCmd) check() error {
	var errs flagErrors
	errs.addIf(!c.DryRun && c.Queue.QueueURL == "", "--queue-url is missing: name the queue that gets the messages")
	errs.addIf(!c.DryRun && c.Journal == "", "--journal is missing: without a journal no run can continue a killed one")
	errs.addIf(c.FromQueue == c.Queue.QueueURL, "--queue-url: the queue of --from-queue; name another queue")
	errs.addIf(c.Wait < 0, "--wait: %v is below 0", c.Wait)
	errs.addIf(c.Idle <= 0, "--idle: %v is not above 0", c.Idle)
	errs.addIf(c.InFlight < 1, "--in-flight: %d is below 1", c.InFlight)
	return errors.Join(errs...)
}

func (c *replayQueueCmd) run(ctx context.Context, std stdio) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	source := c.Queue
	source.QueueURL = c.FromQueue
	client, err := source.client(ctx)
	if err != nil {
		return err
	}
	q := replay.QueueConfig{Client: client, QueueURL: c.FromQueue, ID: c.RunID, Wait: c.Wait, Idle: c.Idle, InFlight: c.InFlight, DryRun: c.DryRun}
	if c.Wait == 0 {
		q.Wait = -1
	}
	if c.DryRun {
		return c.replay(ctx, std, q)
	}
	target, err := c.Queue.open(ctx, false)
	if err != nil {
		return err
	}
	if target.note != "" && !c.Quiet {
		fmt.Fprintln(std.err, target.note)
	}
	j, err := openJournal(ctx, c.Journal)
	if err != nil {
		return fmt.Errorf("--journal: %w", err)
	}
	defer closing(j.Close, &err)
	queue, err := sqsfifo.NewQueue(target.client, sqsfifo.QueueConfig{
		URL: target.url, Deduplication: target.deduplication, Delivery: sqsfifo.Delivery{InFlight: c.InFlight, OnGroupFailure: sqsfifo.GroupFailurePause},
		Store: sqsfifo.StoreConfig{Store: j.store, Client: replay.QueueClient(c.RunID), Owner: c.RunID, TTL: idempotency.Forever},
	})
	if err != nil {
		return flagWords(err)
	}
	defer closing(func() error { return queue.Close(context.WithoutCancel(ctx)) }, &err)
	if q.Sender, err = newPrebuiltProducer(queue); err != nil {
		return flagWords(err)
	}
	return c.replay(ctx, std, q)
}

// queueResultLine is one message of the source queue in --json output. Member names are
// stable.
type queueResultLine struct {
	Group          string         `json:"group"`
	DedupeKey      string         `json:"dedupe_key,omitempty"`
	EventID        string         `json:"event_id,omitempty"`
	SourceID       string         `json:"source_message_id"`
	Parked         string         `json:"parked_reason,omitempty"`
	Outcome        replay.Outcome `json:"outcome,omitempty"`
	Reason         string         `json:"reason,omitempty"`
	MessageID      string         `json:"message_id,omitempty"`
	SequenceNumber string         `json:"sequence_number,omitempty"`
}

func queueResultLineOf(r replay.QueueResult) queueResultLine {
	l := queueResultLine{r.Group, r.DedupeKey, "", r.SourceID, r.Parked, r.Outcome, r.Reason, r.MessageID, r.SequenceNumber}
	if r.DedupeKey != "" {
		l.EventID = r.EventID.String()
	}
	return l
}

// queueReportLine is the last line of --json output: the counts of the whole replay. Member
// names are stable.
type queueReportLine struct {
	Run        string `json:"run"`
	Received   int    `json:"received"`
	Sent       int    `json:"sent"`
	Suppressed int    `json:"suppressed"`
	Stopped    int    `json:"stopped"`
	Remaining  int    `json:"remaining"`
	Deleted    int    `json:"deleted"`
	Left       int    `json:"left"`
}

// replay sends the messages of the source queue. It prints the result of each message with
// --json or --dry-run. At the end it prints the report, except after a dry run without
// --json.
func (c *replayQueueCmd) replay(ctx context.Context, std stdio, q replay.QueueConfig) error {
	p := newProgress(std.err, 0, c.Quiet)
	out, done := newLineWriter(std.out), 0
	var mu sync.Mutex
	q.Progress = func(r replay.QueueResult) {
		mu.Lock()
		defer mu.Unlock()
		done++
		p.setDone(done, counted(done, "message"))
		if c.JSON || c.DryRun {
			parked := ""
			if r.Parked != "" {
				parked = ", parked: " + r.Parked
			}
			out.print(c.JSON, queueResultLineOf(r), "group %s: %s%s\n", r.Group, r.DedupeKey, parked)
		}
		if r.Outcome.Stops() && !c.Quiet {
			p.say(fmt.Sprintf("group %s stopped at message %s, key %s: %s: %s", r.Group, r.SourceID, r.DedupeKey, r.Outcome, r.Reason))
		}
	}
	if !c.Quiet {
		q.Logger = slog.New(slog.NewTextHandler(noteWriter{p}, &slog.HandlerOptions{Level: slog.LevelError}))
	}
	if c.DryRun {
		// In a dry run, groups stay in the queue, and RunQueue would log them as blocked.
		q.Logger = nil
	}
	report, err := replay.RunQueue(ctx, q)
	p.finish()
	var wrong *consumer.QueueError
	if errors.As(err, &wrong) {
		return fmt.Errorf("--from-queue: %w", err)
	}
	if ctx.Err() != nil {
		err = errInterrupted
	}
	l := queueReportLine{report.ID, report.Received, report.Sent, report.Suppressed, len(report.Stopped), report.Remaining, report.Deleted, report.Left}
	if c.JSON || !c.DryRun {
		out.print(c.JSON, l, "received %d: %d sent, %d suppressed, %d stopped, %d remaining; %d deleted; %s left in the source\n",
			l.Received, l.Sent, l.Suppressed, l.Stopped, l.Remaining, l.Deleted, counted(l.Left, "message"))
	}
	if err = errors.Join(err, out.flush()); err != nil {
		return plainCause(err, c.FromQueue)
	}
	return findingsIf(!c.DryRun && (report.Left > 0 || len(report.Stopped) > 0))
}
