package sqlstore

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// array is a PostgreSQL array in its text form, which needs no type of a driver.
type array struct{ b []byte }

func (a *array) next() {
	if len(a.b) == 0 {
		a.b = append(a.b, '{')
	} else {
		a.b = append(a.b, ',')
	}
}

func (a *array) bytes(v []byte) {
	a.next()
	a.b = append(a.b, `"\\x`...)
	a.b = hex.AppendEncode(a.b, v)
	a.b = append(a.b, '"')
}

func (a *array) int(v int64) {
	a.next()
	a.b = strconv.AppendInt(a.b, v, 10)
}

func (a *array) text(v string) {
	a.next()
	a.b = append(a.b, '"')
	a.b = append(a.b, arrayEscaper.Replace(v)...)
	a.b = append(a.b, '"')
}

var arrayEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

func (a *array) null() {
	a.next()
	a.b = append(a.b, "NULL"...)
}

// String returns the literal.
func (a *array) String() string {
	if len(a.b) == 0 {
		return "{}"
	}
	return string(a.b) + "}"
}
