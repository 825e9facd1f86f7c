package sqsfifo

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/trace"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dispatch"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/observe"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/outage"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// submission is a submitted event until the report of its outcome. The event's worker owns
// the fields of the request. The dispatcher's lock guards the fields of the outcome. The
// other fields do not change after submission.
type submission struct {
	ctx  context.Context // the caller's context, with the event's span
	span trace.Span
	msg  *Message // nil if Identify failed or the caller passed nil

	// receiver gets the outcome. It is nil for a nil callback. With SendBatch, index is
	// the event's position.
	receiver reporter
	index    int

	rules    *ruleset // the rules of the producer that submitted the event
	prebuilt bool     // the caller passed a message built earlier, not an event
	replay   bool     // this producer sent the event before, or the message has ReplayAttribute
	seen     bool     // the store already knew the event

	submitted memory.Instant // time of the submission

	// started is the start of the call of Send, SendAsync or SendBatch. It is zero if
	// Delivery.StartFor does not limit the event's time.
	started time.Time

	known            memory.Record
	digest           digest.Sum
	ownAttributes    map[string]types.MessageAttributeValue // the message's attributes
	tracedAttributes map[string]types.MessageAttributeValue // ownAttributes and the trace context

	// Fields of the request.
	admitted memory.Instant
	ended    memory.Instant // end of the last attempt
	untraced bool           // sent without trace context
	// waitsFor is the service that failed in the last attempt, or nil. A worker may set
	// it while the outcome of a withdrawn event is reported.
	waitsFor   atomic.Pointer[outage.Service]
	sentBefore bool // this producer sent the event in an earlier submission
	duplicate  bool
	unclaimed  bool    // SQS stored the event, which had no claim in the store (see FailOpen)
	extras     *extras // seldom used fields; nil until one is set
}

// reporter takes the outcome of a submission. The argument i is submission.index.
type reporter interface {
	report(i int, r Receipt, err error)
}

// extras has the fields used by few submissions.
type extras struct {
	hash     string         // deduplication ID, if sent explicitly
	findings []lint.Finding // findings of an event sent anyway
	refusal  error          // reason not to send the event
}

// needExtras returns s.extras. If s.extras is nil, needExtras first sets it to an empty
// struct.
func (s *submission) needExtras() *extras {
	if s.extras == nil {
		s.extras = &extras{}
	}
	return s.extras
}

func (s *submission) refuse(err error) {
	if err != nil || s.extras != nil {
		s.needExtras().refusal = err
	}
}

// refusal returns the reason to refuse the event for its content, or nil.
func (s *submission) refusal() error {
	if s.extras == nil {
		return nil
	}
	return s.extras.refusal
}

type item = dispatch.Item[submission]

// usePrebuilt sets the submission's message to a copy of a message from an earlier Build.
func (s *submission) usePrebuilt(msg *Message) error {
	s.prebuilt = true
	if msg == nil {
		return &ViolationError{plain: true, Findings: []lint.Finding{finding(ruleInvalidJSON, "Message", "", "nil; pass the message that Build returned")}}
	}
	// The caller may change msg after the call has returned. A request may still read the
	// message at that time, so make a copy.
	s.msg = msg.clone()
	return nil
}

func (s *submission) notStored(err error) *NotStoredError {
	return &NotStoredError{EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, showKey: s.rules.showKeys, Err: err}
}

// describe returns the event's attributes for its span.
func (s *submission) describe() observe.EventAttributes {
	e := observe.EventAttributes{EventID: s.msg.EventID.String()}
	if d := s.msg.Dataset; d != nil {
		e.DatasetID, e.Version, e.IdempotencyKey = d.recorded()
		e.ArtifactChecksum, e.CARELabel = d.ArtifactChecksum, d.CARELabel
	}
	return e
}

// logged returns the attributes that identify the event.
func (s *submission) logged() []slog.Attr {
	attributes := []slog.Attr{slog.String("message_group", s.msg.Group), slog.String("event_id", s.msg.EventID.String())}
	if s.rules.showKeys {
		attributes = append(attributes, slog.String("dedupe_key", s.msg.DedupeKey))
	}
	return attributes
}
