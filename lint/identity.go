package lint

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attrname"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/textview"
)

// NeverIdentifies reports whether an attribute of this name never identifies an event, so that a
// retry of an event may change the attribute. NeverIdentifies ignores the case of letters.
//
// The names are:
//
//   - trace context: traceparent, tracestate, baggage, b3, AWSTraceHeader, X-Amzn-*
//   - descriptions of the format: Content-Type, *Version, *SchemaId
//   - the replay that sent the message: sqsfifo-replay-run
//   - the request or the attempt: request_id, trace_id, attempt, retry_count, sent_at
func NeverIdentifies(name string) bool { return attrname.NeverIdentifies(name) }

// checkIdentity checks the attributes with names such as event_id, because their values
// identify the event. The body must contain these values.
func checkIdentity(m Message, b body) []Finding {
	var texts map[string][]string // by attribute name: forms of its value
	var carried map[string]bool   // by text: true if this text is a value in the body
	for name, a := range m.Attributes {
		if NeverIdentifies(name) || !attrname.Event(name) && !attrname.Delivery(name) {
			continue
		}
		if texts == nil {
			texts, carried = make(map[string][]string), make(map[string]bool)
		}
		for _, spelling := range a.spellings() {
			texts[name] = append(texts[name], spelling)
			carried[spelling] = false
		}
	}
	if len(texts) == 0 {
		return nil
	}

	b.identities(func(value string) {
		if _, ok := carried[value]; ok {
			carried[value] = true
		}
	})
	var fs []Finding
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if slices.ContainsFunc(texts[name], func(s string) bool {
			// If the body is not JSON, accept s at any place in the body.
			return carried[s] || !b.wellFormed && strings.Contains(b.text, s)
		}) {
			continue
		}
		fs = append(fs, lostIdentity(m, name, texts[name][0]))
	}
	return fs
}

func lostIdentity(m Message, name, value string) Finding {
	holds := fmt.Sprintf("attribute %s holds %s, which is not a value of the body", quote(name), quote(value))
	if m.DeduplicationID != "" && m.DeduplicationID != bodyHash(m.Body) {
		f := found(attrOnlyIdentity, attributeField(name), holds+
			": the explicit deduplication ID decides what is a duplicate, but a consumer cannot check the identity against the body")
		f.Severity = Info
		return f
	}
	return found(attrOnlyIdentity, attributeField(name), fmt.Sprintf(
		"%s: SQS hashes only the body %s, so within five minutes another message with this body but another value of %s is silently dropped",
		holds, excerpt(m.Body), quote(name)))
}

// bodyHash returns the deduplication ID that SQS computes from a body with content-based
// deduplication. SQS also compares this ID with explicit IDs.
func bodyHash(text string) string {
	sum := sha256.Sum256(textview.Bytes(text))
	return hex.EncodeToString(sum[:])
}

// spellings returns the forms of the attribute's value to look for in a body. A binary
// value has two forms: base64 and plain text.
func (a Attribute) spellings() []string {
	var s []string
	if a.StringValue != "" {
		s = append(s, a.StringValue)
	}
	if len(a.BinaryValue) > 0 {
		s = append(s, base64.StdEncoding.EncodeToString(a.BinaryValue), string(a.BinaryValue))
	}
	return s
}

// identities calls yield for every value of the body that can distinguish two events:
// each string, number and boolean value, and each component of dedupe_key.
func (b body) identities(yield func(value string)) {
	if !b.wellFormed {
		return
	}
	visitLeaves(b.text, yield)
	keyComponents(b.memberText("dedupe_key"), yield)
}

// keyComponents splits a key at each "|" without a backslash before it. Within a
// component, it replaces `\|` by "|" and `\\` by one backslash. Other backslashes stay,
// because the key may come from another program.
func keyComponents(key string, yield func(component string)) {
	var component strings.Builder
	for i := 0; i < len(key); i++ {
		switch c := key[i]; {
		case c == '\\' && i+1 < len(key) && (key[i+1] == '\\' || key[i+1] == '|'):
			i++
			component.WriteByte(key[i])
		case c == '|':
			yield(component.String())
			component.Reset()
		default:
			component.WriteByte(c)
		}
	}
	yield(component.String())
}
