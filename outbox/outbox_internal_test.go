package outbox

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqldb"
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
		{"bad value", "Attributes", func(m *sqsfifo.Message) { m.Attributes = map[string]string{"x": "\xff"} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := good
			tc.change(&m)
			var wrong *MessageError
			require.ErrorAs(t, check(7, &m), &wrong)
			assert.Equal(t, tc.field, wrong.Field)
			assert.Equal(t, 7, wrong.Index)
		})
	}
	require.NoError(t, check(0, &good))
	long := good
	long.Group = strings.Repeat("!", 64) + strings.Repeat("~", 64)
	require.NoError(t, check(0, &long))
}

// parseArray reads an array of texts as PostgreSQL does.
func parseArray(t *testing.T, text string) (out []string) {
	t.Helper()
	require.True(t, strings.HasPrefix(text, "{") && strings.HasSuffix(text, "}"))
	text = text[1 : len(text)-1]
	for len(text) > 0 {
		require.Equal(t, byte('"'), text[0])
		var value []byte
		i := 1
		for ; text[i] != '"'; i++ {
			if text[i] == '\\' {
				i++
			}
			value = append(value, text[i])
		}
		out = append(out, string(value))
		text = strings.TrimPrefix(text[i+1:], ",")
	}
	return out
}

// A group that Add accepts and any bytes keep their value in an array.
func FuzzArray(f *testing.F) {
	f.Add("g", `p';DROP_TABLE"\{,}`, []byte{0, '"', '\\'})
	f.Fuzz(func(t *testing.T, a, b string, data []byte) {
		for _, g := range []string{a, b} {
			if check(0, &sqsfifo.Message{Group: g, DedupeKey: "k", Body: "b"}) != nil {
				return
			}
		}
		var texts, blobs sqldb.Array
		texts.Text(a)
		texts.Text(b)
		blobs.Bytes(data)
		assert.Equal(t, []string{a, b}, parseArray(t, texts.String()))
		assert.Equal(t, []string{`\x` + hex.EncodeToString(data)}, parseArray(t, blobs.String()))
	})
}

// No part of the notation is left in a statement, and parameters keep their numbers.
func TestRender(t *testing.T) {
	text := `SELECT ?2, {now} FROM {records ?1: g text, p bigint} WHERE g IN ({list ?12})`
	assert.Equal(t, `SELECT $2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM json_to_recordset(CAST($1 AS text)::json) AS x (g text, p bigint) WHERE g IN (SELECT value FROM json_array_elements_text(CAST($12 AS text)::json))`,
		PostgreSQL.render(text))
	assert.Equal(t, `SELECT ?2, CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER) FROM (SELECT json_extract(value, '$.g') AS g, json_extract(value, '$.p') AS p FROM json_each(?1)) AS x WHERE g IN (SELECT value FROM json_each(?12))`,
		SQLite.render(text))
}

// A bell rings at once, then at most once in an interval, and again for what was rung
// meanwhile; it has no goroutine when nobody rings.
func TestBell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var at []time.Duration
		bell := NewBell(func(context.Context) error {
			at = append(at, time.Since(begin))
			return errors.New("which is not the writer's concern")
		})
		for range 121 { // every millisecond
			bell.Ring()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Minute)
		bell.Ring()
		synctest.Wait()
		assert.Equal(t, []time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond, time.Minute + 121*time.Millisecond}, at)
		bell.Close()
		bell.Ring()
		synctest.Wait()
		assert.Len(t, at, 5)
	})
}

// Close ends a notification that hangs.
func TestBellCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bell := NewBell(func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		begin := time.Now()
		bell.Ring()
		synctest.Wait()
		bell.Close()
		assert.Zero(t, time.Since(begin))
	})
}

func TestDialectNames(t *testing.T) {
	assert.Equal(t, []string{"SQLite", "PostgreSQL", "Dialect(0)"}, []string{SQLite.String(), PostgreSQL.String(), Dialect(0).String()})
	_, err := Schema(0)
	var setting *SettingError
	require.ErrorAs(t, err, &setting)
	for _, d := range []Dialect{SQLite, PostgreSQL} {
		text, err := Schema(d)
		require.NoError(t, err)
		assert.False(t, slices.ContainsFunc([]string{"{", "}"}, func(s string) bool { return strings.Contains(text, s) }))
	}
}
