package kfm

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	exampleSource = "kfm.remote-sensing.landsat-refresh"
	exampleTime   = "2025-12-04T17:03:21.5Z"
	exampleID     = "019ae7b0-8c00-7abc-9def-0123456789ab"
)

// bodyWith returns a canonical body as input. The parameter `changes` has pairs of a
// member's name and its new JSON text; the text "" removes the member.
func bodyWith(changes ...string) input {
	members := map[string]string{
		"dedupe_key": `"landsat|1"`, "event_id": `"` + exampleID + `"`, "event_source": `"` + exampleSource + `"`,
		"event_time": `"` + exampleTime + `"`, "payload": `{"tile":"p32r29"}`,
	}
	for i := 0; i < len(changes); i += 2 {
		members[changes[i]] = changes[i+1]
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if members[name] != "" {
			all = append(all, fmt.Sprintf("%q:%s", name, members[name]))
		}
	}
	return bodyText("{" + strings.Join(all, ",") + "}")
}

func bodyText(s string) input { return input{Text: ptr(text(s))} }

func of(organization string, in input) input {
	in.Organization = organization
	return in
}

func eventOf(key, payload string) input {
	return input{Source: ptr(exampleSource), DedupeKey: ptr(text(key)), EventTime: exampleTime, Payload: text(payload)}
}

func envelopeCases() []vector {
	var out []vector
	check := func(make func(rule, op, note string, in input) vector, rule, note string, ins ...input) {
		for _, in := range ins {
			out = append(out, make(rule, "check_body", note, in))
		}
	}
	source := func(make func(rule, op, note string, in input) vector, rule, note string, sources ...string) {
		for _, s := range sources {
			out = append(out, make(rule, "check_source", note, input{Source: &s}))
		}
	}
	// Section 6 of the specification: the form of the event ID.
	ids := func(make func(rule, op, note string, in input) vector, note string, ids ...string) {
		for _, id := range ids {
			check(make, "I5", note, bodyWith("event_id", `"`+id+`"`))
		}
	}
	ids(good, "variants", "019ae7b0-8c00-7abc-8def-0123456789ab", "019ae7b0-8c00-7abc-bdef-0123456789ab", "00000000-0000-7000-8000-000000000000")
	ids(refused, "not a lower-case UUIDv7", "", "019AE7B0-8C00-7ABC-9DEF-0123456789AB", "019ae7b08c007abc9def0123456789ab", "{019ae7b0-8c00-7abc-9def-0123456789ab}",
		"019ae7b0-8c00-4abc-9def-0123456789ab", "019ae7b0-8c00-8abc-9def-0123456789ab", "019ae7b0-8c00-7abc-7def-0123456789ab", "019ae7b0-8c00-7abc-cdef-0123456789ab",
		"019ae7b0-8c00-7abc-9def-0123456789a", "019ae7b0-8c00-7abc-9def-0123456789abc", "019ae7b0-8c00-7abc-9def-0123456789ag", "019ae7b08-c00-7abc-9def-0123456789ab")
	stored := eventOf("landsat|1", `{}`)
	stored.EventID = exampleID
	out = append(out, good("I5", "envelope", "a stored ID", stored))
	stored.EventID = "019ae7b0-8c00-4abc-9def-0123456789ab"
	out = append(out, refused("I5", "envelope", "a stored ID of version 4", stored))

	// Section 7: the event source.
	source(good, "S1", "three labels", "kfm.remote-sensing.landsat-refresh", "kfm.a.b", "kfm.0.9")
	source(refused, "S1", "not three labels", "kfm", "kfm.a", "kfm.a.b.c")
	source(good, "S2", "hyphens inside", "kfm.a-b.c--d", "kfm.1.2-3")
	source(refused, "S2", "not a label", "kfm.A.b", "kfm.a_b.c", "kfm.-a.b", "kfm.a-.b", "kfm..b", "kfm.a.", "kfm.a.é", "kfm.a.b\n", "kfm.a b.c")
	source(good, "S3", "every organization", "acme.a.b", "kfn.a.b")
	for _, s := range []string{"acme.a.b", "kfn.a.b"} {
		out = append(out, refused("S3", "check_source", "another organization", of("kfm", input{Source: &s})))
	}
	check(good, "S3", "every organization", bodyWith("event_source", `"acme.a.b"`))
	check(refused, "S3", "the source of another organization", of("kfm", bodyWith("event_source", `"acme.a.b"`)), of("acme", bodyWith()))
	check(good, "S3", "another organization", of("acme", bodyWith("event_source", `"acme.a.b"`)), of("x-1", bodyWith("event_source", `"x-1.a.b"`)))

	// Section 8: the envelope.
	check(good, "E1", "five members", bodyWith(), bodyWith("payload", "{}"), bodyWith("event_time", `"1950-04-28T20:45:00Z"`))
	for _, name := range []string{"dedupe_key", "event_id", "event_source", "event_time", "payload"} {
		check(refused, "E1", "without "+name, bodyWith(name, ""))
	}
	check(refused, "E1", "another member", bodyWith("trace_id", `"1"`), bodyWith("Payload", "{}"), bodyWith("version", `"1"`), bodyWith("idempotency_key", `"a"`, "version", `"1"`))
	check(refused, "E1", "not an object", bodyText("[]"), bodyText("null"), bodyText(`"landsat|1"`), bodyText("{}"))
	plain := string(*bodyWith().Text)
	check(refused, "E2", "not canonical", bodyText(plain+"\n"), bodyText(strings.Replace(plain, ":", ": ", 1)), bodyText(strings.Replace(plain, `"p32r29"`, `"\u007032r29"`, 1)),
		bodyText(strings.Replace(plain, `"p32r29"`, "1.0", 1)), bodyText(strings.Replace(plain, `"p32r29"`, `"a\/b"`, 1)),
		bodyText(`{"payload":{"tile":"p32r29"},`+strings.Replace(plain[1:], `,"payload":{"tile":"p32r29"}`, "", 1)))
	for _, name := range []string{"dedupe_key", "event_id", "event_source", "event_time"} {
		for _, value := range []string{"1", "null", "{}", `["a"]`} {
			check(refused, "E3", "not a string", bodyWith(name, value))
		}
	}
	check(refused, "K3", "in a body", bodyWith("dedupe_key", `""`))
	check(refused, "K4", "in a body", bodyWith("dedupe_key", `"a\nb"`), bodyWith("dedupe_key", "\"a\u0085b\""))
	check(refused, "K5", "in a body", bodyWith("dedupe_key", `" a"`), bodyWith("dedupe_key", "\"a\u00a0\""))
	check(refused, "K6", "in a body", bodyWith("dedupe_key", `"`+strings.Repeat("a", 1025)+`"`))
	check(refused, "S1", "in a body", bodyWith("event_source", `"landsat-refresh"`))
	check(refused, "S2", "in a body", bodyWith("event_source", `"kfm.a.B"`))
	check(refused, "T1", "in a body", bodyWith("event_time", `"2025-12-04T11:03:21.5-06:00"`), bodyWith("event_time", `"2025-12-04T17:03:21+00:00"`), bodyWith("event_time", `"2025-12-04"`), bodyWith("event_time", `"2025-12-04t17:03:21Z"`))
	check(refused, "T2", "in a body", bodyWith("event_time", `"2025-12-04T17:03:21.50Z"`), bodyWith("event_time", `"2025-12-04T17:03:21.0Z"`))
	check(good, "T2", "nine digits in a body", bodyWith("event_time", `"2025-12-04T17:03:21.123456789Z"`))
	check(refused, "T3", "in a body", bodyWith("event_time", `"2025-02-29T00:00:00Z"`), bodyWith("event_time", `"2025-12-04T23:59:60Z"`))
	check(refused, "T4", "in a body", bodyWith("event_time", `"0001-01-01T00:00:00Z"`))
	check(refused, "E4", "not an object", bodyWith("payload", `"p32r29"`), bodyWith("payload", "[]"), bodyWith("payload", "null"), bodyWith("payload", "1"))
	for _, payload := range []string{"[]", "null", `"a"`, "12"} {
		out = append(out, refused("E4", "envelope", "not an object", eventOf("landsat|1", payload)))
	}
	check(refused, "E5", "refused by SQS", bodyWith("payload", "{\"a\":\"\uffff\"}"), bodyWith("dedupe_key", "\"a\ufffe\""), bodyWith("payload", "{\"\ufffe\":1}"))
	check(good, "E5", "neighbours", bodyWith("payload", "{\"a\":\"\ufffd\U0001ffff\ufdd0\"}"))
	out = append(out, refused("E5", "envelope", "refused by SQS", eventOf("landsat|1", "{\"a\":\"\uffff\"}")))
	check(refused, "E6", "an old envelope", bodyText(`{"dataset_id":"noaa_storm_events","event_type":"refresh","idempotency_key":"sha256:7fd3","version":"v10.3.1"}`),
		bodyText(`{"event_type":"a","source_uri":"b"}`))
	check(refused, "J4", "in a body", bodyText(strings.Replace(plain, `{"tile"`, `{"tile":1,"tile"`, 1)))
	check(refused, "J12", "in a body", bodyWith("payload", `{"granule":9007199254740993}`))
	check(refused, "J11", "10,001 levels in a body", bodyWith("payload", `{"a":`+strings.Repeat("[", 9999)+strings.Repeat("]", 9999)+"}"))
	check(good, "J11", "10,000 levels in a body", bodyWith("payload", `{"a":`+strings.Repeat("[", 9998)+strings.Repeat("]", 9998)+"}"))

	for _, c := range []struct{ rule, note, key, payload string }{
		{"E2", "a payload in any spelling", "landsat|1", `{ "tile": "p32r29", "cloud_cover": 1.0e0, "bbox": [-37.018054, 69.378132, -0.0] }`},
		{"E2", "names of the payload are sorted at each level", "a", `{"z":{"b":1,"a":[{"d":1,"c":2}]},"A":1,"é":2,"😀":3,"דּ":4}`},
		{"E2", "escapes in the key", `a"b\|c`, "{}"},
		{"E2", "not ASCII", "büro|東京", `{"ort":"K\u00f6ln"}`},
		{"E1", "an empty payload", "landsat|2", "{}"},
	} {
		out = append(out, good(c.rule, "envelope", c.note, eventOf(c.key, c.payload)))
	}
	nested := func(levels int) string {
		return `{"a":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + "}"
	}
	out = append(out, good("J11", "envelope", "9,999 levels in a payload", eventOf("deep", nested(9999))),
		refused("J11", "envelope", "10,000 levels in a payload", eventOf("deep", nested(10000))))
	other := eventOf("invoice|1", `{"amount":"12.50"}`)
	other.Source, other.Organization = ptr("acme.billing.export"), "acme"
	out = append(out, good("S3", "envelope", "another organization", other))
	other.Organization = ""
	out = append(out, refused("S3", "envelope", "a writer without a configured organization", other))
	return out
}

func messageCases() []vector {
	var out []vector
	message := func(make func(rule, op, note string, in input) vector, rule, note, group, payload string, attributes ...string) {
		in := eventOf(`landsat|LC09|a\|b`, payload)
		in.Group = &group
		for i := 0; i < len(attributes); i += 2 {
			if in.Attributes == nil {
				in.Attributes = map[string]string{}
			}
			in.Attributes[attributes[i]] = attributes[i+1]
		}
		v := make(rule, "message", note, in)
		if v.Refused == "M4" || v.Refused == "M5" {
			// M4 and M5 only say which attribute names M3 checks. The rule that is broken is M3.
			v.Refused = "M3"
		}
		out = append(out, v)
	}
	for _, g := range []string{"p32r29", "!", "~a/b|c", strings.Repeat("g", 128)} {
		message(good, "M1", "a group", g, "{}")
	}
	for _, g := range []string{"", "path 32", "é", "a\n", "\x7f", strings.Repeat("g", 129)} {
		message(refused, "M1", "not a group", g, "{}")
	}
	message(good, "M2", "the hash of the body", "p32r29", `{"tile":"p32r29"}`)
	message(good, "M2", "attributes take no part", "p32r29", `{"tile":"p32r29"}`, "route", "north")
	const leaves = `{"id":"LC09_1","n":1.50,"deep":[{"ok":true,"none":null}],"name_only":{}}`
	for _, value := range []string{"LC09_1", "1.5", "true", "landsat", "LC09", "a|b", exampleSource, exampleTime, `landsat|LC09|a\|b`} {
		message(good, "M3", "a value of the body", "g", leaves, "event_id", value)
	}
	for _, value := range []string{`a\`, "b"} {
		in := eventOf(`a\\|b`, "{}")
		in.Group, in.Attributes = ptr("g"), map[string]string{"event_id": value}
		out = append(out, good("M3", "message", "a separator after an escaped backslash", in))
	}
	for _, value := range []string{"LC09_2", "1.50", "null", "name_only", "id", `a\|b`, "b", "LC09_", "LANDSAT"} {
		message(refused, "M3", "not a value of the body", "g", leaves, "event_id", value)
	}
	for _, name := range []string{"unique_key", "messageId", "MESSAGE-UUID", "x.dedup.id", "dedupekey", "deduplication_name", "idempotencyKey", "uuid", "scene_uuid", "job_id", "txn.id", "kfm_command_id", "uniqueness_key", "orderEventId"} {
		message(refused, "M4", "identifies an event", "g", "{}", name, "1")
		message(good, "M4", "identifies an event, which is in the body", "g", `{"copy":"1"}`, name, "1")
	}
	for _, name := range []string{"correlation_id", "X-Request-Id", "request_uuid", "traceuuid", "attempt.key", "tile_id", "event__id", "event_ids", "key", "aggregate_id", "event_idx", "event_\u212aey"} {
		message(good, "M4", "does not identify an event", "g", "{}", name, "1")
	}
	for _, name := range []string{"traceparent", "TraceState", "baggage", "b3", "AWSTraceHeader", "Content-Type", "sqsfifo-replay-run", "X-Amzn-Event-Id", "event_id_version", "eventSchemaId"} {
		message(good, "M5", "never identity", "g", "{}", name, "1")
	}
	message(refused, "M5", "almost the name of one", "g", "{}", "version_event_id", "1")
	ten := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("a%d", i), "x")
		}
		return all
	}
	message(good, "M6", "ten", "g", "{}", ten(10)...)
	message(refused, "M6", "eleven", "g", "{}", ten(11)...)
	for _, name := range []string{"route", "a-b_c.d", "Größe", "温度", "٣", strings.Repeat("n", 256), strings.Repeat("é", 256), "awsroute", "amazon"} {
		message(good, "M7", "a name", "g", "{}", name, "x")
	}
	for _, name := range []string{"", ".a", "a.", "a b", "a/b", "aws.route", "AMAZON.x", "Aws.Route", strings.Repeat("n", 257), "a\u0301", "½", "a\n"} {
		message(refused, "M7", "not a name", "g", "{}", name, "x")
	}
	for _, value := range []string{" ", "\t\r\n", "é🙂", "\u007f\u0085", "\ufffd"} {
		message(good, "M8", "a value", "g", "{}", "route", value)
	}
	for _, value := range []string{"", "a\x00", "\x1b", "\ufffe", "a\uffff"} {
		message(refused, "M8", "not a value", "g", "{}", "route", value)
	}
	const limit = 1 << 20
	overhead := func(attributes string) int {
		in := eventOf(`landsat|LC09|a\|b`, `{"a":""}`)
		out, err := operations["envelope"](&in)
		if err != nil {
			panic(err)
		}
		return len(out.(text)) + len(attributes)
	}
	message(good, "M9", "1,048,576 bytes", "g", `{"a":"`+strings.Repeat("a", limit-overhead(""))+`"}`)
	message(refused, "M9", "one byte more", "g", `{"a":"`+strings.Repeat("a", limit+1-overhead(""))+`"}`)
	message(good, "M9", "with an attribute", "g", `{"a":"`+strings.Repeat("a", limit-overhead("routeStringnorth"))+`"}`, "route", "north")
	message(refused, "M9", "one byte more with an attribute", "g", `{"a":"`+strings.Repeat("a", limit+1-overhead("routeStringnorth"))+`"}`, "route", "north")
	message(refused, "M9", "bytes and not characters", "g", `{"a":"`+strings.Repeat("é", limit/2)+`"}`)
	return out
}

// realCases returns vectors with events of real Landsat scenes, storms and soil surveys.
func realCases(t testing.TB) []vector {
	t.Helper()
	var out []vector
	add := func(rule, source, key, at, group, payload string, attributes map[string]string) {
		in := input{Source: &source, DedupeKey: ptr(text(key)), EventTime: at, Payload: text(payload), Group: &group, Attributes: attributes}
		out = append(out, good(rule, "message", "a real event", in))
	}
	raw, err := os.ReadFile("../../examples/landsat/scenes.json")
	require.NoError(t, err)
	var scenes []json.RawMessage
	require.NoError(t, json.Unmarshal(raw, &scenes))
	for _, s := range scenes {
		var scene struct {
			ID         string `json:"id"`
			Properties struct {
				At   string `json:"datetime"`
				Path string `json:"landsat:wrs_path"`
				Row  string `json:"landsat:wrs_row"`
			} `json:"properties"`
		}
		require.NoError(t, json.Unmarshal(s, &scene))
		add("M2", exampleSource, "landsat|"+scene.ID, scene.Properties.At, scene.Properties.Path+scene.Properties.Row, string(s), map[string]string{"platform": scene.ID[:4], "event_id": scene.ID})
	}
	for _, s := range []struct{ id, at, payload string }{
		{"10096222", "1950-04-28T14:45:00-06:00", `{"noaa_event_id":10096222,"state":"OKLAHOMA","kind":"Tornado","begin_lat":35.12,"begin_lon":-99.20,"damage_property":"250K"}`},
		{"10120412", "1950-04-29T15:30:00-06:00", `{"noaa_event_id":10120412,"state":"TEXAS","kind":"Tornado","begin_lat":31.90,"begin_lon":-98.60,"damage_property":"25K"}`},
		{"1091371", "2023-04-19T20:18:00-05:00", `{"noaa_event_id":1091371,"state":"KANSAS","kind":"Hail","magnitude":1.00,"narrative":"Hail \"quarter\" size\nnear Hays."}`},
	} {
		add("M2", "kfm.hazards.storm-events", "storm|"+s.id, s.at, "storms-"+s.at[:4], s.payload, nil)
	}
	for _, s := range []struct{ area, at, payload string }{
		{"KS209", "2025-09-10T00:00:00Z", `{"areasymbol":"KS209","areaname":"Wyandotte County, Kansas","saversion":22,"polygons":null,"ph_range":[5.6,7.80]}`},
		{"KS045", "2025-09-10T00:00:00.000Z", `{"areasymbol":"KS045","areaname":"Douglas County, Kansas","saversion":21,"ph_range":[5.1,8.4]}`},
	} {
		add("M2", "kfm.soils.ssurgo-refresh", "soil|"+s.area+"|2025", s.at, s.area, s.payload, nil)
	}
	return out
}
