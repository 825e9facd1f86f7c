package sqldb

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Array builds a PostgreSQL array as text, which every driver accepts as a parameter. The
// zero value is the empty array.
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

// Columns returns one array for each column of the rows, in PostgreSQL's text form. The
// caller passes at least one row, and rows of equal length.
//
// The values are of type int64, string or []byte. A nil value or a nil []byte becomes
// NULL.
func Columns(rows [][]any) []any {
	out := make([]any, len(rows[0]))
	for i := range out {
		var a Array
		for _, row := range rows {
			a.value(row[i])
		}
		out[i] = a.String()
	}
	return out
}

func (a *Array) value(v any) {
	switch v := v.(type) {
	case nil:
		a.Null()
	case int64:
		a.Int(v)
	case string:
		a.Text(v)
	case []byte:
		if v == nil {
			a.Null()
		} else {
			a.Bytes(v)
		}
	default:
		panic(fmt.Sprintf("sqldb: %T in a column", v))
	}
}
