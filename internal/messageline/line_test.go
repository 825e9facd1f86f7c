package messageline

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// seeds are valid and invalid lines. The first four are lines as programs usually write
// them.
var seeds = []string{
	`{"at":"2025-12-04T12:00:00Z","group":"g","body":{"a":1},"attributes":{"k":"v"},"deduplication_id":"x"}`,
	`{"at":"2025-12-04T12:00:00Z","group":"g","body":"text"}`,
	` { "body" : { "a" : [ "}" , {"b":"\"" } ] } , "at" : "2025-12-04T12:00:00.5+01:00" , "group" : "g" } `,
	`{"group":"g","dedupe_key":"k","event_id":"0197a0c2-7f00-7000-8000-000000000000","body":"{\"dedupe_key\":\"k\"}","body_hash":"ab","status":"delivered","sent":{"from":"2025-12-04T12:00:00Z","to":"2025-12-04T12:00:01Z"},"message_id":"m"}`,
	`{"group":"g","body":"a","body":"b"}`,
	`{"at":"2025-12-04T12:00:00Z","at":"2025-12-05T12:00:00Z","group":"g","body":""}`,
	`{"body":"a","attributes":{"k":"1","k":"2"}}`,
	`{"body":"a","sent":{"to":"2025-12-04T12:00:00Z","to":"2025-12-05T12:00:00Z"}}`,
	`{"body":{"n":1,"n":2}}`,
	`{"body":{"n":9007199254740993}}`,
	`{"group":"\u0067","body":"\u0061\ud83d\ude00"}`,
	`{"group":"g","body":"\ud800"}`,
	"{\"body\":\"\xff\"}",
	"{\"group\":\"\xff\",\"body\":\"a\"}",
	`{"body":"\ufffd"}`,
	`{"body":"a"}{}`,
	`{"Body":"a"}`,
	`{"body":"a","attributes":null,"group":null}`,
	`{"body":null}`,
	`{"body":"a","attributes":{"k":null}}`,
	`{"body":"a","dataset":{"dataset_id":"i","version":"v","source_uri":"u"}}`,
	`{"body":"a","at":"2025-12-04T12:00:00,5Z"}`,
	`{"body":"a","at":"0001-01-01T00:00:00Z"}`,
	`{"body":"a","event_id":"x"}`,
	`{"body":"a",}`, `{,"body":"a"}`, `{"body":"a"`, `{"body":{"a":1]}`, `[]`, `null`, ``, `{}`,
}

// If parseFast accepts a line, parseSlow returns the same result.
func FuzzPathsAgree(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fast, ok := parseFast(text)
		if !ok {
			return
		}
		slow, err := parseSlow(text)
		require.NoError(t, err, "%q", text)
		for _, at := range []struct{ a, b *time.Time }{{&slow.At, &fast.At}, {&slow.SentFrom, &fast.SentFrom}, {&slow.SentTo, &fast.SentTo}} {
			assert.True(t, at.a.Equal(*at.b), "%q", text)
			_, a := at.a.Zone()
			_, b := at.b.Zone()
			assert.Equal(t, a, b)
			*at.a, *at.b = time.Time{}, time.Time{}
		}
		assert.Equal(t, slow, fast, "%q", text)
	})
}

// parseFast accepts lines as programs usually write them. parseSlow would take twice the
// time.
func TestUsualLinesAreFast(t *testing.T) {
	for _, s := range seeds[:4] {
		_, ok := parseFast([]byte(s))
		assert.True(t, ok, s)
	}
}

func TestParse(t *testing.T) {
	l, err := Parse([]byte(seeds[0]))
	require.NoError(t, err)
	assert.Equal(t, Line{
		Message: sqsfifo.Message{Group: "g", Body: `{"a":1}`, Attributes: map[string]string{"k": "v"}},
		At:      time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC), DeduplicationID: "x", Has: At | Group | Body | Attributes | DeduplicationID,
	}, l)
	l, err = Parse([]byte(seeds[3]))
	require.NoError(t, err)
	assert.Equal(t, uuid.MustParse("0197a0c2-7f00-7000-8000-000000000000"), l.EventID)
	assert.Equal(t, `{"dedupe_key":"k"}`, l.Body)
	assert.Equal(t, time.Second, l.SentTo.Sub(l.SentFrom))
	require.NoError(t, l.Only(Stored))
	require.EqualError(t, l.Only(Built), "body_hash, status, sent, message_id: not a member of a message to send; remove it")

	for text, says := range map[string]string{
		seeds[4]:                            "duplicate member name",
		seeds[5]:                            "duplicate member name",
		seeds[6]:                            "duplicate member name",
		seeds[7]:                            "duplicate member name",
		seeds[8]:                            "duplicate member name",
		seeds[9]:                            "body: ",
		seeds[11]:                           "surrogate",
		seeds[12]:                           "UTF-8",
		seeds[13]:                           "UTF-8",
		seeds[15]:                           "trailing data",
		`{"BODY":"a"}`:                      `unknown member "BODY"; the members of a message are at, group`,
		seeds[18]:                           "body: neither a string nor an object",
		seeds[19]:                           "attributes: k: not a string",
		seeds[21]:                           "at: ",
		seeds[22]:                           "at: the zero time",
		seeds[23]:                           "event_id: ",
		`{"group":"g"}`:                     "body is missing; it is a string, or an object",
		`{"body":"a","sent":{"at":"x"}}`:    `sent: unknown member "at"; sent has from and to`,
		`{"body":"a","group":1}`:            "group: not a string",
		`{"body":"a","dataset":{"name":1}}`: "dataset: ",
		`{"body":[1]}`:                      "body: neither",
		`[]`:                                "not a JSON object",
		`null`:                              "not a JSON object",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, says, text)
		assert.NotContains(t, err.Error(), "canonicaljson")
	}
	for _, text := range []string{seeds[10], seeds[14], seeds[16], seeds[17], seeds[20]} {
		_, err := Parse([]byte(text))
		require.NoError(t, err, text)
	}
}

// Canonical JSON allows 10,000 levels. The line is an object and counts as one level, so
// its body may have 9,999.
func TestDepth(t *testing.T) {
	for depth, good := range map[int]bool{9_999: true, 10_000: false} {
		text := `{"body":` + strings.Repeat(`{"a":`, depth) + `1` + strings.Repeat(`}`, depth) + `}`
		_, err := Parse([]byte(text))
		assert.Equal(t, good, err == nil, "%d: %v", depth, err)
	}
}

func TestMembers(t *testing.T) {
	for i, name := range names {
		assert.Equal(t, Members(1<<i), memberOf(name), name)
	}
	assert.Zero(t, memberOf("x"))
}

func BenchmarkParse(b *testing.B) {
	built := []byte(`{"group":"p32r29","dedupe_key":"landsat/p32r29/1","event_id":"0197a0c2-7f00-7000-8000-000000000000","body":"{\"dedupe_key\":\"landsat/p32r29/1\",\"event_id\":\"0197a0c2-7f00-7000-8000-000000000000\",\"event_source\":\"kfm.landsat.scenes\",\"event_time\":\"2025-12-04T12:00:00Z\",\"payload\":{\"cloud\":10,\"scene\":\"LC08\"}}"}`)
	logged := []byte(`{"at":"2025-12-04T12:00:00Z","group":"p32r29","body":{"dedupe_key":"landsat/p32r29/1","event_id":"0197a0c2-7f00-7000-8000-000000000000","event_source":"kfm.landsat.scenes","event_time":"2025-12-04T12:00:00Z","payload":{"cloud":10,"scene":"LC08"}}}`)
	for name, text := range map[string][]byte{"built": built, "logged": logged} {
		for path, parse := range map[string]func([]byte) (Line, error){"parse": Parse, "slow": parseSlow} {
			b.Run(name+"/"+path, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := parse(text); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// The names of the SQS API give the same line as ours.
func TestNamesOfTheAPI(t *testing.T) {
	at := `"at":"2025-12-04T12:00:00Z"`
	for aws, ours := range map[string]string{
		`{` + at + `,"QueueUrl":"u","DelaySeconds":0,"MessageBody":"{}","MessageGroupId":"g","MessageDeduplicationId":"d","MessageAttributes":{"k":{"DataType":"String","StringValue":"v"},"b":{"DataType":"Binary","BinaryValue":"AA=="}}}`: `{` + at + `,"group":"g","deduplication_id":"d","body":"{}","attributes":{"k":"v","b":"AA=="}}`,
		`{"Body":"x","MessageId":"m","MD5OfBody":"5","ReceiptHandle":"r","Attributes":{"SentTimestamp":"1764849600000","MessageGroupId":"g","MessageDeduplicationId":"d","SenderId":"s"}}`:                                                   `{` + at + `,"group":"g","deduplication_id":"d","body":"x","message_id":"m"}`,
		`{"Body":"x","group":"own",` + at + `,"Attributes":{"SentTimestamp":"1","MessageGroupId":"g"}}`:                                                                                                                                      `{` + at + `,"group":"own","body":"x"}`,
	} {
		got, err := Parse([]byte(aws))
		require.NoError(t, err, aws)
		want, err := Parse([]byte(ours))
		require.NoError(t, err)
		assert.Equal(t, want, got, aws)
	}
	for text, says := range map[string]string{
		`{"Body":"a","body":"b"}`:                                      "Body: the line has body, too",
		`{"Body":"a","MessageBody":"b"}`:                               "MessageBody: the line has body, too",
		`{"Body":"a","Attributes":{"SentTimestamp":"soon"}}`:           "Attributes: SentTimestamp is not a number",
		`{"Body":"a","Attributes":{"k":1}}`:                            "Attributes: k: not a string",
		`{"Body":"a","MessageAttributes":{"k":"v"}}`:                   "MessageAttributes: not an object of attribute values",
		`{"Body":"a","MessageAttributes":{"k":{"DataType":"String"}}}`: "MessageAttributes: k has neither",
		`{"Body":7}`: "body: neither",
	} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, says, text)
	}
}
