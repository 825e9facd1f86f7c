package sqsfifo

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Config configures a producer of events of type T. QueueURL, Source and Identify are
// required. Every other field has a useful zero value.
//
// QueueURL, Deduplication, Delivery, Store and Telemetry configure the producer's [Queue].
// Leave these five fields empty for [NewProducerOn].
type Config[T any] struct {
	// QueueURL is the URL of a FIFO queue and ends in ".fifo". A URL with a user name or
	// password is refused, because spans, metrics and errors show the URL.
	QueueURL string

	// Source is the event_source of all events: <organization>.<domain>.<pipeline>.
	Source string

	// Organization is the first part of Source. Empty means "kfm", the Kansas Frontier
	// Matrix. Other teams set their own name here, and nowhere else: consumers, the
	// compliance suite and [Producer.SendMessage] accept the events of every organization.
	Organization string

	// Identify returns the identity of an event. It must be a pure function, and safe
	// for concurrent use.
	//
	// The producer builds its first event, and one in 10,000 later events, twice. If the
	// two messages differ, the event ends with a [*ViolationError] that names the member:
	// a clock, a random number or a counter is in Identify, Attributes or the encoding of
	// the event. A clock that is truncated to seconds or days differs only sometimes, and
	// the address of a value that the event points to does not differ within a process.
	Identify func(T) (Identity, error)

	// Attributes returns routing hints, sent as message attributes of type String. It must
	// be a pure function, and safe for concurrent use. Nil sends no attributes.
	//
	// SQS ignores attributes when it deduplicates. Put the identity of an event into the
	// payload or the dedupe key: lint rule SF001 refuses identity in attributes.
	Attributes func(T) map[string]string

	// Catalog, if not nil, is the data catalogue: a message with a dataset that it does not
	// know breaks rule SF047 (unknown-dataset). The dataset is that of Identity.Dataset, and
	// the payload's member dataset_id. Package catalog reads a static STAC catalogue.
	Catalog Catalog

	// Deduplication is DeduplicationContentBased by default. Use DeduplicationExplicit for a queue without
	// content-based deduplication.
	Deduplication Deduplication

	// Delivery configures order, requests, retries, pauses, the buffer and the memory.
	Delivery Delivery

	// Store remembers events for longer than five minutes and across restarts, for
	// example in a database. The zero value remembers events in this process only.
	Store StoreConfig

	// Enforcement is EnforcementRefuse by default. EnforcementWarn sends events despite broken rules.
	Enforcement

	// Telemetry configures OpenTelemetry, logging and provenance records.
	Telemetry Telemetry
}

// QueueConfig configures a [Queue]. Only URL is required. Each field has the meaning of
// the field of the same name in [Config]; URL is Config.QueueURL.
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

// Identity identifies an event. Compute it from the event alone: a clock, a random
// source or a counter would make each retry a new event.
type Identity struct {
	// DedupeKey distinguishes the event from all other events. [JoinKey] joins several
	// values to one key. With Dataset set, an empty DedupeKey means the dataset's
	// idempotency key.
	DedupeKey string

	// Group is the message group ID: 1 to 128 ASCII letters, digits and punctuation
	// characters. SQS delivers the events of a group in the order of sending.
	Group string

	// Time is the required instant of the event, in any location. Do not use time.Now:
	// each attempt would get another time and hash.
	Time time.Time

	// EventID is a UUIDv7 that the caller stored with the event. Zero means the result
	// of [DeriveEventID].
	EventID uuid.UUID

	// Dataset is the dataset version that the event announces, or nil.
	Dataset *Dataset
}

// Deduplication selects who computes the deduplication ID: SQS or the producer. The ID is
// the hash of the body in both cases.
type Deduplication uint8

const (
	// DeduplicationContentBased lets SQS compute the ID. The queue must have
	// ContentBasedDeduplication on.
	DeduplicationContentBased Deduplication = iota

	// DeduplicationExplicit sends the hash of the body as the deduplication ID of each message.
	// Use it for queues with ContentBasedDeduplication off.
	DeduplicationExplicit
)

// Enforcement decides whether an event is sent although package lint finds an error in
// its message.
type Enforcement uint8

const (
	// EnforcementRefuse refuses the event with a [*ViolationError] or [*ConflictError].
	EnforcementRefuse Enforcement = iota

	// EnforcementWarn sends an event that breaks a rule, if SQS would accept the event. The event may
	// be lost or delivered twice, so use EnforcementWarn only during a migration.
	//
	// Receipt.Findings has the findings. The counter sqs_fifo.producer.violations counts
	// them with the action warn.
	EnforcementWarn
)

// divide returns the findings of severity Error in the result `refused` (the event is
// not sent) or in the result `reported` (the event is sent, and its receipt has the
// findings).
//
// With EnforcementRefuse, the findings are in `refused`. With EnforcementWarn, they are in
// `reported`, unless SQS
// itself would refuse the message.
func (e Enforcement) divide(findings []lint.Finding) (refused, reported []lint.Finding) {
	refused = errorsAmong(findings)
	if e == EnforcementRefuse || slices.ContainsFunc(refused, func(f lint.Finding) bool { return lint.RefusedBySQS(f.Rule) }) {
		return refused, nil
	}
	return nil, refused
}

// ruleset configures the checks of a producer's messages.
type ruleset struct {
	enforcement Enforcement
	catalog     Catalog // nil without one
	showKeys    bool
	source      *observe.Source
}

// stable returns the findings about a message that was built twice, and differently.
func (r *ruleset) stable(msg *Message) (reported []lint.Finding, err error) {
	refused, reported := r.enforcement.divide(msg.unstable)
	if len(refused) > 0 {
		return nil, &ViolationError{Findings: refused, plain: true}
	}
	return reported, nil
}

// isCertainlyValid is Message.isCertainlyValid, and knows the rules of the producer.
func (r *ruleset) isCertainlyValid(msg *Message, maxSize int, payload string) bool {
	return r.catalog == nil && msg.isCertainlyValid(maxSize, payload)
}

func (r *ruleset) lintMessage(msg *Message) lint.Message {
	m := lint.Message{Body: msg.Body, GroupID: msg.Group, MaxSize: maxMessageBytes}
	if r.catalog != nil {
		m.KnowsDataset = r.catalog.Knows
		if msg.Dataset != nil {
			m.DatasetID = msg.Dataset.ID
		}
	}
	if len(msg.Attributes) > 0 {
		m.Attributes = make(map[string]lint.Attribute, len(msg.Attributes))
		for name, value := range msg.Attributes {
			m.Attributes[name] = lint.Attribute{DataType: stringType, StringValue: value}
		}
	}
	return m
}

// Telemetry configures OpenTelemetry, the log and the provenance records. A nil provider
// means OpenTelemetry's global provider.
//
// The KFM instruments (contract v11.2.3, section 9) have the attribute
// messaging.destination.name:
//
//	sqs_fifo.dedupe.collisions_detected  {collision}  one dedupe key with two messages, or one body with two sets of attributes
//	sqs_fifo.producer.violations         {violation}  findings, by sqs_fifo.rule.id and sqs_fifo.action, reject or warn
//	sqs_fifo.body_hash.length_bytes      By           length of each body sent to SQS
//	sqs_fifo.dedupe_window_hits          {hit}        messages that SQS already had
//
// The instruments of the semantic conventions for messaging clients are:
//
//	messaging.client.sent.messages       {message}    messages sent, by error.type
//	messaging.client.operation.duration  s            length of each request, by error.type
//
// No metric has a key or an ID as an attribute.
//
// Each event has one PRODUCER span "create <queue>", from the call to the event's outcome.
// Each request has one CLIENT span "send <queue>" with links to the spans of its events. No
// span, metric or span error contains a payload.
//
// The trace context of an event travels in message attributes, never in the body. It is
// omitted if SQS's limits for the number of attributes and the size of a message leave no
// room.
type Telemetry struct {
	MeterProvider  metric.MeterProvider
	TracerProvider trace.TracerProvider
	Propagator     propagation.TextMapPropagator

	// Provenance receives one record for each event. Nil means no records. The counter
	// sqs_fifo.provenance.dropped {record} counts lost records.
	Provenance ProvenanceSink

	// Logger receives records for an operator. Nil means no records. Each record names
	// the queue. A record about an event also names the message group and the event ID.
	// The records report:
	//
	//   - a paused message group
	//   - a dedupe key used for two different messages
	//   - an event for which Config.Store has recorded a different message
	//   - an event altered in transit
	//   - at most once a minute: throttles, lost provenance records, and stored events
	//     without a record in Config.Store
	//   - an outage of SQS or of Config.Store
	//
	// The first failure of an outage is reported immediately. Further records report the
	// number of failures after one minute, after eleven minutes and then hourly. The last
	// record reports the end. In the first minute after the end of an outage, new failures
	// are only counted: the next record about failures includes them.
	//
	// The handler runs on a separate goroutine, so a slow handler delays no event. At
	// most 1,000 records wait for the handler, and further records are dropped.
	Logger *slog.Logger

	// ShowDedupeKeys adds dedupe keys to error texts and log records. By default these
	// texts contain only event IDs. If two different events share a key by mistake, their
	// IDs may be equal too, and only the key helps to find them.
	//
	// Leave ShowDedupeKeys off if keys contain personal data.
	ShowDedupeKeys bool

	// ShowErrorTexts adds the error texts of the client and of Config.Store to this
	// package's errors and log records. Such a text may quote a payload, a key or an
	// attribute.
	//
	// By default, this package shows only safe parts of such an error:
	//
	//   - a code of SQS or an HTTP status
	//   - a network or TLS error
	//   - a database's standard text for its error code, such as "database is locked"
	//   - the type, for any other error
	//
	// errors.As and errors.Is always reach the original error. The error of a request for
	// the queue's attributes is always shown in full, because that request carries no
	// event.
	ShowErrorTexts bool

	// NoEventSpans turns off the span of each event. The spans of requests then link to
	// the span in the context of Send, and messages carry the trace context of that span.
	NoEventSpans bool
}

// validate checks the fields of the producer. See QueueConfig.validate for the queue.
func (c *Config[T]) validate() error {
	var errs []error
	refuse := func(field, rule string) { errs = append(errs, invalid("Config."+field, rule)) }
	contract := lint.Contract{Organization: cmp.Or(c.Organization, lint.KFM)}
	if faults := contract.CheckOrganization(); len(faults) > 0 {
		refuse("Organization", faults[0].Message)
	} else if faults := contract.CheckSource(c.Source); len(faults) > 0 {
		refuse("Source", faults[0].Message)
	}
	if c.Identify == nil {
		refuse("Identify", "nil; set the function that says what an event is")
	}
	if t := reflect.TypeFor[T](); neverObject(t) {
		errs = append(errs, invalid("Config", fmt.Sprintf("the event type %s has no members, and a payload is a JSON object; use a struct or a map", t)))
	}
	if c.Enforcement > EnforcementWarn {
		refuse("Enforcement", "unknown value; use EnforcementRefuse or EnforcementWarn")
	}
	return errors.Join(errs...)
}

// neverObject reports whether no value of the type encodes as a JSON object.
func neverObject(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return !slices.Contains([]reflect.Kind{reflect.Struct, reflect.Map, reflect.Interface}, t.Kind()) &&
		!reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]())
}

// checkShared checks the configuration of a producer on a shared [Queue]. It returns an
// error for each field of c that is set although only QueueConfig may set it.
func (c *Config[T]) checkShared() error {
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
		{"Telemetry", !reflect.ValueOf(q.Telemetry).IsZero()},
	} {
		if f.set {
			errs = append(errs, invalid("Config."+f.name, "set, but it belongs to the queue that the producer shares; set it in QueueConfig"))
		}
	}
	return errors.Join(errs...)
}

// validate returns an error for each wrong field. The errors have the field names of
// Config, for example QueueURL for URL.
func (c *QueueConfig) validate() error {
	var errs []error
	refuse := func(field, rule string) { errs = append(errs, invalid("Config."+field, rule)) }
	u, err := url.Parse(c.URL)
	switch {
	case c.URL == "":
		refuse("QueueURL", "empty; set the URL of the FIFO queue")
	case err != nil: // err is not shown: its text quotes the URL with any password
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
	if c.Deduplication > DeduplicationExplicit {
		refuse("Deduplication", "unknown value; use DeduplicationContentBased or DeduplicationExplicit")
	}
	c.Delivery.validate(refuse)
	c.Store.validate(c.Delivery, refuse)
	return errors.Join(errs...)
}
