package sqldb

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// Array is a PostgreSQL array in its text form, which needs no driver types. The zero
// value is empty.
type Array struct{ b []byte }

func (a *Array) next() {
	if len(a.b) == 0 {
		a.b = append(a.b, '{')
	} else {
		a.b = append(a.b, ',')
	}
}

// Bytes adds a bytea.
func (a *Array) Bytes(v []byte) {
	a.next()
	a.b = append(a.b, `"\\x`...)
	a.b = hex.AppendEncode(a.b, v)
	a.b = append(a.b, '"')
}

// Int adds a bigint.
func (a *Array) Int(v int64) {
	a.next()
	a.b = strconv.AppendInt(a.b, v, 10)
}

// Text adds a text: UTF-8 without NUL.
func (a *Array) Text(v string) {
	a.next()
	a.b = append(a.b, '"')
	a.b = append(a.b, arrayEscaper.Replace(v)...)
	a.b = append(a.b, '"')
}

var arrayEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Null adds NULL.
func (a *Array) Null() {
	a.next()
	a.b = append(a.b, "NULL"...)
}

// String returns the literal.
func (a *Array) String() string {
	if len(a.b) == 0 {
		return "{}"
	}
	return string(a.b) + "}"
}
