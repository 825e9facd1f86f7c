// Package attrname classifies message attributes by their names: an attribute identifies
// an event, an attempt, a request, or nothing. The linter and the fake queue use the same
// lists here, because the fake queue must not import the linter.
package attrname

import (
	"slices"
	"strings"
)

// NeverIdentifies reports whether an attribute of this name never identifies an event. Such
// attributes are trace context, content types, versions, schema IDs, the ID of a run of the
// replay command (sqsfifo-replay-run), and names that a retry may change (see [Retry]). Case
// does not matter.
func NeverIdentifies(name string) bool {
	name = lower(name)
	switch name {
	case "traceparent", "tracestate", "baggage", "b3", "awstraceheader", "content-type", "sqsfifo-replay-run":
		return true
	}
	return strings.HasPrefix(name, "x-amzn-") || strings.HasSuffix(name, "version") || strings.HasSuffix(name, "schemaid") || Retry(name)
}

// The name of an identifying attribute ends in a stem such as "event" and a noun such as
// "id": eventId, dedupe_key. Without such a stem, it may be a routing hint: aggregate_id.
var (
	eventStems = []string{
		"event", "message", "msg", "dedup", "dedupe", "deduplication", "unique", "uniqueness", "idempotency", "txn", "transaction", "job", "command",
	}
	attemptStems = []string{"correlation", "causation", "session"}
	retryStems   = []string{"request", "trace", "span", "attempt", "invocation"}
	nouns        = []string{"id", "key", "uuid", "name"}

	// deliveryNames are names of well-known senders for the ID of an event or its delivery,
	// without separators: an outbox (Debezium), CloudEvents, GitHub, Shopify, Standard
	// Webhooks.
	deliveryNames = []string{"id", "ceid", "cloudeventsid", "xgithubdelivery", "xshopifywebhookid", "webhookid"}

	// retryNames are names, without separators, for the number or the time of an attempt.
	retryNames = []string{
		"attempt", "attempts", "attemptno", "attemptnumber", "attemptcount", "retry", "retries", "retrycount", "retryattempt", "sentat", "senttime", "sendtime", "publishedat", "enqueuedat",
	}
)

// Event reports whether an attribute of this name identifies an event. Case does not
// matter.
//
// Such a name ends in "uuid", or in a stem from eventStems and a noun, for example eventId. For a name that identifies an attempt (see [Attempt]), Event returns false.
func Event(name string) bool {
	name = lower(name)
	if Attempt(name) {
		return false
	}
	return strings.HasSuffix(name, "uuid") || ends(name, eventStems)
}

// Delivery reports whether an attribute has the name that a well-known sender gives to the
// ID of an event or of its delivery, for example ce-id. A member of a body with such a name,
// id above all, may be the ID of an entity.
func Delivery(name string) bool { return slices.Contains(deliveryNames, joined(lower(name))) }

// Attempt reports whether an attribute of this name identifies a request or one attempt to
// send an event, for example request_id, retry_count or sent_at. Two attempts for the same event may have different
// values.
func Attempt(name string) bool {
	name = lower(name)
	return ends(name, attemptStems) || Retry(name)
}

// Retry reports whether an attribute of this name may differ between two attempts of one
// event, and between nothing else: request_id, attempt, sent_at. A correlation_id, which
// [Attempt] accepts, may belong to two events with one body.
func Retry(name string) bool {
	name = lower(name)
	return ends(name, retryStems) || slices.Contains(retryNames, strings.TrimPrefix(joined(name), "x"))
}

// joined returns a name without separators.
func joined(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-.:", r) {
			return -1
		}
		return r
	}, name)
}

func ends(name string, stems []string) bool {
	for _, noun := range nouns {
		stem, ok := strings.CutSuffix(name, noun)
		if !ok {
			continue
		}
		if n := len(stem); n > 0 && strings.IndexByte("_-.", stem[n-1]) >= 0 {
			stem = stem[:n-1]
		}
		if slices.ContainsFunc(stems, func(s string) bool { return strings.HasSuffix(stem, s) }) {
			return true
		}
	}
	return false
}

// lower returns name with A to Z in lower case. Producers in other programming languages
// must get the same result, and languages differ in their Unicode rules for case.
func lower(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, name)
}
