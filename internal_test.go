package sqsfifo

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// byPointer has a MarshalText method with a pointer receiver, so only an addressable
// value uses it. Values in an envelope are not addressable.
type byPointer struct {
	Scene string `json:"scene"`
}

func (*byPointer) MarshalText() ([]byte, error) { return []byte("by pointer"), nil }

// The method Envelope.encode must return the same bytes and errors as
// canonicaljson.Marshal, although it writes the members of the envelope itself.
func TestEnvelopeIsWhatTheEncoderWrites(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "landsat|LC08", `a\|b`, "\"", "\u2028é\U0001F6F0", "\x00\x1f\x7f", "not\xffUTF-8", strings.Repeat("x", 70_000)}
	times := []time.Time{
		{},
		time.Unix(0, 0), time.Date(2020, 12, 4, 19, 2, 11, 194_000_000, time.FixedZone("CET", 3600)),
		time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Now(),
	}
	payloads := []any{
		nil, 1.50, "text",
		map[string]any{"b": 1, "a": []int{2}},
		byPointer{"s"},
		&byPointer{"s"},
		uint64(1<<53 + 1), make(chan int),
		struct{}{},
		[]byte("bytes"), "\xff",
	}
	refused := 0
	for range 3_000 {
		e := Envelope[any]{
			DedupeKey: texts[random.IntN(len(texts))], EventSource: texts[random.IntN(len(texts))],
			EventTime: times[random.IntN(len(times))], Payload: payloads[random.IntN(len(payloads))],
		}
		for i := range e.EventID {
			e.EventID[i] = byte(random.Uint32())
		}
		got, gotErr := e.encode()
		e.EventTime = e.EventTime.UTC()
		want, wantErr := canonicaljson.Marshal(e)
		require.Equal(t, string(want), got)
		if wantErr == nil {
			require.NoError(t, gotErr)
			continue
		}
		refused++
		require.Equal(t, encodeViolation(wantErr), gotErr)
	}
	assert.Greater(t, refused, 300)

	got, err := Envelope[byPointer]{EventID: uuid.Max, EventTime: times[1], Payload: byPointer{"s"}}.encode()
	require.NoError(t, err)
	assert.Contains(t, got, `"payload":{"scene":"s"}`)
}

// The encoder writes the bytes of each accepted body again.
func FuzzDecodeEnvelope(f *testing.F) {
	f.Add(`{"dedupe_key":"soil|17","event_id":"0193917a-6b80-7c3e-9a5d-2f1b8c4d6e70","event_source":"kfm.soils.refresh","event_time":"2024-12-04T00:00:00Z","payload":{"tile":"p32r29"}}`)
	f.Add(`{"dedupe_key":"a,\"payload\":{}","event_id":"0193917a-6b80-7c3e-9a5d-2f1b8c4d6e70","event_source":"kfm.soils.refresh","event_time":"2024-12-04T00:00:00Z","payload":{}}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, body string) {
		e, err := DecodeEnvelope[json.RawMessage](body)
		if err != nil {
			return
		}
		again, err := e.encode()
		require.NoError(t, err)
		require.Equal(t, body, again, "what is accepted is encoded to the same bytes")
		require.Equal(t, string(e.Payload), payloadOf(body))
	})
}

// Messages accepted by isCertainlyValid have no finding, whatever their fields.
func FuzzPlainMessagesBreakNoRule(f *testing.F) {
	f.Add("soil|17", "p32r29", "text", int64(1_607_108_531_194_000_000), []byte(nil), true)
	f.Add("\x00", "two words", "\uffff", int64(-1), []byte("0123456789abcdef"), true)
	f.Add("key", "group", "null", int64(0), []byte{6: 0x70, 8: 0x80, 15: 1}, false)
	f.Add("", "", "\xff", int64(1<<62), []byte{6: 0x40, 8: 0x80, 15: 1}, true)
	f.Fuzz(func(t *testing.T, key, group, text string, ns int64, id []byte, object bool) {
		c := Config[any]{Source: "kfm.a.b", Identify: func(any) (Identity, error) {
			i := Identity{DedupeKey: key, Group: group, Time: time.Unix(0, ns)}
			if len(id) == 16 {
				i.EventID = uuid.UUID(id)
			}
			return i, nil
		}}
		p := &Producer[any]{config: c}
		var event any = text
		if object {
			event = map[string]any{"text": text, text: ns}
		}
		msg, err := p.compose(event)
		if err != nil {
			t.Skip()
		}
		for _, limit := range []int{100, maxMessageBytes} {
			checked := p.rules.lintMessage(msg)
			checked.MaxSize = limit
			found := lint.Check(checked)
			if msg.isCertainlyValid(limit, payloadOf(msg.Body)) {
				require.Empty(t, found)
			}
		}
	})
}

// The default quota of a store covers what a producer with the default configuration has
// under way: the events of its requests, and those claimed in advance.
func TestDefaultQuotaCoversProducer(t *testing.T) {
	require.LessOrEqual(t, int64(10*Delivery{}.options().InFlight+maxPrepared), idempotency.DefaultQuota(512))
}
