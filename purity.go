package sqsfifo

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/jsondiff"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// purityPeriod: a producer builds its first event twice, and every purityPeriod-th event
// after it.
const purityPeriod = 10_000

// differences returns a finding for each part in which two messages of one event differ.
// The findings contain no values.
func (m *Message) differences(again *Message) (fs []lint.Finding) {
	add := func(rule, field, pointer string, was, is any) {
		a, b := kindOf(was), kindOf(is)
		if a == b {
			b = "another one"
		}
		fs = append(fs, finding(rule, field, pointer, fmt.Sprintf("this event was built twice and had %s here, then %s: a clock, a random number, a counter, "+
			"an address or the order of a map is in Identify, Attributes or MarshalJSON, and a retry would be another message", a, b)))
	}
	if m.Group != again.Group {
		add(ruleRandomGroup, "Identity.Group", "", m.Group, again.Group)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
		if was, is := m.Attributes[name], again.Attributes[name]; was != is && !lint.NeverIdentifies(name) {
			add(ruleAttributeOnly, fmt.Sprintf("MessageAttributes[%q]", name), "", was, is)
		}
	}
	if m.Body == again.Body {
		return fs
	}
	var was, is map[string]any
	// Both bodies are JSON objects, because this package has encoded them.
	_, _ = json.Unmarshal([]byte(m.Body), &was), json.Unmarshal([]byte(again.Body), &is)
	for _, member := range []struct{ name, rule, field string }{
		{"dedupe_key", ruleRandomKey, "Identity.DedupeKey"},
		{"event_time", ruleVolatileBody, "Identity.Time"},
		{"payload", ruleVolatileBody, "MessageBody"},
		{"event_id", ruleVolatileBody, "Identity.EventID"}, // last, because it may follow from the others
	} {
		pointer, a, b := jsondiff.First("/"+member.name, was[member.name], is[member.name])
		if pointer != "" && (member.name != "event_id" || len(fs) == 0) {
			add(member.rule, member.field, pointer, a, b)
		}
	}
	return fs
}

// kindOf describes a JSON value without showing it.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return "a time"
		}
		if uuid.Validate(v) == nil {
			return "a UUID"
		}
		return fmt.Sprintf("a text of %d bytes", len(v))
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case map[string]any:
		return "an object"
	case bool:
		return "a boolean"
	default:
		return "a number"
	}
}
