package lint_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// ofRule returns the findings of one rule.
func ofRule(rule string, fs []lint.Finding) []lint.Finding {
	var got []lint.Finding
	for _, f := range fs {
		if f.Rule == rule {
			got = append(got, f)
		}
	}
	return got
}

const kfmKey = "landsat-2025-12-04T00:00Z"

// Section 5 of the contract KFM v11.2.3 shows a forbidden message: only an attribute
// identifies the event. Check must report this message.
func TestForbiddenExampleOfTheContract(t *testing.T) {
	const forbidden = `{"collection":"landsat","tile":"p32r29"}`
	got := ofRule("SF001", lint.Check(lint.Message{
		Body:       forbidden,
		Attributes: map[string]lint.Attribute{"unique_key": text(kfmKey)},
		GroupID:    "landsat",
	}))
	require.Len(t, got, 1)
	f := got[0]
	assert.Equal(t, lint.Error, f.Severity)
	assert.Equal(t, `MessageAttributes["unique_key"]`, f.Field)
	assert.Equal(t, none, f.Offset)
	assert.Equal(t, `attribute "unique_key" holds "`+kfmKey+`", which is not a value of the body: SQS hashes only the body `+forbidden+
		`, so within five minutes another message with this body but another value of "unique_key" is silently dropped`, f.Message)
	rule, _ := lint.Lookup("SF001")
	assert.Contains(t, rule.Source, "RC-2.4.1")
}

// Section 6 of the contract KFM v11.2.3 shows a correct message: the body repeats the value
// of the attribute unique_key. Check must not report this attribute (SF001). Check reports
// SF040, because the body is not a complete envelope.
func TestApprovedExampleOfTheContract(t *testing.T) {
	const approved = `{"dedupe_key":"` + kfmKey + `","collection":"landsat","tile":"p32r29","scene_id":"...","metadata":{}}`
	m := lint.Message{Body: approved, Attributes: map[string]lint.Attribute{"unique_key": text(kfmKey)}, GroupID: "landsat"}
	got := lint.Check(m)
	assert.Empty(t, ofRule("SF001", got))
	assert.NotEmpty(t, ofRule("SF040", got))

	m.Body = `{"dedupe_key":"` + kfmKey + `","event_id":"` + id + `","event_source":"` + source + `","event_time":"2025-12-04T00:00:00Z",` +
		`"payload":{"collection":"landsat","metadata":{},"scene_id":"...","tile":"p32r29"}}`
	assert.Empty(t, lint.Check(m))
	m.Attributes = nil
	assert.Empty(t, lint.Check(m))
}

// With an explicit deduplication ID, SQS does not compare bodies, so it drops no message
// because of an equal body. An identity missing in the body is then only an info, unless
// the explicit ID is the body's hash.
func TestExplicitDeduplicationIDMakesLostIdentityAnInfo(t *testing.T) {
	m := attribute("unique_key", text("x1"))
	tests := []struct {
		name string
		id   string
		want lint.Severity
	}{
		{"none", "", lint.Error},
		{"another", "order-17", lint.Info},
		{"the hash", hash(m.Body), lint.Error},
		{"the hash in upper case", strings.ToUpper(hash(m.Body)), lint.Info},
		{"the hash of another body", hash("x"), lint.Info},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m.DeduplicationID = test.id
			got := lint.Check(m)
			require.Len(t, got, 1)
			assert.Equal(t, "SF001", got[0].Rule)
			assert.Equal(t, test.want, got[0].Severity)
			assert.Equal(t, test.want == lint.Error, strings.Contains(got[0].Message, "silently dropped"))
		})
	}
}

// SF001 requires the value of an identifying attribute in the body. The components of
// dedupe_key, which JoinKey joins with "|", also count as values in the body.
func TestComponentsOfTheDedupeKeyCountAsBody(t *testing.T) {
	tests := []struct {
		name   string
		key    string
		in     []string
		notIn  []string
		nested bool
	}{
		{name: "one component", key: "a", in: []string{"a"}},
		{name: "three", key: "a|b|c", in: []string{"a", "b", "c", "a|b|c"}, notIn: []string{"a|b", "b|c", "|"}},
		{name: "escaped separator", key: `a\|b|c`, in: []string{"a|b", "c", `a\|b|c`}, notIn: []string{"a", "b", `a\`, `a\|b`}},
		{name: "escaped backslash", key: `a\\|b`, in: []string{`a\`, "b"}, notIn: []string{"a", `a\\`, "a|b"}},
		{name: "both", key: `a\\\|b|c`, in: []string{`a\|b`, "c"}, notIn: []string{"b", `a\\\|b`}},
		{name: "backslash of other hands", key: `C:\dir|x\`, in: []string{`C:\dir`, "x\\"}, notIn: []string{"C:dir", "x"}},
		{name: "escapes of JSON", key: "größe\"|\u2028|x", in: []string{"größe\"", "\u2028"}, notIn: []string{"größe"}},
		{name: "not in the payload", key: "a|b", notIn: []string{"a"}, nested: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(test.key) + `"`
			message := func(value string) lint.Message {
				m := body(`"`+key+`"`, quoted)
				if test.nested {
					m = body(`"p28r33"`, quoted)
				}
				m.Attributes = map[string]lint.Attribute{"event_key": text(value)}
				return m
			}
			for _, value := range test.in {
				assert.Empty(t, lint.Check(message(value)), "%q", value)
			}
			for _, value := range test.notIn {
				assert.Len(t, ofRule("SF001", lint.Check(message(value))), 1, "%q", value)
			}
		})
	}
}

func TestIdentityIsSoughtInBodiesThatBreakOtherRules(t *testing.T) {
	tests := []struct {
		name string
		body string
		want int
	}{
		{"not canonical", `{ "x" : [ { "y" : "v1" } ] }`, 0},
		{"an escaped spelling", `{"x":"\u00761"}`, 0},
		{"a name", `{"v1" : 0}`, 1},
		{"a scalar", `"v1"`, 0},
		{"duplicate names", `{"x":"v1","x":2}`, 0},
		{"inexact integer", `{"x":9007199254740993,"y":"v1"}`, 0},
		{"key that is no string", `{"dedupe_key":["v1"]}`, 0},
		{"null", `null`, 1},
		{"text that is no JSON", `job v1 is done`, 0},
		{"text without it", `job v2 is done`, 1},
		{"empty", ``, 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := lint.Check(lint.Message{Body: test.body, GroupID: "g", Attributes: map[string]lint.Attribute{"event_id": text("v1")}})
			assert.Len(t, ofRule("SF001", got), test.want)
		})
	}
	m := lint.Message{Body: "null", Attributes: map[string]lint.Attribute{"event_id": text("null")}}
	assert.Len(t, ofRule("SF001", lint.Check(m)), 1, "null identifies nothing")
}

func TestNeverIdentifies(t *testing.T) {
	for _, name := range []string{
		"traceparent", "tracestate", "baggage", "b3", "B3", "Traceparent", "AWSTraceHeader", "X-Amzn-Trace-Id", "x-amzn-request-id",
		"Content-Type", "content-type", "version", "EventVersion", "schema_version", "SchemaId", "sqsfifo-replay-run",
		"request_id", "X-Request-Id", "attempt", "retry_count", "sent_at",
	} {
		assert.True(t, lint.NeverIdentifies(name), name)
	}
	for _, name := range []string{
		"", "unique_key", "event_id", "trace", "traceparent2", "b", "b33", "X-Amz-Id", "Content-Length", "versions", "version_id", "schema", "correlation_id", "session_id", "retry_policy",
	} {
		assert.False(t, lint.NeverIdentifies(name), name)
	}
}

func TestChecksBeforeThereIsAMessage(t *testing.T) {
	one := func(fs []lint.Finding) lint.Finding {
		require.Len(t, fs, 1)
		return fs[0]
	}
	assert.Nil(t, lint.Contract{}.CheckSource(source))
	f := one(lint.Contract{}.CheckSource("orders"))
	assert.Equal(t, "SF043", f.Rule)
	assert.Equal(t, "event_source", f.Field)
	assert.Equal(t, none, f.Offset)

	assert.Nil(t, lint.CheckDedupeKey(key))
	f = one(lint.CheckDedupeKey("a\xff"))
	assert.Equal(t, "SF045", f.Rule)
	assert.Equal(t, "dedupe_key", f.Field)
	assert.Contains(t, f.Message, "not valid UTF-8")
	assert.Equal(t, "SF045", one(lint.CheckDedupeKey("")).Rule)

	assert.Nil(t, lint.CheckGroupID("p28r33"))
	assert.Equal(t, "SF009", one(lint.CheckGroupID("")).Rule)
	f = one(lint.CheckGroupID("p28 r33"))
	assert.Equal(t, "SF010", f.Rule)
	assert.Equal(t, "MessageGroupId", f.Field)
}

// A dataset in the payload, or in a body of another form, is found with its place.
func TestUnknownDatasetInTheBody(t *testing.T) {
	for text, pointer := range map[string]string{
		strings.Replace(goodBody, `"path":`, `"dataset_id":"storm","path":`, 1): "/payload/dataset_id",
		`{"dataset_id":"storm"}`: "/dataset_id",
	} {
		got := ofRule("SF047", lint.Check(lint.Message{Body: text, GroupID: "g", KnowsDataset: knowsStorms}))
		require.Len(t, got, 1, text)
		assert.Equal(t, pointer, got[0].Pointer)
		assert.Equal(t, strings.Index(text, `"storm"`), got[0].Offset)
		assert.Empty(t, ofRule("SF047", lint.Check(lint.Message{Body: text, GroupID: "g"})))
	}
}
