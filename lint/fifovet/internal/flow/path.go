package flow

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// AccessPath names a part of a value by field names, and by map keys in brackets. For
// example, the expression order.Labels["color"] is the part {"Labels", "[color]"} of
// order. Pointers, slices and arrays add no element. The parts of functions and interfaces
// are listed in function.go. Code never changes an AccessPath in place.
type AccessPath []string

const (
	anyKey    = "[*]"    // a map entry whose key is not a constant
	sent      = "<-"     // what the program sends to a channel
	keysOfMap = "[keys]" // the keys of a map, for a trace of k in "for k := range m"
)

// mapKey returns the element of an AccessPath for the map entry with this key. For the
// constant key "id", this is "[id]". For a key that is not a constant, it is anyKey.
func mapKey(key ssa.Value) string {
	if s, ok := ConstString(key); ok {
		return keyOf(s)
	}
	return anyKey
}

func keyOf(name string) string { return "[" + name + "]" }

// KeyName returns the map key in elem, an element of an AccessPath: "id" for "[id]". It
// returns false for field names and non-constant keys.
func KeyName(elem string) (string, bool) {
	if !isKey(elem) || elem == anyKey {
		return "", false
	}
	return elem[1 : len(elem)-1], true
}

func isKey(elem string) bool { return strings.HasPrefix(elem, "[") && elem != keysOfMap }

// Then returns the path p with the given elements added at its end.
func (p AccessPath) Then(part ...string) AccessPath {
	return append(slices.Clone(p), part...)
}

// prepend returns the path that begins with elem and continues with p.
func (p AccessPath) prepend(elem string) AccessPath {
	return append(AccessPath{elem}, p...)
}

// key returns a text unique to the path.
func (p AccessPath) key() string { return strings.Join(p, "\x00") }

// Cut returns the rest of p after the given prefix, and reports whether p begins with this
// prefix. The element anyKey is equal to each map key.
func (p AccessPath) Cut(prefix AccessPath) (AccessPath, bool) {
	if len(prefix) > len(p) {
		return nil, false
	}
	for i := range prefix {
		if !samePlace(p[i], prefix[i]) {
			return nil, false
		}
	}
	return p[len(prefix):], true
}

// samePlace reports whether two path elements may select the same part of a value.
func samePlace(a, b string) bool {
	return a == b || a == anyKey && isKey(b) || b == anyKey && isKey(a)
}
