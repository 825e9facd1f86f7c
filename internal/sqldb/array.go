package sqldb

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// Array builds the text form of a PostgreSQL array. The text form needs no types of a
// driver. The zero value is the empty array.
type Array struct{ b []byte }

func (a *Array) next() {
	if len(a.b) == 0 {
		a.b = append(a.b, '{')
	} else {
		a.b = append(a.b, ',')
	}
}

// Bytes appends an element of type bytea.
func (a *Array) Bytes(v []byte) {
	a.next()
	a.b = append(a.b, `"\\x`...)
	a.b = hex.AppendEncode(a.b, v)
	a.b = append(a.b, '"')
}

// Int appends an element of type bigint.
func (a *Array) Int(v int64) {
	a.next()
	a.b = strconv.AppendInt(a.b, v, 10)
}

// Text appends an element of type text. v must be UTF-8 without NUL.
func (a *Array) Text(v string) {
	a.next()
	a.b = append(a.b, '"')
	a.b = append(a.b, arrayEscaper.Replace(v)...)
	a.b = append(a.b, '"')
}

var arrayEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Null appends the element NULL.
func (a *Array) Null() {
	a.next()
	a.b = append(a.b, "NULL"...)
}

// String returns the text form of the array.
func (a *Array) String() string {
	if len(a.b) == 0 {
		return "{}"
	}
	return string(a.b) + "}"
}
