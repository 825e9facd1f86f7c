// Package textview converts between text and bytes without a copy. The functions use
// package unsafe: each result shares the memory of its argument.
package textview

import "unsafe"

// Bytes returns the bytes of s. The caller must not write to the result.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// String returns b as a string. The caller must never write to b again.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
