// Package attrname knows message attributes by their names: those that identify an
// event, those that identify an attempt or a request, and those that identify
// nothing. The lint's passes and the fake need the same lists, and the fake must not
// import the lint.
package attrname

import (
	"slices"
	"strings"
)

// Benign reports whether an attribute of this name never bears identity: trace
// context, content types, versions, the run of a replay. Case does not matter.
func Benign(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "traceparent", "tracestate", "baggage", "b3", "awstraceheader", "content-type", "sqsfifo-replay-run":
		return true
	}
	return strings.HasPrefix(name, "x-amzn-") || strings.HasSuffix(name, "version") || strings.HasSuffix(name, "schemaid")
}

// An attribute names an identity if its name ends in one of the stems and one of the
// nouns, joined or with one separator between them (eventId, dedupe_key,
// message-uuid). The lists are narrow on purpose: any *_id or *_key would also hit
// aggregate IDs, shard keys and other routing hints, of which attributes are the
// right carrier.
var (
	eventStems = []string{
		"event", "message", "msg", "dedup", "dedupe", "deduplication", "unique", "uniqueness", "idempotency", "txn", "transaction", "job", "command",
	}
	attemptStems = []string{"correlation", "causation", "request", "trace", "span", "session", "attempt", "invocation"}
	nouns        = []string{"id", "key", "uuid", "name"}
)

// Event reports whether an attribute of this name identifies the event: it ends in
// "uuid", or in a stem such as event and a noun such as id. Case does not matter.
func Event(name string) bool {
	name = strings.ToLower(name)
	if ends(name, attemptStems) {
		return false
	}
	return strings.HasSuffix(name, "uuid") || ends(name, eventStems)
}

// Attempt reports whether an attribute of this name identifies the request or the
// attempt that the event is part of, which may be another one for the same event.
func Attempt(name string) bool { return ends(strings.ToLower(name), attemptStems) }

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
