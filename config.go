package sqsfifo

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Identity is what an event is, apart from its payload. It has to be a function
// of the event alone: whatever is read from a clock, a random source or a
// counter at the time of sending makes each retry a new event.
type Identity struct {
	// DedupeKey tells the event apart from every other one; [JoinKey] makes one
	// from several values. It may be left empty when Dataset is set and is then
	// the dataset's idempotency key.
	DedupeKey string

	// Group is the message group ID: 1 to 128 characters of ASCII letters,
	// digits and punctuation (F-018). Events of one group are delivered in the
	// order in which they were sent.
	Group string

	// Time is when the event occurred. Only the instant counts, not the
	// location. It is required: time.Now is when the event is sent, which is
	// another time for each attempt and so another hash.
	Time time.Time

	// EventID is for callers that stored a UUIDv7 with the event. Zero means
	// [DeriveEventID].
	EventID uuid.UUID

	// Dataset is set where the event announces a version of a dataset.
	Dataset *Dataset
}

// Deduplication says who computes the deduplication ID. It is the hash of the
// body either way (F-011, F-014).
type Deduplication uint8

const (
	// ContentBased leaves it to the queue, which must have
	// ContentBasedDeduplication on.
	ContentBased Deduplication = iota

	// ExplicitBodyHash sends it with each message. It is for queues on which
	// ContentBasedDeduplication is off.
	ExplicitBodyHash
)

// Enforcement says what becomes of an event that breaks a rule of package lint.
type Enforcement uint8

const (
	// Enforce refuses it, with a [*ViolationError] or [*ConflictError].
	Enforce Enforcement = iota

	// Warn sends it nevertheless, if SQS takes it and it can be built at all,
	// counts its findings as sqs_fifo.producer.violations with the action warn and
	// tells them in Receipt.Findings. Events may be lost or doubled as the findings
	// say. It is for the time in which a team moves its events over.
	Warn
)

// refusedBySQS are the rules on what SQS itself does not take, so that nobody can
// merely warn.
var refusedBySQS = []string{"SF009", "SF010", "SF011", "SF050", "SF051", "SF052", "SF053"}

// sort tells the findings for which a message is refused from those that are
// only told.
func (e Enforcement) sort(findings []lint.Finding) (refused, told []lint.Finding) {
	refused = errorsAmong(findings)
	if e == Enforce || slices.ContainsFunc(refused, func(f lint.Finding) bool { return slices.Contains(refusedBySQS, f.Rule) }) {
		return refused, nil
	}
	return nil, refused
}

// Config describes a producer of events of type T. QueueURL, Source and Identify
// are required, the zero value of the other fields is the usual choice.
type Config[T any] struct {
	// QueueURL is the URL of a FIFO queue; it ends in ".fifo". Spans, metrics and
	// errors name it: it must have no user information.
	QueueURL string

	// Source is the event_source of all events: kfm.<domain>.<pipeline>.
	Source string

	// Identify says what an event is. It must be pure and is called from
	// several goroutines at once.
	Identify func(T) (Identity, error)

	// Attributes returns routing hints, sent as message attributes of type
	// String. SQS ignores them when it deduplicates: what tells two events apart
	// belongs into the payload or the dedupe key, and is refused here (lint rule
	// SF001). Like Identify it must be pure. Nil means none.
	Attributes func(T) map[string]string

	// Deduplication is ContentBased unless the queue cannot do that.
	Deduplication Deduplication

	// Delivery says how events share requests, how long they are retried and
	// what a failure does to its group.
	Delivery Delivery

	// Enforcement is Enforce unless events that break a rule are to be sent.
	Enforcement Enforcement

	// Telemetry holds the OpenTelemetry providers; nil ones are the global ones.
	Telemetry Telemetry
}

// ConfigError names a field of [Config] that cannot be used. [NewProducer]
// returns all of them, joined.
type ConfigError struct {
	Field string
	Rule  string
}

// Error returns the field and the rule.
func (e *ConfigError) Error() string { return fmt.Sprintf("sqsfifo: Config.%s: %s", e.Field, e.Rule) }

func (c Config[T]) validate() error {
	var errs []error
	refuse := func(field, rule string) { errs = append(errs, &ConfigError{field, rule}) }
	u, err := url.Parse(c.QueueURL)
	switch {
	case c.QueueURL == "":
		refuse("QueueURL", "empty; set the URL of the FIFO queue")
	case err != nil: // whose text quotes all of it
		refuse("QueueURL", "not a URL; GetQueueUrl returns that of a queue")
	case u.User != nil:
		refuse("QueueURL", "has user information, which would stand in spans and errors; give the credentials to the client")
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		refuse("QueueURL", fmt.Sprintf("%q is a name or an ARN and no URL; GetQueueUrl returns that of a queue", c.QueueURL))
	case !strings.HasSuffix(c.QueueURL, ".fifo"):
		refuse("QueueURL", fmt.Sprintf("%q does not end in .fifo; a standard queue neither orders nor deduplicates", c.QueueURL))
	}
	for _, f := range lint.CheckSource(c.Source) {
		refuse("Source", f.Message)
	}
	if c.Identify == nil {
		refuse("Identify", "nil; set the function that says what an event is")
	}
	if c.Deduplication > ExplicitBodyHash {
		refuse("Deduplication", "unknown value; use ContentBased or ExplicitBodyHash")
	}
	if c.Enforcement > Warn {
		refuse("Enforcement", "unknown value; use Enforce or Warn")
	}
	c.Delivery.validate(refuse)
	return errors.Join(errs...)
}
