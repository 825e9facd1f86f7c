// Package textview converts between text and bytes without a copy. It has the module's
// unsafe conversions; the unsafe reads of numbers are in canonicaljson/internal/word.
package textview

import "unsafe"

// Bytes returns the bytes of s. The caller must not write to the result.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// String returns b as a string. The caller must never write to b again.
func String(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
