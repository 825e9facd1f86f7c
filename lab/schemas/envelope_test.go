// Package schemas checks the JSON Schemas of docs/kfm/schemas, with an independent
// validator, against the code's output and input.
package schemas

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// compile reads a schema of this folder and checks it against its metaschema.
func compile(t testing.TB, file string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	schema, err := c.Compile("../../docs/kfm/schemas/" + file)
	require.NoError(t, err)
	return schema
}

// validate checks a JSON text against the schema.
func validate(t testing.TB, schema *jsonschema.Schema, text string) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err, text)
	return schema.Validate(value)
}

// item is an event with a payload of any form.
type item struct {
	id, group string
	at        time.Time
	payload   map[string]any
}

func (i item) MarshalJSON() ([]byte, error) { return json.Marshal(i.payload) }

func newProducer(t testing.TB, client sqsfifo.Client, q *sqstest.Queue, change ...func(*sqsfifo.Config[item])) *sqsfifo.Producer[item] {
	t.Helper()
	c := sqsfifo.Config[item]{
		QueueURL: q.URL(), Source: "kfm.remote-sensing.landsat-refresh",
		Identify: func(i item) (sqsfifo.Identity, error) {
			key, err := sqsfifo.JoinKey("landsat", i.id)
			return sqsfifo.Identity{DedupeKey: key, Group: i.group, Time: i.at}, err
		},
	}
	for _, f := range change {
		f(&c)
	}
	p, err := sqsfifo.NewProducer(client, c)
	require.NoError(t, err)
	return p
}

func newQueue(t testing.TB) *sqstest.Queue {
	t.Helper()
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	return q
}

// TestEnvelopes validates the bodies of generated events against the schema of an
// envelope.
func TestEnvelopes(t *testing.T) {
	const seed = 11_2_3
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	schema, q := compile(t, "envelope.schema.json"), newQueue(t)
	p := newProducer(t, q, q)
	for range 2_000 {
		m, err := p.Build(item{
			id: "id" + randomText(r) + "x", group: "p32r29", at: time.Unix(r.Int64N(4e9)-2e9, r.Int64N(1e9)).Add(-time.Duration(r.IntN(2)) * 24 * time.Hour),
			payload: map[string]any{randomText(r): randomText(r), "n": r.NormFloat64(), "list": []any{nil, true, map[string]any{}}},
		})
		require.NoError(t, err)
		require.NoError(t, validate(t, schema, m.Body), m.Body)
	}
}

func randomText(r *rand.Rand) string {
	alphabet := []rune("abcXYZ019|\\\"/ é€😀\u00a0\ufffd-_.:")
	text := make([]rune, 1+r.IntN(40))
	for i := range text {
		text[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(text)
}

// TestPublishedScenes validates the envelopes of published STAC items. It is skipped if the
// folder of real data (SQSFIFO_DATA) has no such items.
func TestPublishedScenes(t *testing.T) {
	folder := os.Getenv("SQSFIFO_DATA")
	if folder == "" {
		folder = "../../../shared/data"
	}
	files, err := filepath.Glob(filepath.Join(folder, "landsat", "*.json"))
	require.NoError(t, err)
	if len(files) == 0 {
		t.Skipf("no STAC items in %s; set SQSFIFO_DATA to a folder with landsat/*.json", folder)
	}
	schema, q := compile(t, "envelope.schema.json"), newQueue(t)
	p := newProducer(t, q, q)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var stac map[string]any
		require.NoError(t, json.Unmarshal(text, &stac))
		id, properties := stac["id"].(string), stac["properties"].(map[string]any)
		at, err := time.Parse(time.RFC3339Nano, properties["datetime"].(string))
		if err != nil {
			at, err = time.Parse(time.DateOnly, properties["datetime"].(string))
		}
		require.NoError(t, err, file)
		m, err := p.Build(item{id: id, group: fmt.Sprint(properties["landsat:wrs_path"], properties["landsat:wrs_row"]), at: at, payload: stac})
		require.NoError(t, err, file)
		require.NoError(t, validate(t, schema, m.Body), file)
	}
	t.Logf("%d scenes", len(files))
}

// beyondTheSchema lists the rules of package lint that the schema does not check. They
// are about the bytes of an envelope's text and not about its value.
var beyondTheSchema = map[string]bool{"SF030": true, "SF031": true, "SF032": true, "SF033": true, "SF050": true, "SF051": true}

// TestSchemaAgreesWithTheRules makes 20,000 random envelopes. The schema accepts an
// envelope if and only if the rules of package lint do, except for the rules in
// beyondTheSchema.
func TestSchemaAgreesWithTheRules(t *testing.T) {
	const seed = 2020_12
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	schema := compile(t, "envelope.schema.json")
	values := map[string][]any{
		"dedupe_key": {"", "k", "a|b", " ", "a\nb", "a\x7f", "a\u0085b", "\u00a0", "a b", " a", "a ", "a\u2003", "\u3000a", "ä", strings.Repeat("x", 1024), strings.Repeat("x", 1025), 1, nil, []any{}},
		"event_id": {
			"019ae7b0-8c00-7abc-9def-0123456789ab", "019AE7B0-8c00-7abc-9def-0123456789ab", "019ae7b0-8c00-4abc-9def-0123456789ab",
			"019ae7b0-8c00-7abc-cdef-0123456789ab", "019ae7b08c007abc9def0123456789ab", "019ae7b0-8c00-7abc-9def-0123456789ag", "", 7,
		},
		"event_source": {
			"kfm.a.b", "kfm.remote-sensing.landsat-refresh", "kfm.a", "kfm.a.b.c", "kfm..b", "kfm.-a.b", "kfm.a-.b", "kfm.a.b-", "kfm.A.b", "KFM.a.b",
			"kfm.a_b.c", "kfm.9.0", "kfm.a.b ", "kfm.a.b\n", "", false,
		},
		"event_time": {
			"2025-12-04T17:03:21Z", "2025-12-04T17:03:21.5Z", "2025-12-04T17:03:21.500Z", "2025-12-04T17:03:21.123456789Z", "2025-12-04T17:03:21.1234567891Z",
			"2025-12-04T17:03:21.Z", "2025-12-04T17:03:21+00:00", "2025-12-04T11:03:21-06:00", "2025-12-04t17:03:21Z", "2025-12-04 17:03:21Z", "2025-12-04",
			"2025-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2025-13-01T00:00:00Z", "2025-12-04T24:00:00Z", "2025-12-04T23:59:60Z", "2025-12-04T23:60:00Z",
			"0001-01-01T00:00:00Z", "0001-01-01T00:00:00.5Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "", 0,
		},
		"payload": {map[string]any{}, map[string]any{"a": 1}, []any{}, "p", nil, 1, true},
	}
	valid := 0
	for range 20_000 {
		envelope := map[string]any{}
		for name, vs := range values {
			envelope[name] = vs[0]
			if name == "dedupe_key" {
				envelope[name] = "k"
			}
			if r.IntN(4) == 0 {
				envelope[name] = vs[r.IntN(len(vs))]
			}
			if r.IntN(30) == 0 {
				delete(envelope, name)
			}
		}
		if r.IntN(20) == 0 {
			envelope["version"] = "v10.3.1"
		}
		text, err := canonicaljson.Marshal(envelope)
		require.NoError(t, err)
		accepted := true
		for _, f := range lint.CheckBody(string(text)) {
			accepted = accepted && (f.Severity != lint.Error || beyondTheSchema[f.Rule])
		}
		err = validate(t, schema, string(text))
		if !assert.Equal(t, accepted, err == nil, "%s: the rules say %v, the schema %v", text, lint.CheckBody(string(text)), err) {
			return
		}
		if accepted {
			valid++
		}
	}
	assert.Greater(t, valid, 1_000)
	t.Logf("%d of 20000 are envelopes", valid)
}
