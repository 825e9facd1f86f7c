package lint

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Finding is one violation of one rule by one message. Its JSON form is stable like the
// rule's ID: releases add members and never rename them.
type Finding struct {
	// Rule is the ID of the rule, such as "SF001". [Lookup] returns the rule.
	Rule string `json:"rule"`

	// Severity is usually the severity of the rule. [Rule.Wording] describes the findings
	// with another severity.
	Severity Severity `json:"severity"`

	// Field names the part of the message that breaks the rule, by the names of the SQS
	// API. It is one of:
	//
	//   - MessageBody, MessageGroupId, MessageDeduplicationId, DelaySeconds
	//   - Dataset, in findings about [Message].DatasetID
	//   - MessageAttributes, or MessageAttributes["unique_key"] with the name in Go quotes
	//   - the name of an envelope member, in findings of [Contract.CheckSource] and
	//     [CheckDedupeKey]
	//   - organization, in findings of [Contract.CheckOrganization]
	Field string `json:"field"`

	// Pointer is the RFC 6901 pointer to the value in the body, of any length. Only SF040
	// shortens a name in it, after 256 bytes. Pointer is empty if the finding is about the
	// whole body, a refused character (SF051) or another field of the message.
	Pointer string `json:"pointer,omitempty"`

	// Offset is the position of the fault in the body, in bytes, or -1 without a position.
	Offset int `json:"offset"`

	// Message describes the fault and its consequence. Message may quote the body and
	// attribute values, shortened.
	Message string `json:"message"`

	// Fix is the change that removes the violation.
	Fix string `json:"fix,omitempty"`
}

// String returns the finding in one line: rule, severity, field, pointer, offset, message
// and fix. It shortens a long pointer.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(f.Rule + " " + f.Severity.String() + ": " + f.Field)
	if f.Pointer != "" {
		b.WriteString(" " + shorten(f.Pointer, excerptName))
	}
	if f.Offset >= 0 {
		b.WriteString(" (byte " + strconv.Itoa(f.Offset) + ")")
	}
	b.WriteString(": " + f.Message)
	if f.Fix != "" {
		b.WriteString("; fix: " + f.Fix)
	}
	return b.String()
}

func found(rule, field, message string) Finding {
	r, _ := Lookup(rule)
	return Finding{Rule: rule, Severity: r.Severity, Field: field, Offset: -1, Message: message, Fix: r.Fix}
}

// inBody returns a finding with a pointer and an offset in the body.
func inBody(rule, pointer string, offset int, message string) Finding {
	f := found(rule, "MessageBody", message)
	f.Pointer, f.Offset = pointer, offset
	return f
}

func sortFindings(fs []Finding) {
	slices.SortFunc(fs, func(a, b Finding) int {
		return cmp.Or(
			strings.Compare(a.Rule, b.Rule),
			strings.Compare(a.Field, b.Field),
			cmp.Compare(a.Offset, b.Offset),
			strings.Compare(a.Pointer, b.Pointer),
			strings.Compare(a.Message, b.Message),
		)
	})
}

// Findings quote only the start of a long text, because they go to logs and spans.
// Lengths are in bytes.
const (
	excerptBody  = 120
	excerptValue = 64
	excerptName  = 256 // the longest name that SQS allows
)

// shorten returns s with at most the given number of bytes, cut between two characters. It
// marks a cut with "…", which does not count.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}

func quote(s string) string {
	return strconv.Quote(shorten(s, excerptValue))
}

// excerpt returns the start of a body for the text of a finding. It quotes only a body with
// unprintable characters, because a quoted JSON text is full of backslashes.
func excerpt(body string) string {
	s := shorten(body, excerptBody)
	for _, c := range s {
		if !unicode.IsPrint(c) || c == utf8.RuneError {
			return strconv.Quote(s)
		}
	}
	return s
}

func attributeField(name string) string {
	return "MessageAttributes[" + strconv.Quote(shorten(name, excerptName)) + "]"
}

func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
