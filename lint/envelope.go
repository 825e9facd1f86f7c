package lint

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/jsondiff"
)

// maxDedupeKey is the largest length of a dedupe key in bytes. Keys of this length fit into
// log records and into the indexes of key stores.
const maxDedupeKey = 1024

type envelopeMember struct {
	name  string
	check func(c Contract, m member, text string) []Finding
}

// envelope lists the members of the contract in canonical order, each with its rule.
// Findings have the same order.
var envelope = []envelopeMember{
	{"dedupe_key", stringMember(invalidDedupeKey, dedupeKeyFault)},
	{"event_id", stringMember(invalidEventID, eventIDFault)},
	{"event_source", checkEventSource},
	{"event_time", stringMember(invalidEventTime, eventTimeFault)},
	{"payload", checkPayload},
}

// oldMembers are members of the v10.3.1 envelope and not of the v11.2.3 envelope.
var oldMembers = []string{"dataset_id", "event_type", "idempotency_key", "source_uri", "version"}

func (c Contract) checkEnvelope(b body) []Finding {
	switch {
	case !b.wellFormed:
		return nil // the rule invalid-json (SF030) has reported this body
	case !b.object:
		at := skipBlank(b.text, 0)
		return []Finding{inBody(envelopeMembers, "", at, fmt.Sprintf(
			"the body is %s, not an object: it has no dedupe_key to distinguish events", kind(b.text[at:])))}
	}
	if fs := checkOldEnvelope(b.members); fs != nil {
		return fs
	}
	fs, foreign := checkMembers(b.members)
	if foreign {
		return fs
	}
	for _, e := range envelope {
		if i := index(b.members, e.name); i >= 0 {
			fs = append(fs, e.check(c, b.members[i], b.text)...)
		}
	}
	return fs
}

// checkOldEnvelope reports a body in the old envelope: without dedupe_key, and with at
// least two top-level members that only the old contract has. One such member alone may
// be a mistake in a new envelope.
func checkOldEnvelope(ms []member) []Finding {
	if index(ms, "dedupe_key") >= 0 {
		return nil
	}
	var names []string
	for _, name := range oldMembers {
		if index(ms, name) >= 0 {
			names = append(names, name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	first := ms[index(ms, names[0])]
	return []Finding{inBody(oldEnvelope, pointer(first.name), first.nameAt, fmt.Sprintf(
		"the body is an envelope of KFM v10.3.1 (%s at top level), not of v11.2.3", strings.Join(names, ", ")))}
}

// checkMembers returns at most one finding about missing and unknown members. An object
// that lacks most members is foreign: its other members have the rules of another format.
func checkMembers(ms []member) (_ []Finding, foreign bool) {
	var missing []string
	for _, e := range envelope {
		if index(ms, e.name) < 0 {
			missing = append(missing, e.name)
		}
	}
	var faults []string
	if len(missing) > 0 {
		faults = append(faults, "lacks "+strings.Join(missing, ", "))
	}

	// A body that is not an envelope may have many unknown members. The finding names only
	// the first eight.
	const named = 8
	var unknown []string
	var first member
	n := 0
	for _, m := range ms {
		if slices.ContainsFunc(envelope, func(e envelopeMember) bool { return e.name == m.name }) {
			continue
		}
		if n == 0 {
			first = m
		}
		if n++; n <= named {
			unknown = append(unknown, quote(m.name))
		}
	}
	f := found(envelopeMembers, "MessageBody", "")
	if n > 0 {
		text := "has members that the contract does not know: " + strings.Join(unknown, ", ")
		if n > named {
			text += fmt.Sprintf(" and %s more", count(n-named))
		}
		faults = append(faults, text)
		f.Pointer, f.Offset = pointer(first.name), first.nameAt
	}
	if faults == nil {
		return nil, false
	}
	f.Message = "the envelope " + strings.Join(faults, " and ")
	return []Finding{f}, len(missing) > len(envelope)/2
}

func index(ms []member, name string) int {
	return slices.IndexFunc(ms, func(m member) bool { return m.name == name })
}

func pointer(name string) string { return jsondiff.Pointer(shorten(name, excerptName)) }

func kind(value string) string {
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// stringMember returns a check for a member with a string value. The parameter `fault` is a
// function that describes the fault of a string, or returns "" for a valid string.
func stringMember(rule string, fault func(s string) string) func(Contract, member, string) []Finding {
	return func(_ Contract, m member, text string) []Finding {
		value := text[m.start:m.end]
		message := ""
		if value[0] != '"' {
			message = fmt.Sprintf("%s is %s, not a string", m.name, kind(value))
		} else {
			message = fault(unquote(value))
		}
		if message == "" {
			return nil
		}
		return []Finding{inBody(rule, pointer(m.name), m.start, message)}
	}
}

func checkEventSource(c Contract, m member, text string) []Finding {
	return stringMember(invalidEventSource, c.sourceFault)(c, m, text)
}

func checkPayload(_ Contract, m member, text string) []Finding {
	if text[m.start] == '{' {
		return nil
	}
	return []Finding{inBody(invalidPayload, pointer(m.name), m.start,
		fmt.Sprintf("payload is %s, not an object", kind(text[m.start:m.end])))}
}

// CheckDedupeKey checks a dedupe key before the key is put into an envelope. It returns nil
// for a valid key, otherwise findings of rule SF045 (dedupe-key).
//
// Invalid UTF-8 is SF045 here. In a body, [Check] reports it as SF030 (invalid-json).
func CheckDedupeKey(key string) []Finding {
	if fault := dedupeKeyFault(key); fault != "" {
		return []Finding{found(invalidDedupeKey, "dedupe_key", fault)}
	}
	return nil
}

func dedupeKeyFault(key string) string {
	switch {
	case key == "":
		return "dedupe_key is empty: it would not distinguish any two events"
	case len(key) > maxDedupeKey:
		return fmt.Sprintf("dedupe_key has %s bytes, %s are allowed", count(len(key)), count(maxDedupeKey))
	case !utf8.ValidString(key):
		return "dedupe_key is not valid UTF-8: an encoder would put U+FFFD for what is invalid, and two keys could become one"
	}
	for at, c := range key {
		if unicode.IsControl(c) {
			return fmt.Sprintf("dedupe_key has the control character %U at byte %d", c, at)
		}
	}
	switch {
	case strings.TrimLeftFunc(key, unicode.IsSpace) != key:
		return "dedupe_key begins with a space, so that it differs from the same key without it; trim the key"
	case strings.TrimRightFunc(key, unicode.IsSpace) != key:
		return "dedupe_key ends with a space, so that it differs from the same key without it; trim the key"
	}
	return ""
}

func eventIDFault(id string) string {
	if len(id) != 36 {
		return fmt.Sprintf("event_id %s is not a UUID in text form, which has 36 characters", quote(id))
	}
	for i := range len(id) {
		c := id[i]
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return fmt.Sprintf("event_id %s is not a UUID in text form: character %d is not a hyphen", quote(id), i+1)
			}
		default:
			if 'A' <= c && c <= 'F' {
				return fmt.Sprintf("event_id %s has upper-case digits: the same ID in lower case would be another body", quote(id))
			}
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return fmt.Sprintf("event_id %s is not a UUID in text form: character %d is not a hexadecimal digit", quote(id), i+1)
			}
		}
	}
	if id[14] != '7' {
		return fmt.Sprintf("event_id %s is a UUID of version %c, not 7", quote(id), id[14])
	}
	if !strings.ContainsRune("89ab", rune(id[19])) {
		return fmt.Sprintf("event_id %s is not of the RFC 9562 variant: digit %c stands where 8, 9, a or b has to", quote(id), id[19])
	}
	return ""
}

// eventTimeFault describes the fault of an event_time. It returns "" only for an instant
// in UTC in the format time.RFC3339Nano. time.Parse alone would accept offsets and
// trailing zeros, and would drop digits after the ninth.
func eventTimeFault(s string) string {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return fmt.Sprintf("event_time %s is not RFC 3339", quote(s))
	}
	if want := t.UTC().Format(time.RFC3339Nano); s != want {
		return fmt.Sprintf("event_time %s is not in UTC with the shortest fraction: the nearest instant in that form is %s", quote(s), want)
	}
	if t.IsZero() {
		return fmt.Sprintf("event_time %s is the zero time: the event's own time was never set", quote(s))
	}
	return ""
}
