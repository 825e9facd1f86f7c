package attrname_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attrname"
)

// These regular expressions express the rules of Event and Attempt. The package itself
// uses no expressions: they are too slow for each attribute of each send.
var (
	event   = regexp.MustCompile(`(?i)(event|message|msg|dedup(e|lication)?|unique(ness)?|idempotency|txn|transaction|job|command)[_.-]?(id|key|uuid|name)$|uuid$`)
	attempt = regexp.MustCompile(`(?i)(correlation|causation|request|trace|span|session|attempt|invocation)[_.-]?(id|key|uuid|name)$|^(x[_.-]?)?(attempts?|retr(y|ies)|(attempt|retry)[_.-]?count|sent[_.-]?at)$`)
)

func TestNamesAreTheExpressions(t *testing.T) {
	prefixes := []string{"", "x", "original_", "Kfm", "_watermill_"}
	stems := []string{
		"event", "Message", "msg", "DEDUP", "dedupe", "Deduplication", "unique", "Uniqueness", "idempotency", "Correlation", "request", "causation",
		"txn", "transaction", "job", "command", "aggregate", "order", "test", "shard", "group", "trace", "session", "uniquely", "",
	}
	separators := []string{"", "_", "-", ".", "__", " ", "/"}
	nouns := []string{"id", "Id", "ID", "key", "Key", "uuid", "UUID", "name", "ids", "token", "hash", ""}
	events, attempts := 0, 0
	for _, prefix := range prefixes {
		for _, stem := range stems {
			for _, separator := range separators {
				for _, noun := range nouns {
					name := prefix + stem + separator + noun
					isAttempt := attempt.MatchString(name)
					isEvent := event.MatchString(name) && !isAttempt
					assert.Equal(t, isEvent, attrname.Event(name), "%q", name)
					assert.Equal(t, isAttempt, attrname.Attempt(name), "%q", name)
					if isEvent {
						events++
					}
					if isAttempt {
						attempts++
					}
				}
			}
		}
	}
	assert.Greater(t, events, 1000, "the lists have to make names of both kinds")
	assert.Greater(t, attempts, 300)
}

func TestNames(t *testing.T) {
	for _, name := range []string{"test-key", "aggregate_id", "id", "key", "name", "tag", "MessageGroupId", "user_id", "traceparent", "event_\u212aey"} {
		assert.False(t, attrname.Event(name), name)
		assert.False(t, attrname.Attempt(name), name)
	}
	for _, name := range []string{"traceparent", "TraceState", "baggage", "b3", "AWSTraceHeader", "Content-Type", "X-Amzn-Request-Id", "schemaVersion", "avroSchemaId", "sqsfifo-replay-run"} {
		assert.True(t, attrname.NeverIdentifies(name), name)
	}
	for _, name := range []string{"event_id", "version_of", "trace", ""} {
		assert.False(t, attrname.NeverIdentifies(name), name)
	}
	for _, name := range []string{"X-Request-Id", "correlationId", "request_uuid", "x-amzn-trace-id", "attempt", "Retry-Count", "x-retry-count", "retryAttempt", "sent_at", "SentAt"} {
		assert.True(t, attrname.Attempt(name), name)
		assert.False(t, attrname.Event(name), name)
	}
}

// The names that well-known senders give to the ID of a delivery, in the spellings of their
// libraries.
func TestDeliveries(t *testing.T) {
	for _, name := range []string{"id", "ID", "ce-id", "ce_id", "ceId", "CloudEvents:id", "cloudEvents_id", "X-GitHub-Delivery", "X-Shopify-Webhook-Id", "webhook-id"} {
		assert.True(t, attrname.Delivery(name), name)
	}
	for _, name := range []string{"order_id", "ids", "ce-type", "ce-source", "X-GitHub-Hook-ID", "sid", "delivery", ""} {
		assert.False(t, attrname.Delivery(name), name)
	}
}
