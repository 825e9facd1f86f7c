// Package benign knows the message attributes that never identify an event: trace
// context, content types, versions. The lint and the fake both need the list, and the
// fake must not import the lint.
package benign

import "strings"

// Attribute reports whether an attribute of this name never bears identity. Case does
// not matter.
func Attribute(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "traceparent", "tracestate", "baggage", "b3", "awstraceheader", "content-type":
		return true
	}
	return strings.HasPrefix(name, "x-amzn-") || strings.HasSuffix(name, "version") || strings.HasSuffix(name, "schemaid")
}
