package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/time/rate"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
)

type sendCmd struct {
	Queue queueFlags `embed:"" group:"Queue:"`
	Event eventFlags `embed:"" group:"Events:"`

	Journal          string        `placeholder:"FILE" help:"Store each message in this file (SQLite) before it is sent, and what became of it. A rerun with the same journal continues."`
	ResendUnresolved bool          `help:"With --journal: send events of an earlier run again whose outcome nobody knows, although SQS may deliver them a second time."`
	DryRun           bool          `help:"Send nothing: print the messages as they would be sent, one JSON object a line, which is an input of this command."`
	Whole            bool          `help:"Take each file for one event, in place of its lines."`
	SkipBad          bool          `help:"Report a line that is no event and go on. Without it nothing after such a line is sent."`
	Rate             float64       `placeholder:"N" help:"Most events a second (default: no limit but that of SQS)."`
	Order            string        `enum:"strict,runs" default:"strict" placeholder:"ORDER" help:"strict: one event of a group at a time. runs: up to ten in a request, faster with few groups (default ${default})."`
	OnFailure        string        `enum:"hold,skip" default:"hold" placeholder:"WAY" help:"After an event that failed, hold the later ones of its group back, or skip it (default ${default})."`
	InFlight         int           `default:"10" placeholder:"N" help:"Most requests at once (default ${default})."`
	RetryFor         time.Duration `default:"${send_for}" placeholder:"TIME" help:"How long an event is tried when SQS throttles or does not answer (default ${default})."`
	Grace            time.Duration `default:"30s" placeholder:"TIME" help:"How long events under way may take after SIGINT (default ${default})."`
	Quiet            bool          `short:"q" help:"No receipts on standard output, no progress and no summary."`

	File []string `arg:"" optional:"" help:"Files of JSON lines, or with --whole of one JSON text each; - or none is standard input."`
}

// eventFlags has the flags that describe how a line of the input becomes a message.
type eventFlags struct {
	Input      string            `enum:"auto,payload,envelope,message" default:"auto" placeholder:"KIND" help:"What a line is: payload, envelope, message, or auto for the kind of the first line (default ${default})."`
	Source     string            `placeholder:"TEMPLATE" help:"event_source of payloads: organization.domain.pipeline."`
	Key        string            `placeholder:"TEMPLATE" help:"Dedupe key of payloads, as in 'landsat|{/collection}|{/id}'."`
	Group      string            `placeholder:"TEMPLATE" help:"Message group, as in /path_row: events of one group are delivered in the order of the lines."`
	Time       string            `placeholder:"TEMPLATE" help:"When the event of a payload occurred, as in /acquired."`
	TimeFormat string            `enum:"rfc3339,date,unix,unixms" default:"rfc3339" placeholder:"FORM" help:"Form of --time: rfc3339, date, unix or unixms (default ${default})."`
	EventID    string            `placeholder:"TEMPLATE" help:"UUIDv7 that is stored with the event, as in /event_id (default: derived from source, key and time)."`
	Attribute  map[string]string `mapsep:"none" placeholder:"NAME=TEMPLATE" help:"Message attribute, a routing hint that SQS does not deduplicate by; may be repeated."`
}

func (f eventFlags) spec() input.Spec {
	return input.Spec{
		Kind: input.Kind(f.Input), Source: f.Source, Key: f.Key, Group: f.Group,
		Time: f.Time, TimeFormat: f.TimeFormat, EventID: f.EventID, Attributes: f.Attribute,
	}
}

func (*sendCmd) Help() string {
	return `Sends events, one JSON object on a line, with the guarantees of the library: the same event has the same bytes in each run, each has one receipt, the order within a message group is that of the lines, and no retry comes after the five minutes in which SQS recognises it.

A line is a payload, whose identity --source, --key, --group and --time name; or an envelope, a message body that is ready; or a message that Producer.Build or --dry-run made. "sqsfifo help templates" explains how the flags name values.

Without --queue-url events go to a fake queue in this process, which ends with it. A URL that begins with http://127.0.0.1 or http://localhost is one of "sqsfifo serve", and needs neither region nor credentials; for other queues they come from the environment and the files that the AWS CLI uses.

Each event has a receipt on standard output, in the order of the lines within its group; "sqsfifo help receipts" has the members. The exit code is 0 if each event is stored, now or earlier; 1 if at least one is not, or if that is unknown; 2 if a line is no event, or the queue or the journal cannot be used. What was accepted before that has its receipt.

With --journal each message is on disk before it is sent. Start the command again with the same lines and the same journal after a crash: it sends what is missing, with the bytes of the first run, and reports the rest as already_sent. "sqsfifo help journal" has the details.

Examples:

	sqsfifo send scenes.jsonl --source kfm.remote-sensing.landsat --key 'landsat|{/id}' --group /path_row --time /acquired
	sqsfifo send scenes.jsonl ... --dry-run > messages.jsonl
	sqsfifo send messages.jsonl --journal scenes.db --queue-url https://sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo
	tail -f events.jsonl | sqsfifo send --group /payload/tenant --queue-url http://127.0.0.1:9324/000000000000/events.fifo`
}

// check returns an error for invalid combinations of flags.
func (c *sendCmd) check() error {
	var errs flagErrors
	errs.addIf(c.Rate < 0, "--rate: %v is below 0", c.Rate)
	errs.addIf(c.InFlight < 1, "--in-flight: %d is below 1", c.InFlight)
	errs.addIf(c.RetryFor < 0, "--retry-for: %v is below 0", c.RetryFor)
	errs.addIf(c.Grace < 0, "--grace: %v is below 0", c.Grace)
	errs.addIf(c.ResendUnresolved && c.Journal == "", "--resend-unresolved needs --journal: without one no earlier run is known")
	errs.addIf(c.DryRun && c.Journal != "", "--dry-run and --journal: a dry run sends nothing that a journal could remember; use one of them")
	errs.addIf(c.Journal != "" && c.Queue.QueueURL == "", "--journal needs --queue-url: the fake queue ends with this process, and a journal of it would say that events are sent")
	return errors.Join(errs...)
}

// garbagePercent replaces Go's default GOGC of 100, unless the environment sets GOGC. The
// heap has only a few megabytes; with 100, the garbage collector would take an eighth of
// the processor time.
const garbagePercent = 400

func (c *sendCmd) run(ctx context.Context, std stdio) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(garbagePercent))
	}
	lines, err := input.Open(c.File, std.in, c.Whole)
	if err != nil {
		return err
	}
	target, err := c.Queue.open(ctx, c.DryRun)
	if err != nil {
		return err
	}
	config := c.queueConfig(target)
	if c.Journal != "" {
		store, end, err := openSendJournal(ctx, c.Journal, c.ResendUnresolved)
		if err != nil {
			return fmt.Errorf("--journal: %w", err)
		}
		config.Store = store
		defer closing(end, &err)
	}
	queue, err := sqsfifo.NewQueue(target.client, config)
	if err != nil {
		return flagWords(err)
	}
	// If an error or a dry run ends this method early, only this call closes the queue.
	// Otherwise s.run has closed it, and a second Close finds no events and does not wait.
	defer closing(func() error { return queue.Close(context.WithoutCancel(ctx)) }, &err)
	builder, err := input.NewBuilder(queue, c.Event.spec())
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.dryRun(ctx, lines, builder, std)
	}
	if target.note != "" && !c.Quiet {
		fmt.Fprintln(std.err, target.note)
	}
	producer, err := newPrebuiltProducer(queue)
	if err != nil {
		return err
	}
	s := newSending(producer, queue, lines, builder, std, c, target.arn)
	return s.run(ctx)
}

func (c *sendCmd) queueConfig(target target) sqsfifo.QueueConfig {
	d := sqsfifo.Delivery{InFlight: c.InFlight, RetryFor: c.RetryFor, OnGroupFailure: sqsfifo.GroupFailurePause}
	if c.RetryFor == 0 {
		d.RetryFor = 1 // one nanosecond: 0 would mean the producer's default
	}
	if c.Order == "runs" {
		d.Order = sqsfifo.OrderRuns
	}
	if c.OnFailure == "skip" {
		d.OnGroupFailure = sqsfifo.GroupFailureSkip
	}
	d.Memory.DetectForeignDuplicates = true // events that SQS already had are reported as duplicates
	return sqsfifo.QueueConfig{URL: target.url, Deduplication: target.deduplication, Delivery: d}
}

// newPrebuiltProducer returns a producer for complete messages: from an input.Builder, or
// from the source of a replay. Producers call the function Identify only to build a
// message, so here Identify always returns an error.
func newPrebuiltProducer(queue *sqsfifo.Queue) (*sqsfifo.Producer[input.Event], error) {
	//sqsfifo:ignore SF020 -- this producer builds no messages that a compliance test could check
	return sqsfifo.NewProducerOn(queue, sqsfifo.Config[input.Event]{
		Source: "kfm.sqsfifo.send", // messages have sources of their own
		Identify: func(input.Event) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{}, errors.New("the message is built already")
		},
	})
}

func (c *sendCmd) limiter() *rate.Limiter {
	if c.Rate == 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(c.Rate), 1)
}

// dryRun prints the messages that the command would send, and sends nothing.
func (c *sendCmd) dryRun(ctx context.Context, lines *input.Texts, builder *input.Builder, std stdio) error {
	out := newLineWriter(std.out)
	count, bad := 0, 0
	for line, err := range lines.All() {
		var m *sqsfifo.Message
		if err == nil {
			m, err = builder.Build(line)
		}
		var wrong *input.LineError
		switch {
		case err == nil:
			count++
			out.write(m)
			err = out.err
		case errors.As(err, &wrong) && c.SkipBad:
			bad++
			fmt.Fprintln(std.err, err)
			err = nil
		}
		if err != nil {
			return errors.Join(err, out.flush())
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := out.flush(); err != nil {
		return err
	}
	if !c.Quiet {
		fmt.Fprintf(std.err, "dry run: %s, nothing was sent\n", counted(count, "message"))
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	return findingsIf(bad > 0)
}
