package sqsfifo

import (
	"regexp"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// quotingRules are the rules whose findings quote the payload or an attribute's value.
var quotingRules = []string{ruleAttributeOnly, ruleInvalidJSON, "SF031", ruleInexactInteger, "SF033"}

func describe(findings []lint.Finding, plain bool) string {
	var b strings.Builder
	for i, f := range findings {
		if i > 0 {
			b.WriteString("; ")
		}
		if slices.Contains(quotingRules, f.Rule) {
			if f.Pointer = maskPointer(f.Pointer); !plain {
				r, _ := lint.Lookup(f.Rule)
				f.Message = r.Title
			}
		}
		b.WriteString(f.String())
	}
	return b.String()
}

var fieldName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$|^[0-9]{1,6}$`)

// maskPointer replaces names in a JSON pointer by "*" if they may be data, for example
// the keys of a map.
func maskPointer(pointer string) string {
	names := strings.Split(pointer, "/")
	for i, name := range names {
		if i > 0 && !fieldName.MatchString(name) {
			names[i] = "*"
		}
	}
	return strings.Join(names, "/")
}

// The root package itself reports findings of these rules, for example while it builds a
// message. Package lint checks built messages by these and other rules.
const (
	ruleAttributeOnly  = "SF001"
	ruleInvalidJSON    = "SF030"
	ruleInexactInteger = "SF032"
	ruleEventTime      = "SF044"
	ruleDedupeKey      = "SF045"
	ruleKeyReused      = "SF061"
	ruleOtherGroup     = "SF063"
)

func finding(rule, field, pointer, message string) lint.Finding {
	r, _ := lint.Lookup(rule)
	return lint.Finding{Rule: rule, Severity: lint.Error, Field: field, Pointer: pointer, Offset: -1, Message: message, Fix: r.Fix}
}

func errorsAmong(fs []lint.Finding) []lint.Finding {
	var refused []lint.Finding
	for _, f := range fs {
		if f.Severity == lint.Error {
			refused = append(refused, f)
		}
	}
	return refused
}
