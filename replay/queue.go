package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/metric"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
)

// QueueConfig configures [RunQueue]. Client, QueueURL, Sender and ID are required.
type QueueConfig struct {
	// Client reads and deletes messages of the source queue at QueueURL, which is a parking
	// queue or a dead-letter queue.
	Client   consumer.Client
	QueueURL string

	// Sender is a producer for the target queue. The producer's Config.Store records the
	// messages of the run. Without a store, a killed run may send a
	// message again after five minutes.
	//
	// Set the producer's StoreConfig.Client to the result of [QueueClient]. The run then
	// has its own records in the store. If the producer instead found the records of the
	// original sends, it would send nothing.
	Sender Sender

	// ID names the run in the [sqsfifo.ReplayAttribute] of its messages. A continued run
	// has the same ID.
	//
	// A sent message may fail in its consumer and return to the source queue. A run with
	// the same ID does not send such a message again; a run with another ID does.
	ID string

	// Wait is the minimum time between a message's last send and its replay. Zero means
	// [Interval] plus [Margin], because SQS suppresses copies for five minutes. If the
	// target queue never had the messages, set a negative value: it means no wait.
	Wait time.Duration

	// Idle is the time without new messages after which the run ends. Zero means 45 s,
	// because messages of a killed run are hidden for 30 s.
	Idle time.Duration

	// InFlight is the largest number of messages in flight. Each message group has at most
	// one message in flight. Zero means 64.
	InFlight int

	// DryRun receives messages, but neither sends nor deletes them. Progress gets the first
	// message of each group. A dry run raises the receive counts.
	//
	// All received messages count as Remaining. SQS returns at most ten messages of a group
	// until these are deleted, so later messages are not counted.
	DryRun bool

	// Progress is called with each message's outcome, before the message is deleted from
	// the source. Calls may be concurrent and must return quickly. It may be nil.
	Progress func(QueueResult)

	// Logger receives the records of the consumer that reads the source queue, and one
	// record for each stopped message group. Nil disables logging.
	Logger *slog.Logger

	// MeterProvider creates the run's instrument, like [Config].MeterProvider.
	MeterProvider metric.MeterProvider
}

// QueueClient returns the value to set as StoreConfig.Client of a run's producer. The
// parameter `id` is the run's [QueueConfig].ID.
func QueueClient(id string) string { return "replay:" + id }

// QueueResult is the outcome of one message of a queue.
type QueueResult struct {
	Group, DedupeKey string
	EventID          uuid.UUID
	SourceID         string // MessageId in the source queue
	Parked           string // reason for which a consumer parked the message, or ""
	Outcome          Outcome
	Reason           string
	MessageID        string // in the target queue
	SequenceNumber   string
}

// QueueReport counts the deliveries in one call of [RunQueue]: Received = Sent +
// Suppressed + len(Stopped) + Remaining. Deleted counts messages removed from the source.
type QueueReport struct {
	ID       string
	Received int
	Sent     int

	// Suppressed counts messages of which the target queue already had a copy, for example
	// from an earlier call with the same ID that was killed.
	Suppressed int

	// Stopped are the messages that stopped their groups, one for each group.
	Stopped []QueueResult

	// Remaining counts received messages that the run left in the source, because an
	// earlier message stopped the group or the run was interrupted.
	Remaining int

	Deleted int

	// Left is the number of messages in the source after the run, as approximated by SQS.
	Left int
}

// errCameBack: this run already sent a copy of the message, and the copy failed in its
// consumer and returned to the source queue.
var errCameBack = errors.New("replay: the message came back after this run had sent it; a run with another ID sends it again")

// RunQueue sends the messages of a parking queue or a dead-letter queue to another queue,
// with their bodies, groups and attributes. It deletes each message after SQS has
// acknowledged its copy.
//
// Each group is sent in the order of the source. A group stops at its first unsent message;
// this message and the later ones stay in the source. SQS's own redrive, in contrast,
// replaces deduplication IDs (sqstest/FACTS.md, F-113) and never stops a group.
//
// RunQueue makes no plan, because SQS shows at most ten messages of a group until they are
// deleted. Instead, [QueueConfig].DryRun shows the first message of each group.
//
// RunQueue returns when the source was idle for QueueConfig.Idle, or when ctx ends. Another
// call with the same ID and store continues, and deletes messages already sent. If a send
// got no answer, it is repeated while SQS certainly suppresses a duplicate.
func RunQueue(ctx context.Context, c QueueConfig) (QueueReport, error) {
	if err := c.check(); err != nil {
		return QueueReport{}, err
	}
	r := &queueRun{QueueConfig: c, report: QueueReport{ID: c.ID}}
	var err error
	if r.meters, err = newMeters(c.MeterProvider); err != nil {
		return QueueReport{}, err
	}
	receiver, err := consumer.New(c.Client, consumer.Config[string]{
		QueueURL: c.QueueURL, Groups: cmp.Or(c.InFlight, 64), Visibility: 30 * time.Second, Handle: r.handle,
		Timeout: 11 * time.Hour, MaxHold: 11 * time.Hour, // the producer decides how long it tries
		Decode: func(body string) (sqsfifo.Envelope[string], error) {
			return sqsfifo.Envelope[string]{Payload: body}, nil
		},
		Failure:   consumer.Failure{Action: consumer.ActionBlock, Attempts: 1},
		Telemetry: consumer.Telemetry{Logger: c.Logger, MeterProvider: c.MeterProvider},
	})
	if err != nil {
		return QueueReport{}, fmt.Errorf("replay: %w", err)
	}
	if _, err := receiver.Preflight(ctx); err != nil {
		return QueueReport{}, fmt.Errorf("replay: %w", err)
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	idle := make(chan error, 1)
	go func() {
		defer cancel()
		err := receiver.WaitIdle(running, cmp.Or(c.Idle, 45*time.Second))
		if running.Err() != nil {
			err = nil // the run was interrupted or has ended
		}
		idle <- err
	}()
	err = errors.Join(receiver.Run(running), <-idle)
	stats := receiver.Stats()
	r.report.Received, r.report.Deleted = int(stats.Received), int(stats.Deleted)
	r.report.Remaining = r.report.Received - r.report.Sent - r.report.Suppressed - len(r.report.Stopped)
	after, afterErr := receiver.Preflight(context.WithoutCancel(ctx))
	r.report.Left = after.Visible + after.InFlight + after.Delayed
	return r.report, errors.Join(context.Cause(ctx), err, afterErr)
}

func (c *QueueConfig) check() error {
	wrong := func(field, rule string) error {
		return fmt.Errorf("replay: %w", &sqsfifo.InvalidError{Field: "QueueConfig." + field, Rule: rule})
	}
	switch {
	case c.Sender == nil && !c.DryRun:
		return wrong("Sender", "nil; pass an *sqsfifo.Producer")
	case c.ID == "" || len(c.ID) > 128:
		return wrong("ID", fmt.Sprintf("has %d bytes, want 1 to 128", len(c.ID)))
	case c.InFlight < 0:
		return wrong("InFlight", "is negative")
	}
	if c.Wait == 0 {
		c.Wait = Interval + Margin
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// queueRun is one call of RunQueue.
type queueRun struct {
	QueueConfig
	meters meters

	mu     sync.Mutex // guards report while the consumer runs
	report QueueReport
}

// handle sends one message. The consumer deletes it after a nil error.
func (r *queueRun) handle(ctx context.Context, m consumer.Message[string]) error {
	result := QueueResult{Group: m.Group, SourceID: m.MessageID}
	if a := m.Attributes[consumer.AttributeReason]; a.StringValue != nil {
		result.Parked = *a.StringValue
	}
	msg, err := messageOf(m.Body, m.Group)
	if err != nil {
		return r.refuse(result, err)
	}
	result.DedupeKey, result.EventID = msg.DedupeKey, msg.EventID
	if a := m.Attributes[sqsfifo.ReplayAttribute]; a.StringValue != nil && *a.StringValue == r.ID {
		return r.refuse(result, errCameBack)
	}
	if r.DryRun {
		if r.Progress != nil {
			r.Progress(result)
		}
		return consumer.Permanent(errors.New("replay: dry run"))
	}
	if wait := time.Until(m.SentAt.Add(r.Wait)); r.Wait > 0 && wait > 0 {
		return consumer.Defer(fmt.Errorf("replay: SQS may suppress the message for another %v", wait.Round(time.Second)), wait)
	}
	msg.Attributes = map[string]string{}
	for name, a := range m.Attributes {
		switch name {
		case consumer.AttributeReason, consumer.AttributeKey, consumer.AttributeFrom, consumer.AttributeAttempts, sqsfifo.ReplayAttribute:
			continue
		}
		if a.StringValue == nil {
			return r.refuse(result, fmt.Errorf("replay: the attribute %q is binary; the producer sends texts", name))
		}
		msg.Attributes[name] = *a.StringValue
	}
	receipt, err := sendAndWait(ctx, r.Sender, msg, r.ID)
	if err != nil && ctx.Err() != nil {
		return err // the run is ending; the message becomes visible again without an outcome
	}
	return r.end(result, receipt, err)
}

func (r *queueRun) end(result QueueResult, receipt sqsfifo.Receipt, err error) error {
	result.Outcome, result.MessageID, result.SequenceNumber = outcomeOf(receipt, err), receipt.MessageID, receipt.SequenceNumber
	return r.note(result, err)
}

// refuse records OutcomeFailed for a message that this run does not send.
func (r *queueRun) refuse(result QueueResult, err error) error {
	result.Outcome = OutcomeFailed
	return r.note(result, err)
}

func (r *queueRun) note(result QueueResult, err error) error {
	if err != nil {
		result.Reason = shorten(err.Error())
	}
	r.meters.add(result.Outcome)
	r.mu.Lock()
	switch result.Outcome {
	case OutcomeSent:
		r.report.Sent++
	case OutcomeSuppressed:
		r.report.Suppressed++
	default:
		known := func(s QueueResult) bool { return s.SourceID == result.SourceID } // SQS may deliver a stopped message again; list it once
		if !slices.ContainsFunc(r.report.Stopped, known) {
			r.report.Stopped = append(r.report.Stopped, result)
		}
	}
	r.mu.Unlock()
	if r.Progress != nil {
		r.Progress(result)
	}
	if err == nil {
		return nil
	}
	r.Logger.Warn("replay: a message group stops", "run", r.ID, "group", result.Group, "message_id", result.SourceID, "outcome", string(result.Outcome), "reason", result.Reason)
	return consumer.Permanent(err)
}
