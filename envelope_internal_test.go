package sqsfifo

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
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
