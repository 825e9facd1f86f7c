package message

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Errors common among newcomers name the field, its value and a solution.
func TestErrorsThatNewcomersMeet(t *testing.T) {
	type payload struct {
		X any `json:"x"`
	}
	q := producertest.NewQueue(t, sqstest.Config{})
	for name, tc := range map[string]struct {
		key  string
		time time.Time
		x    any
		want []string
	}{
		"NaN":               {"k", producertest.Sample.Acquired, math.NaN(), []string{"/payload/x: the float64 is NaN", "leave the field out or send null"}},
		"Inf in a map":      {"k", producertest.Sample.Acquired, map[string]float64{"a": math.Inf(-1)}, []string{"/payload/x/a: the float64 is -Inf"}},
		"channel":           {"k", producertest.Sample.Acquired, make(chan int), []string{"/payload/x: JSON has no form for the Go type chan int", `tag the field json:"-"`}},
		"large integer":     {"k", producertest.Sample.Acquired, int64(1 << 60), []string{"/payload/x: ", `tag the field json:",string"`}},
		"zero time":         {"k", time.Time{}, 1, []string{"Identity.Time", "the time.Time is zero", "at which the event occurred"}},
		"leading space":     {" k", producertest.Sample.Acquired, 1, []string{"dedupe_key begins with a space", "trim the key"}},
		"no-break space":    {"k\u00a0", producertest.Sample.Acquired, 1, []string{"dedupe_key ends with a space"}},
		"number as data":    {"k", producertest.Sample.Acquired, int64(987654321987654321), []string{"/payload/x: "}},
		"name that is data": {"k", producertest.Sample.Acquired, map[string]float64{"a@b": math.NaN()}, []string{"/payload/x/*: the float64 is NaN"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := sqsfifo.NewProducer(q, sqsfifo.Config[payload]{
				QueueURL: q.URL(), Source: producertest.Source,
				Identify: func(payload) (sqsfifo.Identity, error) {
					return sqsfifo.Identity{DedupeKey: tc.key, Group: "g", Time: tc.time}, nil
				},
			})
			require.NoError(t, err)
			_, err = p.Build(payload{tc.x})
			require.Error(t, err)
			for _, want := range tc.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "987654321")
		})
	}
}

func TestJoinKeyRefusesSpacesAtTheEnds(t *testing.T) {
	for _, parts := range [][]string{{" a"}, {"a\u2003"}, {" a", "b"}, {"a", "b "}} {
		_, err := sqsfifo.JoinKey(parts...)
		assert.ErrorContains(t, err, "trim the part", "%q", parts)
	}
	_, err := sqsfifo.JoinKey("a ", " b")
	assert.NoError(t, err, "spaces inside a key are data")
}

// A decoder accepts every organization, unless it is configured for one. Then the error
// names the body's organization and says that nothing else is wrong.
func TestDecoderNamesTheOrganization(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Organization, c.Source = "acme", "acme.orders.shipped" })
	m, err := p.Build(producertest.Sample)
	require.NoError(t, err)
	_, err = sqsfifo.DecodeEnvelope[producertest.Scene](m.Body)
	require.NoError(t, err)
	_, err = sqsfifo.Decoder[producertest.Scene]{Organization: "acme"}.Decode(m.Body)
	require.NoError(t, err)
	kfm := sqsfifo.Decoder[producertest.Scene]{Organization: "kfm"}
	for body, other := range map[string]bool{
		m.Body: true, "{}": false,
		strings.Replace(m.Body, "acme.orders.shipped", "acme.Orders.shipped", 1): false,
		strings.Replace(m.Body, "-7", "-4", 1):                                   false,
	} {
		_, err = kfm.Decode(body)
		var e *sqsfifo.EnvelopeError
		require.ErrorAs(t, err, &e, body)
		assert.Equal(t, other, e.OtherOrganization, body)
		if other {
			assert.ErrorContains(t, err, `set Organization to "acme"`)
		}
	}
}

type tile string

func (t tile) MarshalJSON() ([]byte, error) { return []byte(`{"tile":"` + string(t) + `"}`), nil }

func newFor[T any](t *testing.T) (*sqsfifo.Producer[T], error) {
	q := producertest.NewQueue(t, sqstest.Config{})
	return sqsfifo.NewProducer(q, sqsfifo.Config[T]{QueueURL: q.URL(), Source: "kfm.scenes.landsat", Identify: func(T) (sqsfifo.Identity, error) {
		return sqsfifo.Identity{DedupeKey: "k", Group: "g", Time: time.Unix(1, 0)}, nil
	}})
}

// An event type whose values never are JSON objects is refused before the first event.
func TestEventTypeWithoutMembers(t *testing.T) {
	refused := func(_ any, err error) {
		t.Helper()
		var fault *sqsfifo.InvalidError
		require.ErrorAs(t, err, &fault)
		assert.ErrorContains(t, err, "use a struct or a map")
	}
	refused(newFor[string](t))
	refused(newFor[*int](t))
	refused(newFor[[]tile](t))
	accepted := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	accepted(newFor[tile](t))
	accepted(newFor[**tile](t))
	accepted(newFor[json.RawMessage](t))
	accepted(newFor[any](t))
	accepted(newFor[map[string]int](t))
	accepted(newFor[*producertest.Scene](t))
}

// The error of a nil event has a fix for nil.
func TestNilEvent(t *testing.T) {
	p, err := newFor[*producertest.Scene](t)
	require.NoError(t, err)
	_, err = p.Build(nil)
	require.ErrorContains(t, err, "payload is null")
	assert.ErrorContains(t, err, "pass no nil event")
}
