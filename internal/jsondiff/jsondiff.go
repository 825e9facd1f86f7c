// Package jsondiff finds the member in which two JSON values differ, and writes the pointers
// to members.
package jsondiff

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// First returns the JSON pointer to the first difference of two decoded JSON values, and
// both values there. The argument `at` is the pointer to the values. The result is empty
// for equal values.
func First(at string, a, b any) (string, any, any) {
	if reflect.DeepEqual(a, b) {
		return "", nil, nil
	}
	switch x := a.(type) {
	case map[string]any:
		y, _ := b.(map[string]any)
		all := maps.Clone(x)
		maps.Copy(all, y)
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if pointer, c, d := First(at+Pointer(name), x[name], y[name]); y != nil && pointer != "" {
				return pointer, c, d
			}
		}
	case []any:
		y, _ := b.([]any)
		for i := range min(len(x), len(y)) {
			if pointer, c, d := First(fmt.Sprintf("%s/%d", at, i), x[i], y[i]); pointer != "" {
				return pointer, c, d
			}
		}
	}
	return at, a, b
}

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer returns the JSON pointer to the member with the given name (RFC 6901 section 3).
func Pointer(name string) string { return "/" + escapes.Replace(name) }
