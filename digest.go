package sqsfifo

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

// DigestError says that SQS answered with the digest of something else than was
// sent: what it took is not the event. Something on the way to SQS, such as a
// proxy, changes messages. The event is not tried again by itself, because SQS may
// take the next attempt for a duplicate of what it has and answer as if all were
// well.
type DigestError struct {
	EventID   uuid.UUID
	DedupeKey string

	// Attempts is the number of requests made; 0 for a resend before ResendAfter.
	Attempts int

	// Field is "MessageBody" or "MessageAttributes", and Got the MD5 in the answer.
	// They are empty where there was no request.
	Field, Got string

	// ResendAfter is from when on SQS surely takes the event for a new one. Until
	// then this producer answers a resend with a DigestError and sends nothing;
	// another one would be told of success, and the event lost. It is the zero time
	// if the event may be sent again at once: another body has another content-based
	// deduplication ID.
	ResendAfter time.Time
}

// Error names the event, the field and the way out.
func (e *DigestError) Error() string {
	when := "at once"
	if !e.ResendAfter.IsZero() {
		when = "after " + e.ResendAfter.UTC().Format(time.RFC3339) + ", SQS drops it until then"
	}
	if e.Attempts == 0 {
		return fmt.Sprintf("sqsfifo: event %v not sent, it was changed on its way before; resend %s", e.EventID, when)
	}
	return fmt.Sprintf("sqsfifo: event %v was changed on its way, SQS took another %s with the MD5 %q; find what changes it and resend %s",
		e.EventID, e.Field, e.Got, when)
}

// ErrorType returns "digest", the value of the OpenTelemetry attribute error.type.
func (e *DigestError) ErrorType() string { return "digest" }

// checkDigests compares the answer to a message with what was sent. The SDK does
// the same, but for a batch as a whole: one wrong digest turns an answer that
// stored ten messages into an error. Its own check is off for that reason. An
// answer without digests passes, as it does there.
func (s *sender) checkDigests(p *pending, body, attributes *string) error {
	if body != nil && !p.sent.digest.Is(*body) {
		return s.altered(p, "MessageBody", *body)
	}
	if attributes == nil || len(p.attributes) == 0 {
		return nil
	}
	if want := digest.Attributes(p.attributes); *want != *attributes {
		return s.altered(p, "MessageAttributes", *attributes)
	}
	return nil
}

// alteredBefore is the error of a message that SQS would drop for what it took in
// its place at the given time.
func alteredBefore(msg *Message, at time.Time) *DigestError {
	return &DigestError{EventID: msg.EventID, DedupeKey: msg.DedupeKey, ResendAfter: at.Add(window.Interval + clockSlack)}
}

func (s *sender) altered(p *pending, field, got string) *DigestError {
	e := &DigestError{EventID: p.msg.EventID, DedupeKey: p.msg.DedupeKey, Attempts: p.attempts, Field: field, Got: got}
	if s.explicit || field != "MessageBody" { // the deduplication ID is that of the event
		e.ResendAfter = alteredBefore(p.msg, time.Now()).ResendAfter
	}
	return e
}
