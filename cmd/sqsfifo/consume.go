package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os/exec"
	"slices"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

type consumeCmd struct {
	Queue queueFlags `embed:"" group:"Queue:"`

	OnFailure    string        `enum:"park,block,skip," default:"" placeholder:"WAY" help:"After the last attempt of a command: park the message, block its group until the command ends, or skip (delete) the message. Required with a COMMAND."`
	ParkingQueue string        `placeholder:"URL" help:"With --on-failure park: URL of a FIFO queue for failed messages."`
	Attempts     int           `default:"5" placeholder:"N" help:"Runs of COMMAND for a message before --on-failure (default ${default})."`
	Deliveries   int           `placeholder:"N" help:"With --on-failure park or block: most deliveries of a message; above them --on-failure applies without a run (default: no limit). Shutdowns count as deliveries, and so do those of the queue whose dead-letter queue this is."`
	Groups       int           `default:"10" placeholder:"N" help:"Most messages at once, of as many groups (default ${default})."`
	Timeout      time.Duration `default:"5m" placeholder:"TIME" help:"Longest time for one run of COMMAND, which then gets SIGTERM (default ${default}). Three times as long, at least 15m, is the limit for all runs for a message."`
	Visibility   time.Duration `default:"1m" placeholder:"TIME" help:"Visibility timeout, which is extended while a message is in hand (default ${default})."`
	Grace        time.Duration `default:"25s" placeholder:"TIME" help:"How long commands under way may take after SIGINT (default ${default})."`
	Idle         time.Duration `placeholder:"TIME" help:"End after this time without a new message (default: run until SIGINT)."`
	JSON         bool          `name:"json" help:"Write notes and the summary on standard error as JSON objects."`
	Quiet        bool          `short:"q" help:"No notes, no progress and no summary."`

	Command []string `arg:"" optional:"" passthrough:"" help:"Program to run for each message, with its arguments. Without it each message is printed."`
}

func (*consumeCmd) Help() string {
	return `Receives from a FIFO queue with package consumer, in the order of each message group, and deletes each message after its success. Groups run at the same time, messages of one group never.

Without COMMAND each message becomes a JSON line on standard output, which "sqsfifo replay plan --lines" reads. The message is deleted after the line was written. A binary attribute is in base64.

With COMMAND the program runs once for each message. The body is its standard input; SQSFIFO_GROUP, SQSFIFO_MESSAGE_ID, SQSFIFO_SEQUENCE_NUMBER, SQSFIFO_ATTEMPT, SQSFIFO_RECEIVES and SQSFIFO_BODY_HASH are in its environment, and for a body that is an envelope also SQSFIFO_DEDUPE_KEY, SQSFIFO_EVENT_ID, SQSFIFO_EVENT_SOURCE and SQSFIFO_EVENT_TIME. Lines that it prints go to standard output and standard error as whole lines. Exit code 0 is a success, 65 (EX_DATAERR) applies --on-failure at once, any other asks for another attempt after a back-off. --on-failure also applies at once to a message whose environment is too long for the system. The program gets SIGTERM after --timeout, when the message is lost or the grace is over, and must then end. If this command is killed, the program gets SIGKILL on Linux, but its own children do not; on other systems the program goes on.

A message may come again after a crash: between the success and the delete there is a moment. Compare SQSFIFO_DEDUPE_KEY with the keys of earlier successes, or use Config.Store and HandleTx of package consumer.

Notes on standard error name failed attempts and blocked, parked and skipped messages. Blocked groups are listed once a minute and at the end. The exit code is 0 if no message was parked or skipped and no group was blocked at the end, 1 if one was, 2 if the queue could not be used or messages could not be given back.

Permissions: sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility and sqs:GetQueueAttributes; on the parking queue sqs:SendMessage and sqs:GetQueueAttributes.

Examples:

	sqsfifo consume --queue-url http://127.0.0.1:9324/000000000000/events.fifo --idle 10s > messages.jsonl
	sqsfifo consume --queue-url https://sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo --on-failure block -- ./load-scene.sh`
}

// check returns an error for invalid combinations of flags.
func (c *consumeCmd) check() error {
	var errs flagErrors
	errs.addIf(c.Queue.QueueURL == "", "--queue-url is missing: name the queue to receive from")
	errs.addIf(len(c.Command) > 0 && c.OnFailure == "", "--on-failure is missing: choose park, block or skip for messages whose attempts are used up")
	errs.addIf(len(c.Command) == 0 && c.OnFailure != "", "--on-failure needs a COMMAND: a printed message cannot fail")
	errs.addIf(c.ParkingQueue != "" && c.OnFailure != "park", "--parking-queue needs --on-failure park")
	errs.addIf(c.ParkingQueue == "" && c.OnFailure == "park", "--on-failure park needs --parking-queue")
	errs.addIf(c.Groups < 1, "--groups: %d is below 1", c.Groups)
	errs.addIf(c.Attempts < 1, "--attempts: %d is below 1", c.Attempts)
	errs.addIf(c.Deliveries < 0, "--deliveries: %d is below 0", c.Deliveries)
	errs.addIf(c.Deliveries > 0 && c.OnFailure == "skip", "--deliveries needs --on-failure park or block: a count of deliveries alone must not delete a message")
	errs.addIf(c.Idle < 0, "--idle: %v is below 0", c.Idle)
	return errors.Join(errs...)
}

func (c *consumeCmd) run(ctx context.Context, std stdio) error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	if err := c.check(); err != nil {
		return err
	}
	if len(c.Command) > 0 {
		if _, err := exec.LookPath(c.Command[0]); err != nil {
			return err
		}
	}
	client, err := c.Queue.client(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &consuming{cmd: c, progress: newProgress(std.err, 0, c.Quiet), notes: slog.New(slog.DiscardHandler)}
	if !c.Quiet {
		w.notes = w.newLogger()
	}
	handle := (&messagePrinter{out: newLineWriter(std.out), broken: cancel}).handle
	if len(c.Command) > 0 {
		handle = newMessageRunner(c.Command, c.Visibility, std, cancel).handle
	}
	w.consumer, err = consumer.New(client, c.config(handle, w.notes))
	if err != nil {
		return consumeFlagWords(err)
	}
	if err := w.preflight(ctx); err != nil {
		return err
	}
	return w.run(ctx, cancel)
}

// config returns the consumer's configuration.
func (c *consumeCmd) config(handle consumer.Handler[json.RawMessage], notes *slog.Logger) consumer.Config[json.RawMessage] {
	// Without COMMAND, a message that cannot be printed must stay in the queue. The largest
	// limits prevent ActionSkip, which would delete the message.
	f := consumer.Failure{Action: consumer.ActionSkip, Attempts: math.MaxInt}
	if len(c.Command) > 0 {
		then := map[string]consumer.Action{"park": consumer.ActionPark, "block": consumer.ActionBlock, "skip": consumer.ActionSkip}
		f = consumer.Failure{Action: then[c.OnFailure], ParkingQueue: c.ParkingQueue, Attempts: c.Attempts, Deliveries: c.Deliveries}
	}
	return consumer.Config[json.RawMessage]{
		QueueURL: c.Queue.QueueURL, Decode: anyBody, Handle: handle,
		Groups: c.Groups, Timeout: c.Timeout, MaxHold: c.maxHold(), Visibility: c.Visibility, Shutdown: c.Grace, Failure: f,
		Telemetry: consumer.Telemetry{Logger: notes, ShowDedupeKeys: true},
	}
}

// maxHold returns the limit for all runs for a message.
func (c *consumeCmd) maxHold() time.Duration {
	return min(max(15*time.Minute, c.Visibility, 3*c.Timeout), 11*time.Hour+55*time.Minute)
}

// anyBody decodes a message body that is an envelope. For any other body it returns an
// empty envelope and no error, so the consumer handles messages of all formats.
func anyBody(body string) (sqsfifo.Envelope[json.RawMessage], error) {
	var e sqsfifo.Envelope[json.RawMessage]
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.DedupeKey == "" || e.Payload == nil {
		return sqsfifo.Envelope[json.RawMessage]{}, nil //nolint:nilerr // a message without an envelope is valid, too
	}
	return e, nil
}

// consumeFlagWords replaces the names of configuration fields in an error by the names of
// flags.
func consumeFlagWords(err error) error {
	flags := map[string]string{
		"Config.QueueURL": "--queue-url", "Config.Failure.ParkingQueue": "--parking-queue", "Config.Visibility": "--visibility", "Config.Timeout": "--timeout", "Config.Shutdown": "--grace",
	}
	return inFlags(err, flags)
}

// consuming is one run of the command consume.
type consuming struct {
	cmd      *consumeCmd
	consumer *consumer.Consumer[json.RawMessage]
	notes    *slog.Logger
	progress *progress
}

// newLogger returns a logger that prints records above the progress bar, as JSON with
// --json and otherwise as text. The text omits the time and the queue.
func (w *consuming) newLogger() *slog.Logger {
	if w.cmd.JSON {
		return slog.New(slog.NewJSONHandler(noteWriter{w.progress}, nil))
	}
	return slog.New(slog.NewTextHandler(noteWriter{w.progress}, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "queue" {
			return slog.Attr{}
		}
		return a
	}}))
}

func (w *consuming) note(level slog.Level, text string, attributes ...slog.Attr) {
	w.notes.LogAttrs(context.Background(), level, text, attributes...)
}

func (w *consuming) preflight(ctx context.Context) error {
	report, err := w.consumer.Preflight(ctx)
	for _, text := range report.Notes {
		w.note(slog.LevelWarn, text)
	}
	if denied(err) {
		w.note(slog.LevelWarn, "the queue's attributes may not be read (sqs:GetQueueAttributes); it is taken for a FIFO queue")
		return nil
	}
	if err != nil {
		return fmt.Errorf("--queue-url: %w", plainCause(err, w.cmd.Queue.QueueURL))
	}
	return nil
}

// run consumes until ctx ends or the queue is idle.
func (w *consuming) run(ctx context.Context, cancel context.CancelCauseFunc) error {
	watched := make(chan []consumer.BlockedGroup, 1)
	go func() { watched <- w.watch(ctx) }()
	if w.cmd.Idle > 0 {
		go func() {
			err := w.consumer.WaitIdle(ctx, w.cmd.Idle)
			if err != nil && ctx.Err() == nil {
				err = &fatalError{err}
			}
			cancel(err)
		}()
	}
	err := w.consumer.Run(ctx)
	cancel(nil)
	blocked := <-watched
	w.progress.finish()
	s := w.consumer.Stats()
	w.logBlocked(blocked)
	w.note(slog.LevelInfo, "consumed", slog.Int64("received", s.Received), slog.Int64("handled", s.Handled), slog.Int64("deleted", s.Deleted),
		slog.Int64("failures", s.Failures), slog.Int64("parked", s.Parked), slog.Int64("skipped", s.Skipped), slog.Int("blocked", len(blocked)),
		slog.Int64("released", s.Released), slog.Int64("lost", s.Lost))
	var fatal *fatalError
	if errors.As(context.Cause(ctx), &fatal) {
		err = errors.Join(fatal.err, err)
	}
	if err != nil {
		return plainCause(err, w.cmd.Queue.QueueURL)
	}
	return findingsIf(s.Parked+s.Skipped > 0 || len(blocked) > 0)
}

// watch shows the progress and the blocked groups until ctx ends. It returns the groups
// blocked before the shutdown.
func (w *consuming) watch(ctx context.Context) (blocked []consumer.BlockedGroup) {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for listed := time.Now(); ; {
		select {
		case <-ctx.Done():
			return blocked
		case <-ticker.C:
		}
		now, s := time.Now(), w.consumer.Stats()
		w.progress.setDone(int(s.Handled), fmt.Sprintf("%s, %d in hand, %s blocked, oldest head %s",
			counted(int(s.Handled), "message"), s.Messages, counted(s.Blocked, "group"), ago(s.OldestHead)))
		if found := w.blocked(); ctx.Err() == nil {
			blocked = found
		}
		if now.Sub(listed) >= time.Minute {
			w.logBlocked(blocked)
			listed = now
		}
	}
}

// blocked returns the message groups that wait for an operator, because the handler failed
// on their first message. It leaves out groups that only wait for their next attempt.
func (w *consuming) blocked() []consumer.BlockedGroup {
	return slices.DeleteFunc(w.consumer.Blocked(), func(g consumer.BlockedGroup) bool { return !g.Blocked })
}

// logBlocked logs one record for each blocked group.
func (w *consuming) logBlocked(groups []consumer.BlockedGroup) {
	for _, g := range groups {
		w.note(slog.LevelError, "group blocked", slog.String("message_group", g.Group), slog.String("message_id", g.MessageID), slog.String("dedupe_key", g.Key),
			slog.Int("attempts", g.Attempts), slog.Int("receives", g.Receives), slog.Int("in_hand", g.Messages),
			slog.Time("since", g.Since), slog.String("error", fmt.Sprint(g.Cause)))
	}
}
