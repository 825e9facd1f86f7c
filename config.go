package sqsfifo

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Config describes a producer of events of type T. QueueURL, Source and Identify
// are required; the zero value of each other field is the usual choice.
//
// QueueURL, Deduplication, Delivery, Store and Telemetry describe the queue. A producer
// that shares a [Queue] with others must leave them empty.
type Config[T any] struct {
	// QueueURL is the URL of a FIFO queue; it ends in ".fifo". Spans, metrics and
	// errors name it: it must not have user information.
	QueueURL string

	// Source is the event_source of all events: kfm.<domain>.<pipeline>, or with
	// another organization in place of kfm.
	Source string

	// Organization is the first label of Source. Empty means "kfm", the Kansas
	// Frontier Matrix, whose contract this is. A team elsewhere sets its own name
	// here, in [Decoder] and in the compliance suite.
	Organization string

	// Identify says what an event is. It must be pure and is called from
	// several goroutines at once.
	Identify func(T) (Identity, error)

	// Attributes returns routing hints, sent as message attributes of type
	// String. SQS ignores them when it deduplicates: what distinguishes two events
	// belongs in the payload or the dedupe key, and is refused here (lint rule
	// SF001). Like Identify it must be pure. Nil means none.
	Attributes func(T) map[string]string

	// Deduplication is ContentBased unless the queue cannot do that.
	Deduplication Deduplication

	// Delivery says how events share requests, how long they are retried, what a
	// failure does to its message group and what the producer remembers.
	Delivery Delivery

	// Store remembers events for longer than five minutes and across restarts, in a
	// database for example. The zero value remembers them in this process alone.
	Store StoreConfig

	// Enforcement is Enforce unless events that break a rule are to be sent.
	Enforcement Enforcement

	// Telemetry configures OpenTelemetry; nil providers default to the global ones.
	Telemetry Telemetry
}

// QueueConfig describes a [Queue]. Only URL is required. The fields are those of
// [Config].
type QueueConfig struct {
	URL           string
	Deduplication Deduplication
	Delivery      Delivery
	Store         StoreConfig
	Telemetry     Telemetry
}

func (c *Config[T]) queue() QueueConfig {
	return QueueConfig{URL: c.QueueURL, Deduplication: c.Deduplication, Delivery: c.Delivery, Store: c.Store, Telemetry: c.Telemetry}
}

// Identity is what an event is, apart from its payload. It has to be a function
// of the event alone: whatever is read from a clock, a random source or a
// counter at the time of sending makes each retry a new event.
type Identity struct {
	// DedupeKey distinguishes the event from every other one; [JoinKey] makes one
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

	// Warn sends it anyway if SQS would accept it, counts its findings as
	// sqs_fifo.producer.violations with the action warn and returns them in
	// Receipt.Findings. Events may be lost or delivered twice, as the findings say.
	// Use it while migrating.
	Warn
)

// refusedBySQS are the rules on what SQS itself does not accept, so that a warning
// is not enough.
var refusedBySQS = []string{"SF009", "SF010", "SF011", "SF050", "SF051", "SF052", "SF053"}

// sort separates the findings for which a message is refused from those that are
// only reported.
func (e Enforcement) sort(findings []lint.Finding) (refused, reported []lint.Finding) {
	refused = errorsAmong(findings)
	if e == Enforce || slices.ContainsFunc(refused, func(f lint.Finding) bool { return slices.Contains(refusedBySQS, f.Rule) }) {
		return refused, nil
	}
	return nil, refused
}

// ruleset is how a producer checks its messages.
type ruleset struct {
	enforcement  Enforcement
	organization string
	showKeys     bool
}

// Telemetry are the OpenTelemetry providers of a producer, of which a nil one
// means the global one, and its provenance sink. The KFM instruments (contract v11.2.3, section 9) are
//
//	sqs_fifo.dedupe.collisions_detected  {collision}  one dedupe key with two messages, or one body with two sets of attributes
//	sqs_fifo.producer.violations         {violation}  findings, by sqs_fifo.rule.id and sqs_fifo.action, reject or warn
//	sqs_fifo.body_hash.length_bytes      By           length of each body handed to SQS
//	sqs_fifo.dedupe_window_hits          {hit}        messages that SQS had already
//
// all with messaging.destination.name; those of the semantic conventions for
// messaging clients are
//
//	messaging.client.sent.messages       {message}    messages that SQS answered or did not, by error.type
//	messaging.client.operation.duration  s            length of each request, by error.type
//
// Neither keys nor IDs are ever attributes of a metric. Each event has one
// PRODUCER span "create <queue>" from the call to its outcome, and each request
// one CLIENT span "send <queue>" with a link to the spans of its events. The
// context of an event's span travels in the message attributes where there is room
// for it; it never enters the body. No span, metric or error of a span holds a
// payload.
type Telemetry struct {
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	Propagator     propagation.TextMapPropagator

	// Provenance takes one record for each event. Nil means none. What it does
	// not take counts in sqs_fifo.provenance.dropped {record}.
	Provenance ProvenanceSink

	// Logger gets a record of what an operator must know: a paused message group, a
	// dedupe key that comes with another message, an event that was changed on its
	// way, throttles and lost provenance records, the last two once a minute at
	// most. Records name the queue, the message group and the event ID. Its handler
	// may be slow: it runs in a separate goroutine and delays no event; records
	// beyond 1,000 that wait for it are dropped. Nil means no records.
	Logger *slog.Logger

	// ShowDedupeKeys adds the dedupe key to the texts of errors and to log records.
	// Without it they name an event by its ID, and two events that share a key by
	// mistake look the same. Leave it off where keys hold personal data.
	ShowDedupeKeys bool
}

// ConfigError's fields are those of Config; those of QueueConfig have the same
// names, but for URL.
func (c *Config[T]) validate() error {
	var errs []error
	refuse := func(field, rule string) { errs = append(errs, &ConfigError{field, rule}) }
	contract := lint.Contract{Organization: c.Organization}
	if faults := contract.CheckOrganization(); len(faults) > 0 {
		refuse("Organization", faults[0].Message)
	} else if faults := contract.CheckSource(c.Source); len(faults) > 0 {
		refuse("Source", faults[0].Message+wayToSource(c.Source, c.Organization))
	}
	if c.Identify == nil {
		refuse("Identify", "nil; set the function that says what an event is")
	}
	if c.Enforcement > Warn {
		refuse("Enforcement", "unknown value; use Enforce or Warn")
	}
	return errors.Join(errs...)
}

// wayToSource names the setting that a source of another organization needs.
func wayToSource(source, organization string) string {
	first, _, _ := strings.Cut(source, ".")
	if organization != "" || (lint.Contract{Organization: first}).CheckSource(source) != nil {
		return ""
	}
	return fmt.Sprintf("; for events of another organization set Organization to %q", first)
}

// shares refuses the fields that belong to the queue.
func (c *Config[T]) shares() error {
	var errs []error
	q := c.queue()
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"QueueURL", q.URL != ""},
		{"Deduplication", q.Deduplication != 0},
		{"Delivery", q.Delivery != Delivery{}},
		{"Store", !q.Store.isZero()},
		{"Telemetry", q.Telemetry.MeterProvider != nil || q.Telemetry.TracerProvider != nil || q.Telemetry.Propagator != nil ||
			q.Telemetry.Provenance != nil || q.Telemetry.Logger != nil || q.Telemetry.ShowDedupeKeys},
	} {
		if f.set {
			errs = append(errs, &ConfigError{f.name, "set, but it belongs to the queue that the producer shares; set it in QueueConfig"})
		}
	}
	return errors.Join(errs...)
}

func (c *QueueConfig) validate() error {
	var errs []error
	refuse := func(field, rule string) { errs = append(errs, &ConfigError{field, rule}) }
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		refuse("QueueURL", "empty; set the URL of the FIFO queue")
	case err != nil: // whose text quotes all of it
		refuse("QueueURL", "not a URL; GetQueueUrl returns that of a queue")
	case u.User != nil:
		refuse("QueueURL", "has user information, which would appear in spans and errors; give the credentials to the client")
	case u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		refuse("QueueURL", fmt.Sprintf("%q is a queue name or ARN, not a URL; GetQueueUrl returns that of a queue", c.URL))
	case strings.HasSuffix(c.URL, ".fifo"):
	case strings.HasSuffix(strings.TrimRight(c.URL, "/"), ".fifo"):
		refuse("QueueURL", fmt.Sprintf("%q ends in a slash; remove it", c.URL))
	case strings.HasSuffix(strings.ToLower(c.URL), ".fifo"):
		refuse("QueueURL", fmt.Sprintf("%q does not end in .fifo; write the suffix in lower case, as SQS does", c.URL))
	default:
		refuse("QueueURL", fmt.Sprintf("%q does not end in .fifo; a standard queue neither orders nor deduplicates", c.URL))
	}
	if c.Deduplication > ExplicitBodyHash {
		refuse("Deduplication", "unknown value; use ContentBased or ExplicitBodyHash")
	}
	c.Delivery.validate(refuse)
	c.Store.validate(c.Delivery, refuse)
	return errors.Join(errs...)
}
