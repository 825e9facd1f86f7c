package input

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/messageline"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func newBuilder(t *testing.T, spec Spec) (*Builder, error) {
	t.Helper()
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	queue, err := sqsfifo.NewQueue(q, sqsfifo.QueueConfig{URL: q.URL()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, queue.Close(t.Context())) })
	return NewBuilder(queue, spec)
}

var payloads = Spec{Kind: Auto, Source: "kfm.a.b", Key: "x|{/id}", Group: "/g", Time: "/at"}

const payload = `{ "id": "1|2", "g": "g", "at": "2025-12-04T12:00:00+01:00", "n": 1.0 }`

// A line with only a payload, and a line with the complete envelope of the same payload,
// give the same message.
func TestKindsAgree(t *testing.T) {
	b, err := newBuilder(t, payloads)
	require.NoError(t, err)
	m, err := b.Build(Line{"f", 1, []byte(payload)})
	require.NoError(t, err)
	assert.Equal(t, `x|1\|2`, m.DedupeKey)
	assert.Equal(t, "g", m.Group)
	assert.Equal(t, `{"dedupe_key":"x|1\\|2","event_id":"`+m.EventID.String()+`","event_source":"kfm.a.b","event_time":"2025-12-04T11:00:00Z","payload":{"at":"2025-12-04T12:00:00+01:00","g":"g","id":"1|2","n":1}}`, m.Body)

	b, err = newBuilder(t, Spec{Kind: Auto, Group: "/payload/g"})
	require.NoError(t, err)
	same, err := b.Build(Line{"f", 1, []byte(strings.Replace(m.Body, ",", " ,\t", 3))})
	require.NoError(t, err)
	assert.Equal(t, m, same)
}

// Lines that are equal as JSON give equal bodies, in every run, also with other spaces or
// escapes.
func TestSpellings(t *testing.T) {
	first := ""
	for _, text := range []string{payload, strings.ReplaceAll(payload, " ", ""), `{"n":1,"at":"2025-12-04T12:00:00+01:00","g":"g","id":"1\u007c2"}`} {
		b, err := newBuilder(t, payloads)
		require.NoError(t, err)
		m, err := b.Build(Line{"f", 1, []byte(text)})
		require.NoError(t, err)
		if first == "" {
			first = m.Body
		}
		assert.Equal(t, first, m.Body)
	}
}

func TestSpecs(t *testing.T) {
	for name, tc := range map[string]struct {
		spec Spec
		says []string
	}{
		"all faults at once": {Spec{Kind: Payload, Source: "{/x", Key: "{/a}{/b}", Attributes: map[string]string{"k": "}"}}, []string{"--source: byte 0", "--key: {/a} and {/b}", "--attribute k: byte 0"}},
		"missing":            {Spec{Kind: Payload, Source: "kfm.a.b"}, []string{"which need --key, --group, --time"}},
		"extra":              {Spec{Kind: Message, Group: "g", Attributes: map[string]string{"k": "v"}}, []string{"remove --group, --attribute"}},
		"wrong source":       {Spec{Kind: Auto, Source: "acme.a"}, []string{`--source "acme.a"`}},
	} {
		_, err := newBuilder(t, tc.spec)
		for _, says := range tc.says {
			assert.ErrorContains(t, err, says, name)
		}
	}
}

// With [Auto], the first object that agrees with the flags sets the kind of all lines. Line 1
// is an envelope, and the flags are those for payloads. So line 1 sets no kind, and line 2
// may be a payload.
func TestKindOfTheFirstGoodLine(t *testing.T) {
	b, err := newBuilder(t, payloads)
	require.NoError(t, err)
	_, err = b.Build(Line{"f", 1, []byte(`{"dedupe_key":"k","event_id":"e","event_source":"s","event_time":"t","payload":{}}`)})
	require.ErrorContains(t, err, "f:1: the lines are envelopes, which have their own: remove --source, --key, --time")
	_, err = b.Build(Line{"f", 2, []byte(payload)})
	require.NoError(t, err)
}

// Build does not panic for any line.
func FuzzBuild(f *testing.F) {
	for _, text := range []string{payload, `{}`, `[1]`, `{"group":"g","body":"{}","dedupe_key":"k","event_id":"x"}`, `{"dedupe_key":"k","event_id":"e","event_source":"s","event_time":"t","payload":{}}`} {
		f.Add([]byte(text))
	}
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(f, err)
	queue, err := sqsfifo.NewQueue(q, sqsfifo.QueueConfig{URL: q.URL()})
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, spec := range []Spec{payloads, {Kind: Auto, Group: "g"}, {Kind: Message}} {
			b, err := NewBuilder(queue, spec)
			require.NoError(t, err)
			m, err := b.Build(Line{"f", 1, text})
			if (m == nil) == (err == nil) {
				t.Fatalf("%v, %v", m, err)
			}
		}
		_, _ = messageline.Parse(text)
	})
}
