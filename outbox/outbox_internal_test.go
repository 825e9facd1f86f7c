package outbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func TestCheckNamesTheField(t *testing.T) {
	good := sqsfifo.Message{Group: "g", DedupeKey: "k", Body: "{}"}
	for _, tc := range []struct {
		name, field string
		change      func(*sqsfifo.Message)
	}{
		{"no group", "Group", func(m *sqsfifo.Message) { m.Group = "" }},
		{"long group", "Group", func(m *sqsfifo.Message) { m.Group = strings.Repeat("g", 129) }},
		{"space", "Group", func(m *sqsfifo.Message) { m.Group = "a b" }},
		{"not ASCII", "Group", func(m *sqsfifo.Message) { m.Group = "é" }},
		{"NUL", "Group", func(m *sqsfifo.Message) { m.Group = "a\x00" }},
		{"no key", "DedupeKey", func(m *sqsfifo.Message) { m.DedupeKey = "" }},
		{"bad key", "DedupeKey", func(m *sqsfifo.Message) { m.DedupeKey = "\xff" }},
		{"no body", "Body", func(m *sqsfifo.Message) { m.Body = "" }},
		{"bad body", "Body", func(m *sqsfifo.Message) { m.Body = "\xff" }},
		{"bad name", "Attributes", func(m *sqsfifo.Message) { m.Attributes = map[string]string{"\xff": "x"} }},
		{"3 MiB", "MessageBody", func(m *sqsfifo.Message) { m.Body = `"` + strings.Repeat("x", 3<<20) + `"` }},
		{"a character that SQS refuses", "MessageBody", func(m *sqsfifo.Message) { m.Body = "{\"a\":\"\ufffe\"}" }},
		{"11 attributes", "MessageAttributes", func(m *sqsfifo.Message) {
			m.Attributes = map[string]string{}
			for i := range 11 {
				m.Attributes[fmt.Sprint("a", i)] = "x"
			}
		}},
		{"an attribute that SQS refuses", `MessageAttributes["AWS.x"]`, func(m *sqsfifo.Message) { m.Attributes = map[string]string{"AWS.x": "x"} }},
		{"bad value", "Attributes", func(m *sqsfifo.Message) { m.Attributes = map[string]string{"x": "\xff"} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := good
			tc.change(&m)
			var wrong *idempotency.InvalidError
			require.ErrorAs(t, check(7, &m), &wrong)
			assert.Equal(t, "msgs[7]."+tc.field, wrong.Field)
		})
	}
	require.NoError(t, check(0, &good))
	long := good
	long.Group = strings.Repeat("!", 64) + strings.Repeat("~", 64)
	require.NoError(t, check(0, &long))
}

func TestDialectNames(t *testing.T) {
	assert.Equal(t, []string{"SQLite", "PostgreSQL", "Dialect(0)"}, []string{SQLite.String(), PostgreSQL.String(), Dialect(0).String()})
	_, err := Schema(0)
	var setting *idempotency.InvalidError
	require.ErrorAs(t, err, &setting)
	for _, d := range []Dialect{SQLite, PostgreSQL} {
		text, err := Schema(d)
		require.NoError(t, err)
		assert.False(t, slices.ContainsFunc([]string{"{", "}"}, func(s string) bool { return strings.Contains(text, s) }))
	}
}
