package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func newProducer[T any](t *testing.T, c sqsfifo.Config[T]) *sqsfifo.Producer[T] {
	t.Helper()
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	p, err := sqsfifo.NewProducer(q, c)
	require.NoError(t, err)
	return p
}

func TestBuildGoldenBody(t *testing.T) {
	msg, err := newProducer(t, producertest.Config()).Build(producertest.Sample)
	require.NoError(t, err)
	assert.Equal(t, `{"dedupe_key":"landsat|LC08_L2SP_047027_20201204_20210313_02_T1",`+
		`"event_id":"`+sqsfifo.DeriveEventID(producertest.Source, msg.DedupeKey, producertest.Sample.Acquired).String()+`",`+
		`"event_source":"kfm.remote-sensing.landsat-refresh","event_time":"2020-12-04T19:02:11.194Z",`+
		`"payload":{"acquired":"2020-12-04T19:02:11.194Z","cloud_cover":1.55,"id":"LC08_L2SP_047027_20201204_20210313_02_T1","path_row":"047027"}}`, msg.Body)
	assert.Equal(t, "047027", msg.Group)
	assert.True(t, canonicaljson.IsCanonical([]byte(msg.Body)))
}

func TestEventTimeHasOneSpelling(t *testing.T) {
	for name, tc := range map[string]struct {
		in   time.Time
		want string
	}{
		"whole second":   {time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC), "2025-12-04T00:00:00Z"},
		"other location": {time.Date(2025, 12, 3, 18, 0, 0, 0, time.FixedZone("CST", -6*3600)), "2025-12-04T00:00:00Z"},
		"half a second":  {time.Date(2025, 12, 4, 0, 0, 0, 500_000_000, time.UTC), "2025-12-04T00:00:00.5Z"},
		"nanosecond":     {time.Date(2025, 12, 4, 0, 0, 0, 1, time.UTC), "2025-12-04T00:00:00.000000001Z"},
		"before 1970":    {time.Date(1950, 1, 3, 11, 0, 0, 0, time.UTC), "1950-01-03T11:00:00Z"},
		"year 9999":      {time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), "9999-12-31T23:59:59Z"},
	} {
		c := producertest.Config()
		c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
			id, err := producertest.Identify(s)
			id.Time = tc.in
			return id, err
		}
		msg, err := newProducer(t, c).Build(producertest.Sample)
		require.NoError(t, err, name)
		assert.Contains(t, msg.Body, `"event_time":"`+tc.want+`"`, name)
	}
}

func TestBuildRefuses(t *testing.T) {
	broken := errors.New("catalogue is down")
	for _, tc := range []struct {
		name, rule, says string
		change           func(*sqsfifo.Config[producertest.Scene], *sqsfifo.Identity)
	}{
		{"zero time", "SF044", "time.Now", func(_ *sqsfifo.Config[producertest.Scene], id *sqsfifo.Identity) { id.Time = time.Time{} }},
		{"year 10000", "SF044", "year", func(_ *sqsfifo.Config[producertest.Scene], id *sqsfifo.Identity) {
			id.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
		}},
		{"empty key", "SF045", "empty", func(_ *sqsfifo.Config[producertest.Scene], id *sqsfifo.Identity) { id.DedupeKey = "" }},
		{"key with a control character", "SF045", "control", func(_ *sqsfifo.Config[producertest.Scene], id *sqsfifo.Identity) { id.DedupeKey = "a\tb" }},
		{"key of 1025 bytes", "SF045", "1,024", func(_ *sqsfifo.Config[producertest.Scene], id *sqsfifo.Identity) {
			id.DedupeKey = strings.Repeat("k", 1025)
		}},
		{"no group", "SF009", "MessageGroupId", func(_ *sqsfifo.Config[producertest.Scene], id *sqsfifo.Identity) { id.Group = "" }},
		{"group with a blank", "SF010", "punctuation", func(_ *sqsfifo.Config[producertest.Scene], id *sqsfifo.Identity) { id.Group = "path 47" }},
		{"event id of version 4", "SF042", "version", func(_ *sqsfifo.Config[producertest.Scene], id *sqsfifo.Identity) {
			id.EventID = uuid.MustParse("9b7439e1-2c8a-4d9c-bc66-c9bcdf06e4b2")
		}},
		{"dataset without a version", "SF045", "version", func(_ *sqsfifo.Config[producertest.Scene], id *sqsfifo.Identity) {
			id.Dataset = &sqsfifo.Dataset{ID: "d", SourceURI: "https://h/a"}
		}},
		{"identity only in an attribute", "SF001", "unique_key", func(c *sqsfifo.Config[producertest.Scene], _ *sqsfifo.Identity) {
			c.Attributes = func(producertest.Scene) map[string]string {
				return map[string]string{"unique_key": "landsat-2025-12-04T00:00Z"}
			}
		}},
		{"empty attribute", "SF053", "empty", func(c *sqsfifo.Config[producertest.Scene], _ *sqsfifo.Identity) {
			c.Attributes = func(producertest.Scene) map[string]string { return map[string]string{"route": ""} }
		}},
		{"eleven attributes", "SF052", "11", func(c *sqsfifo.Config[producertest.Scene], _ *sqsfifo.Identity) {
			c.Attributes = func(producertest.Scene) map[string]string {
				m := map[string]string{}
				for i := range 11 {
					m[fmt.Sprintf("hint%d", i)] = "x"
				}
				return m
			}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id, err := producertest.Identify(producertest.Sample)
			require.NoError(t, err)
			c := producertest.Config()
			c.Identify = func(producertest.Scene) (sqsfifo.Identity, error) { return id, nil }
			tc.change(&c, &id)
			_, err = newProducer(t, c).Build(producertest.Sample)
			var v *sqsfifo.ViolationError
			require.ErrorAs(t, err, &v)
			require.Len(t, v.Findings, 1, "%v", err)
			assert.Equal(t, tc.rule, v.Findings[0].Rule)
			assert.Equal(t, tc.rule, v.ErrorType())
			assert.Contains(t, strings.ToLower(err.Error()), strings.ToLower(tc.says))
			assert.NotEmpty(t, v.Findings[0].Fix, "a refusal names the way out")
		})
	}
	c := producertest.Config()
	c.Identify = func(producertest.Scene) (sqsfifo.Identity, error) { return sqsfifo.Identity{}, broken }
	_, err := newProducer(t, c).Build(producertest.Sample)
	assert.ErrorIs(t, err, broken)
}

// Build refuses a payload that has no canonical JSON form, is not an object, or breaks a
// limit of SQS.
func TestBuildRefusesPayloads(t *testing.T) {
	refused := func(payload any) *sqsfifo.ViolationError {
		t.Helper()
		p := newProducer(t, sqsfifo.Config[any]{
			QueueURL: "https://h/q.fifo", Source: producertest.Source,
			Identify: func(any) (sqsfifo.Identity, error) {
				return sqsfifo.Identity{DedupeKey: "k", Group: "g", Time: producertest.Sample.Acquired}, nil
			},
		})
		_, err := p.Build(payload)
		var v *sqsfifo.ViolationError
		require.ErrorAs(t, err, &v)
		return v
	}
	v := refused(map[string]any{"count": int64(1<<53 + 1)})
	assert.Equal(t, "SF032", v.Findings[0].Rule)
	assert.Equal(t, "/payload/count", v.Findings[0].Pointer)
	require.ErrorIs(t, v, canonicaljson.ErrInexactInteger)

	assert.ErrorIs(t, refused(map[string]any{"name": "a\xff"}), canonicaljson.ErrInvalidUTF8)
	assert.ErrorIs(t, refused(map[string]any{"f": func() {}}), canonicaljson.ErrUnsupportedType)
	for _, notAnObject := range []any{nil, "text", 1, []int{1}, (*producertest.Scene)(nil)} {
		assert.Equal(t, "SF046", refused(notAnObject).Findings[0].Rule, "%v", notAnObject)
	}
	assert.Equal(t, "SF051", refused(map[string]any{"text": "\uffff"}).Findings[0].Rule, "SQS refuses U+FFFF")
	assert.Equal(t, "SF050", refused(map[string]any{"text": strings.Repeat("x", 1<<20)}).Findings[0].Rule)
}

func TestDatasetGivesTheDefaultKey(t *testing.T) {
	c := producertest.Config()
	c.Identify = func(producertest.Scene) (sqsfifo.Identity, error) {
		return sqsfifo.Identity{Group: "g", Time: producertest.Sample.Acquired, Dataset: &producertest.Storms}, nil
	}
	msg, err := newProducer(t, c).Build(producertest.Sample)
	require.NoError(t, err)
	assert.Equal(t, producertest.StormsKey, msg.DedupeKey)
}

func TestEventIDOfTheCaller(t *testing.T) {
	want := uuid.MustParse("0193917a-6b80-7c3e-9a5d-2f1b8c4d6e70")
	c := producertest.Config()
	c.Identify = func(s producertest.Scene) (sqsfifo.Identity, error) {
		id, err := producertest.Identify(s)
		id.EventID = want
		return id, err
	}
	msg, err := newProducer(t, c).Build(producertest.Sample)
	require.NoError(t, err)
	assert.Equal(t, want, msg.EventID)
	assert.Contains(t, msg.Body, want.String())
}

func TestDecodeReturnsWhatWasBuilt(t *testing.T) {
	msg, err := newProducer(t, producertest.Config()).Build(producertest.Sample)
	require.NoError(t, err)
	e, err := sqsfifo.DecodeEnvelope[producertest.Scene](msg.Body)
	require.NoError(t, err)
	assert.Equal(t, sqsfifo.Envelope[producertest.Scene]{
		DedupeKey: msg.DedupeKey, EventID: msg.EventID, EventSource: producertest.Source, EventTime: producertest.Sample.Acquired, Payload: producertest.Sample,
	}, e)
}

func TestDecodeRefuses(t *testing.T) {
	msg, err := newProducer(t, producertest.Config()).Build(producertest.Sample)
	require.NoError(t, err)
	for _, tc := range []struct{ name, body, says string }{
		{"blank", strings.Replace(msg.Body, ",", ", ", 1), "canonical"},
		{"unknown member", strings.Replace(msg.Body, `"payload":`, `"extra":1,"payload":`, 1), "extra"},
		{"missing member", strings.Replace(msg.Body, `"event_source":"`+producertest.Source+`",`, "", 1), "event_source"},
		{"not JSON", "hello", "JSON"},
		{"empty", "", "no canonical JSON"},
		{"KFM v10.3.1", `{"dataset_id":"d","event_id":"9b7439e1-2c8a-4d9c-bc66-c9bcdf06e4b2","event_type":"etl","idempotency_key":"sha256:1","source_uri":"https://h/a","version":"v10.3.1"}`, "v10.3.1"},
	} {
		_, err := sqsfifo.DecodeEnvelope[producertest.Scene](tc.body)
		var v *sqsfifo.EnvelopeError
		require.ErrorAs(t, err, &v, tc.name)
		assert.Contains(t, err.Error(), tc.says, tc.name)
	}

	_, err = sqsfifo.DecodeEnvelope[struct {
		ID int `json:"id"`
	}](msg.Body)
	var mismatch *json.UnmarshalTypeError
	require.ErrorAs(t, err, &mismatch, "a payload of another type")
}

// A team outside KFM sets its organization in the producer and nowhere else.
func TestOrganization(t *testing.T) {
	c := producertest.Config()
	c.Source = "acme.billing.invoices"
	var wrong *sqsfifo.InvalidError
	_, err := sqsfifo.NewProducer(producertest.NewQueue(t, sqstest.Config{}), c)
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, "Config.Source", wrong.Field)
	assert.ErrorContains(t, err, `set Organization to "acme"`)

	c.Organization = "acme"
	p := newProducer(t, c)
	msg, err := p.Build(producertest.Sample)
	require.NoError(t, err)
	e, err := sqsfifo.DecodeEnvelope[producertest.Scene](msg.Body)
	require.NoError(t, err)
	assert.Equal(t, c.Source, e.EventSource)

	q := producertest.NewQueue(t, sqstest.Config{})
	ofQueue := c
	ofQueue.QueueURL = q.URL()
	p, err = sqsfifo.NewProducer(q, ofQueue)
	require.NoError(t, err)
	_, err = p.SendMessage(t.Context(), msg)
	require.NoError(t, err, "a message that was built elsewhere")
	c.Source, c.Organization = producertest.Source, ""
	foreign, err := newProducer(t, c).Build(producertest.Sample)
	require.NoError(t, err)
	other := producertest.NewQueue(t, sqstest.Config{})
	ofQueue.QueueURL = other.URL()
	p, err = sqsfifo.NewProducer(other, ofQueue)
	require.NoError(t, err)
	_, err = p.SendMessage(t.Context(), foreign)
	require.NoError(t, err, "a message that a producer of another organization built")
	malformed := *foreign
	malformed.Body = strings.Replace(foreign.Body, `"event_source":"kfm.`, `"event_source":"Kfm.`, 1)
	_, err = p.SendMessage(t.Context(), &malformed)
	var refused *sqsfifo.ViolationError
	require.ErrorAs(t, err, &refused, "a label that no organization has")
	assert.Equal(t, "SF043", refused.Findings[0].Rule)

	for organization, says := range map[string]string{"Acme": "which has 'A'", "acme.eu": "which has '.'"} {
		c.Organization, c.Source = organization, organization+".billing.invoices"
		_, err = sqsfifo.NewProducer(producertest.NewQueue(t, sqstest.Config{}), c)
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, "Config.Organization", wrong.Field)
		assert.ErrorContains(t, err, says)
	}
}

// A text that was cut inside of a character is refused, with the reason and a remedy.
func TestTextsThatAreNotUnicode(t *testing.T) {
	type document struct {
		Title string            `json:"title"`
		Tags  map[string]string `json:"tags,omitempty"`
		Raw   json.RawMessage   `json:"raw,omitempty"`
	}
	q := producertest.NewQueue(t, sqstest.Config{})
	p, err := sqsfifo.NewProducer(q, sqsfifo.Config[document]{QueueURL: q.URL(), Source: producertest.Source, Identify: func(document) (sqsfifo.Identity, error) {
		return sqsfifo.Identity{DedupeKey: "k", Group: "g", Time: producertest.Sample.Acquired}, nil
	}})
	require.NoError(t, err)
	for _, d := range []document{
		{Title: "a\xf0\x9f"},
		{Title: "\xed\xa0\xbd"},
		{Tags: map[string]string{"k\xff": "v"}},
		{Raw: json.RawMessage(`{"t":"\ud83d"}`)},
		{Raw: json.RawMessage("{\"t\":\"\xf0\x9f\"}")},
	} {
		_, err := p.Send(t.Context(), d)
		require.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err))
		require.ErrorContains(t, err, "the text is not valid Unicode")
		require.ErrorContains(t, err, "base64")
		require.NotContains(t, err.Error(), "joining")
	}
}
