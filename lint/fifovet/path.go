package fifovet

import (
	"slices"
	"strings"

	"golang.org/x/tools/go/ssa"
)

// accessPath says which part of a value is meant, from the outside in: names of
// fields, and keys of maps in brackets. Pointers, slices and arrays do not count.
// It is never changed in place.
type accessPath []string

const (
	anyKey    = "[*]"    // a key that is not constant
	keysOfMap = "[keys]" // a map's keys, which are data as much as its values
)

// mapKey is the element of a path that stands for a map's value.
func mapKey(key ssa.Value) string {
	if s, ok := constString(key); ok {
		return keyOf(s)
	}
	return anyKey
}

func keyOf(name string) string { return "[" + name + "]" }

// keyName returns the constant key that an element of a path stands for.
func keyName(elem string) (string, bool) {
	if !isKey(elem) || elem == anyKey {
		return "", false
	}
	return elem[1 : len(elem)-1], true
}

func isKey(elem string) bool { return strings.HasPrefix(elem, "[") && elem != keysOfMap }

// then is the path of a part of what p means.
func (p accessPath) then(part ...string) accessPath {
	return append(slices.Clone(p), part...)
}

// in is p within a part of something larger.
func (p accessPath) in(part string) accessPath {
	return append(accessPath{part}, p...)
}

// key is a text that only this path has.
func (p accessPath) key() string { return strings.Join(p, "\x00") }

// cut removes prefix from p and reports whether it was there.
func (p accessPath) cut(prefix accessPath) (accessPath, bool) {
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

// samePlace reports whether two elements of paths can mean the same place.
func samePlace(a, b string) bool {
	return a == b || a == anyKey && isKey(b) || b == anyKey && isKey(a)
}
