package lint_test

import (
	"fmt"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// goodBody is an envelope within all rules. Each test below changes one part of it.
const goodBody = `{"dedupe_key":"landsat|LC09_L2SP_028033_20251204","event_id":"019ae7b0-8c00-7abc-9def-0123456789ab",` +
	`"event_source":"kfm.remote-sensing.landsat-refresh","event_time":"2025-12-04T17:03:21.5Z",` +
	`"payload":{"cloud_cover":0.25,"path":28,"tile":"p28r33","usable":true}}`

func good() lint.Message {
	return lint.Message{Body: goodBody, GroupID: "p28r33"}
}

// body returns the message of good() with one part of its body replaced. It panics unless
// the text to replace occurs exactly once in the body.
func body(old, replacement string) lint.Message {
	if strings.Count(goodBody, old) != 1 {
		panic(old + " does not occur once")
	}
	m := good()
	m.Body = strings.Replace(goodBody, old, replacement, 1)
	return m
}

func with(change func(m *lint.Message)) lint.Message {
	m := good()
	change(&m)
	return m
}

func attribute(name string, a lint.Attribute) lint.Message {
	return with(func(m *lint.Message) { m.Attributes = map[string]lint.Attribute{name: a} })
}

func text(s string) lint.Attribute { return lint.Attribute{DataType: "String", StringValue: s} }

func attributes(n int) lint.Message {
	return with(func(m *lint.Message) {
		m.Attributes = map[string]lint.Attribute{}
		for i := range n {
			m.Attributes[fmt.Sprintf("hint%d", i)] = text("x")
		}
	})
}

// at returns the offset of s in goodBody. s must occur once.
func at(s string) int {
	if strings.Count(goodBody, s) != 1 {
		panic(s + " does not occur once")
	}
	return strings.Index(goodBody, s)
}

const (
	id     = "019ae7b0-8c00-7abc-9def-0123456789ab"
	source = "kfm.remote-sensing.landsat-refresh"
	clock  = "2025-12-04T17:03:21.5Z"
	key    = "landsat|LC09_L2SP_028033_20251204"
)

// The constant `none` is the field Offset of a finding without a position in the body.
const none = -1

type badCase struct {
	name    string
	message lint.Message
	field   string
	pointer string
	offset  int
	says    string // required text in the finding's message
}

type goodCase struct {
	name    string
	message lint.Message
}

// Each bad message breaks only the rule of its case, in one place. The good messages of a
// rule differ as little as possible from the bad ones.
var cases = []struct {
	rule string
	bad  []badCase
	good []goodCase
}{
	{
		rule: "SF001",
		bad: []badCase{
			{"snake case", attribute("unique_key", text("x1")), `MessageAttributes["unique_key"]`, "", none, `"unique_key" holds "x1"`},
			{"camel case", attribute("eventId", text("x1")), `MessageAttributes["eventId"]`, "", none, "silently dropped"},
			{"kebab case", attribute("dedupe-key", text("x1")), `MessageAttributes["dedupe-key"]`, "", none, goodBody[:60]},
			{"with a prefix", attribute("_watermill_message_uuid", text("x1")), `MessageAttributes["_watermill_message_uuid"]`, "", none, "hashes only the body"},
			{"a part of a leaf", attribute("event_id", text("LC09_L2SP")), `MessageAttributes["event_id"]`, "", none, "not a value of the body"},
			{"a name of the body", attribute("event_id", text("tile")), `MessageAttributes["event_id"]`, "", none, "not a value of the body"},
			{"number", attribute("job_id", lint.Attribute{DataType: "Number", StringValue: "17"}), `MessageAttributes["job_id"]`, "", none, `"17"`},
			{"binary", attribute("job_id", lint.Attribute{DataType: "Binary", BinaryValue: []byte{1, 2}}), `MessageAttributes["job_id"]`, "", none, `"AQI="`},
			{"explicit ID that is the hash", with(func(m *lint.Message) {
				m.Attributes = map[string]lint.Attribute{"event_id": text("x1")}
				m.DeduplicationID = hash(m.Body)
			}), `MessageAttributes["event_id"]`, "", none, "silently dropped"},
		},
		good: []goodCase{
			{"a string of the body", attribute("event_id", text(id))},
			{"a string of the payload", attribute("unique_key", text("p28r33"))},
			{"a number", attribute("job_id", lint.Attribute{DataType: "Number", StringValue: "28"})},
			{"a boolean", attribute("job_name", text("true"))},
			{"the whole key", attribute("dedupe_key", text(key))},
			{"a component of the key", attribute("message_id", text("LC09_L2SP_028033_20251204"))},
			{"binary as text", attribute("message_id", lint.Attribute{DataType: "Binary", BinaryValue: []byte("p28r33")})},
			{"binary as base64", with(func(m *lint.Message) {
				*m = body(`"p28r33"`, `"AQI="`)
				m.Attributes = map[string]lint.Attribute{"message_id": {DataType: "Binary", BinaryValue: []byte{1, 2}}}
			})},
			{"benign", attribute("X-Amzn-Request-Id", text("x1"))},
			{"trace context", attribute("traceparent", text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"))},
			{"routing hint", attribute("aggregate_id", text("x1"))},
			{"test key", attribute("test-key", text("x1"))},
		},
	},
	{
		rule: "SF009",
		bad: []badCase{
			{"empty", with(func(m *lint.Message) { m.GroupID = "" }), "MessageGroupId", "", none, "no MessageGroupId"},
		},
		good: []goodCase{{"one character", with(func(m *lint.Message) { m.GroupID = "0" })}},
	},
	{
		rule: "SF010",
		bad: []badCase{
			{"group with a blank", with(func(m *lint.Message) { m.GroupID = "p28 r33" }), "MessageGroupId", "", none, `' ' at byte 3`},
			{"group beyond ASCII", with(func(m *lint.Message) { m.GroupID = "größe" }), "MessageGroupId", "", none, `'ö' at byte 2`},
			{"group with DEL", with(func(m *lint.Message) { m.GroupID = "a\x7f" }), "MessageGroupId", "", none, "at byte 1"},
			{"group with invalid UTF-8", with(func(m *lint.Message) { m.GroupID = "a\xff" }), "MessageGroupId", "", none, "at byte 1"},
			{"group of 129", with(func(m *lint.Message) { m.GroupID = strings.Repeat("g", 129) }), "MessageGroupId", "", none, "129 characters, 128 are"},
			{"deduplication ID with a blank", with(func(m *lint.Message) { m.DeduplicationID = " " }), "MessageDeduplicationId", "", none, `' ' at byte 0`},
			{"deduplication ID of 129", with(func(m *lint.Message) { m.DeduplicationID = strings.Repeat("d", 129) }), "MessageDeduplicationId", "", none, "129 characters"},
		},
		good: []goodCase{
			{"128 and all punctuation", with(func(m *lint.Message) {
				m.GroupID = strings.Repeat("g", 128)
				m.DeduplicationID = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~azAZ09"
			})},
			{"no deduplication ID", good()},
		},
	},
	{
		rule: "SF011",
		bad: []badCase{
			{"one second", with(func(m *lint.Message) { m.DelaySeconds = 1 }), "DelaySeconds", "", none, "of 1 s"},
			{"negative", with(func(m *lint.Message) { m.DelaySeconds = -1 }), "DelaySeconds", "", none, "of -1 s"},
		},
		good: []goodCase{{"none", good()}},
	},
	{
		rule: "SF030",
		bad: []badCase{
			{"empty", body(goodBody, ""), "MessageBody", "", 0, "empty"},
			{"no JSON", body(goodBody, "racer-v6"), "MessageBody", "", 0, "JSON"},
			{"trailing comma", body(`true}}`, `true},}`), "MessageBody", "", at(`true}}`) + 6, "JSON"},
			{"two values", body(goodBody, goodBody+"{}"), "MessageBody", "", len(goodBody), "after the value"},
			{"invalid UTF-8", body(`"p28r33"`, "\"\xff\""), "MessageBody", "/payload/tile", at(`"p28r33"`) + 1, "UTF-8"},
			{"lone surrogate", body(`"p28r33"`, `"\ud800"`), "MessageBody", "/payload/tile", at(`"p28r33"`) + 1, "surrogate"},
			{"beyond a double", body(`0.25`, `1e400`), "MessageBody", "/payload/cloud_cover", at(`0.25`), "1e400"},
		},
		good: []goodCase{{"the greatest double", body(`0.25`, `1.7976931348623157e+308`)}},
	},
	{
		rule: "SF031",
		bad: []badCase{
			{"in the payload", body(`"usable":true`, `"tile":true`), "MessageBody", "/payload/tile", at(`"usable"`), `"tile"`},
			{"at top level", body(`"event_id"`, `"dedupe_key":"x","event_id"`), "MessageBody", "/dedupe_key", at(`"event_id"`), `"dedupe_key"`},
		},
		good: []goodCase{{"one name in two objects", body(`{"cloud_cover":0.25`, `{"a":{"tile":1},"cloud_cover":0.25`)}},
	},
	{
		rule: "SF032",
		bad: []badCase{
			{"2^53 + 1", body(`"path":28`, `"path":9007199254740993`), "MessageBody", "/payload/path", at(`28,"tile"`), "another event could get the same bytes"},
		},
		good: []goodCase{
			{"2^53 - 1", body(`"path":28`, `"path":9007199254740991`)},
			{"its own canonical form", body(`"path":28`, `"path":295147905179352830000`)},
		},
	},
	{
		rule: "SF033",
		bad: []badCase{
			{"blank", body(`:28,`, `: 28,`), "MessageBody", "", at(`28,"tile"`), `has " 28,`},
			{"line end", body(goodBody, goodBody+"\n"), "MessageBody", "", len(goodBody), `has "\n" where its canonical form ends`},
			{"order", body(`"cloud_cover":0.25,"path":28`, `"path":28,"cloud_cover":0.25`), "MessageBody", "", at(`cloud_cover`), `has "cloud_cover`},
			{"number text", body(`0.25`, `0.250`), "MessageBody", "", at(`0.25`) + 4, `has "0,\"path\":28,\"til…" where its canonical form has ",\"path`},
			{"needless escape", body(`"p28r33"`, `"\u00702833"`), "MessageBody", "", at(`"p28r33"`) + 1, "another hash"},
			{"minus zero", body(`0.25`, `-0`), "MessageBody", "", at(`0.25`), "another hash"},
			{"underflow", body(`0.25`, `1e-400`), "MessageBody", "", at(`0.25`), "another hash"},
		},
		good: []goodCase{
			{"needed escape", body(`"p28r33"`, `"\\\"\n\u001f"`)},
			{"beyond ASCII", body(`"p28r33"`, `"Größe 🙂"`)},
		},
	},
	{
		rule: "SF040",
		bad: []badCase{
			{"array", body(goodBody, `[]`), "MessageBody", "", 0, "an array"},
			{"string", body(goodBody, `"x"`), "MessageBody", "", 0, "a string"},
			{"number", body(goodBody, `-1`), "MessageBody", "", 0, "a number"},
			{"boolean", body(goodBody, `false`), "MessageBody", "", 0, "a boolean"},
			{"null", body(goodBody, `null`), "MessageBody", "", 0, "null"},
			{"all missing", body(goodBody, `{}`), "MessageBody", "", none, "lacks dedupe_key, event_id, event_source, event_time, payload"},
			{"one missing", body(`"event_id":"`+id+`",`, ``), "MessageBody", "", none, "lacks event_id"},
			{"one unknown", body(`,"payload"`, `,"extra/~":1,"payload"`), "MessageBody", "/extra~1~0", at(`"payload"`), `"extra/~"`},
			{
				"many unknown", body(goodBody, strings.Replace(goodBody, `{`, `{"0":0,"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,`, 1)),
				"MessageBody", "/0", 1, `"7" and 2 more`,
			},
			{"old members beside the new ones", body(`,"payload"`, `,"event_type":"etl","idempotency_key":"x","payload"`), "MessageBody", "/event_type", at(`"payload"`), `"idempotency_key"`},
		},
		good: []goodCase{{"the names within the payload", body(`{"cloud_cover"`, `{"Event_id":1,"cloud_cover"`)}},
	},
	{
		rule: "SF041",
		bad: []badCase{
			{
				"as specified", body(goodBody, `{"dataset_id":"noaa_storm_events_1950_2025","event_id":"9b7439e1-2c8a-4d9c-bc66-c9bcdf06e4b2","event_type":"etl",`+
					`"idempotency_key":"sha256:00","source_uri":"https://www.ncei.noaa.gov/storm-events/file_1950_2025.csv","version":"v10.3.1"}`),
				"MessageBody", "/dataset_id", 1, "v10.3.1 (dataset_id, event_type, idempotency_key, source_uri, version at top level)",
			},
			{"two of its members", body(goodBody, `{"event_type":"etl","idempotency_key":"sha256:00"}`), "MessageBody", "/event_type", 1, "v10.3.1"},
		},
		good: []goodCase{{"in the payload", body(`{"cloud_cover":0.25,`, `{"cloud_cover":0.25,"dataset_id":"x","idempotency_key":"x",`)}},
	},
	{
		rule: "SF042",
		bad: []badCase{
			{"version 4", body(`-7abc-`, `-4abc-`), "MessageBody", "/event_id", at(`"` + id), "version 4, not 7"},
			{"variant", body(`-9def-`, `-cdef-`), "MessageBody", "/event_id", at(`"` + id), "RFC 9562 variant"},
			{"variant below", body(`-9def-`, `-7def-`), "MessageBody", "/event_id", at(`"` + id), "RFC 9562 variant"},
			{"upper case A", body(`-7abc-`, `-7Abc-`), "MessageBody", "/event_id", at(`"` + id), "upper-case"},
			{"upper case F", body(`-7abc-`, `-7abF-`), "MessageBody", "/event_id", at(`"` + id), "upper-case"},
			{"no hexadecimal digit", body(`-7abc-`, `-7abg-`), "MessageBody", "/event_id", at(`"` + id), "character 18 is not a hexadecimal digit"},
			{"no hyphen", body(`-7abc-`, `-7abc0`), "MessageBody", "/event_id", at(`"` + id), "character 19 is not a hyphen"},
			{"hyphen elsewhere", body(`-7abc-`, `-7a-c-`), "MessageBody", "/event_id", at(`"` + id), "character 17 is no"},
			{"too short", body(id, id[:35]), "MessageBody", "/event_id", at(`"` + id), "36 characters"},
			{"braces", body(id, "{"+id+"}"), "MessageBody", "/event_id", at(`"` + id), "36 characters"},
			{"no string", body(`"`+id+`"`, `7`), "MessageBody", "/event_id", at(`"` + id), "event_id is a number, not a string"},
		},
		good: []goodCase{
			{"variant 8", body(`-9def-`, `-8def-`)},
			{"variant b", body(`-9def-`, `-bdef-`)},
			{"time before 1970", body(`019ae7b0-8c00`, `00000000-0000`)},
		},
	},
	{
		rule: "SF043",
		bad: []badCase{
			{"two labels", body(source, "kfm.remote-sensing"), "MessageBody", "/event_source", at(`"` + source), "does not have the form"},
			{"four labels", body(source, source+".x"), "MessageBody", "/event_source", at(`"` + source), "does not have the form"},
			{"which is empty", body(source, "kfm..x"), "MessageBody", "/event_source", at(`"` + source), "which is empty"},
			{"empty last label", body(source, "kfm.x."), "MessageBody", "/event_source", at(`"` + source), "which is empty"},
			{"upper case", body(source, "kfm.remote.Landsat"), "MessageBody", "/event_source", at(`"` + source), `which has 'L'`},
			{"underscore", body(source, "kfm.remote_sensing.x"), "MessageBody", "/event_source", at(`"` + source), `'_'`},
			{"leading hyphen", body(source, "kfm.x.-y"), "MessageBody", "/event_source", at(`"` + source), "begins or ends with a hyphen"},
			{"trailing hyphen", body(source, "kfm.x-.y"), "MessageBody", "/event_source", at(`"` + source), "begins or ends with a hyphen"},
			{"no string", body(`"`+source+`"`, `{}`), "MessageBody", "/event_source", at(`"` + source), "event_source is an object, not a string"},
		},
		good: []goodCase{{"short labels, digits", body(source, "kfm.0.a-9z")}},
	},
	{
		rule: "SF044",
		bad: []badCase{
			{"no time", body(clock, "yesterday"), "MessageBody", "/event_time", at(`"` + clock), "not RFC 3339"},
			{"date alone", body(clock, "2025-12-04"), "MessageBody", "/event_time", at(`"` + clock), "not RFC 3339"},
			{"no zone", body(clock, "2025-12-04T17:03:21"), "MessageBody", "/event_time", at(`"` + clock), "not RFC 3339"},
			{"offset", body(clock, "2025-12-04T18:03:21+01:00"), "MessageBody", "/event_time", at(`"` + clock), "2025-12-04T17:03:21Z"},
			{"offset of zero", body(clock, "2025-12-04T17:03:21+00:00"), "MessageBody", "/event_time", at(`"` + clock), "2025-12-04T17:03:21Z"},
			{"trailing zero", body(clock, "2025-12-04T17:03:21.50Z"), "MessageBody", "/event_time", at(`"` + clock), "17:03:21.5Z"},
			{"fraction of zero", body(clock, "2025-12-04T17:03:21.0Z"), "MessageBody", "/event_time", at(`"` + clock), "17:03:21Z"},
			{"ten digits", body(clock, "2025-12-04T17:03:21.1234567891Z"), "MessageBody", "/event_time", at(`"` + clock), "21.123456789Z"},
			{"lower case", body(clock, "2025-12-04t17:03:21z"), "MessageBody", "/event_time", at(`"` + clock), "not RFC 3339"},
			{"comma", body(clock, "2025-12-04T17:03:21,5Z"), "MessageBody", "/event_time", at(`"` + clock), "21.5Z"},
			{"30 February", body(clock, "2025-02-30T17:03:21Z"), "MessageBody", "/event_time", at(`"` + clock), "not RFC 3339"},
			{"zero time", body(clock, "0001-01-01T00:00:00Z"), "MessageBody", "/event_time", at(`"` + clock), "never set"},
			{"no string", body(`"`+clock+`"`, `1764867801`), "MessageBody", "/event_time", at(`"` + clock), "event_time is a number, not a string"},
		},
		good: []goodCase{
			{"whole second", body(clock, "2025-12-04T17:03:20Z")},
			{"nine digits", body(clock, "2025-12-04T17:03:21.000000001Z")},
			{"before 1970", body(clock, "1950-01-03T11:00:00Z")},
		},
	},
	{
		rule: "SF045",
		bad: []badCase{
			{"empty", body(key, ""), "MessageBody", "/dedupe_key", at(`"` + key), "empty"},
			{"1,025 bytes", body(key, strings.Repeat("ü", 512)+"x"), "MessageBody", "/dedupe_key", at(`"` + key), "1,025 bytes, 1,024 are"},
			{"control character", body(key, `a\u0000b`), "MessageBody", "/dedupe_key", at(`"` + key), "U+0000 at byte 1"},
			{"C1 control character", body(key, "ab\u0085"), "MessageBody", "/dedupe_key", at(`"` + key), "U+0085 at byte 2"},
			{"no string", body(`"`+key+`"`, `null`), "MessageBody", "/dedupe_key", at(`"` + key), "dedupe_key is null, not a string"},
		},
		good: []goodCase{
			{"1,024 bytes", body(key, strings.Repeat("ü", 512))},
			{"blanks and quotes", body(key, `a \"b\" \\| c`)},
		},
	},
	{
		rule: "SF046",
		bad: []badCase{
			{"array", body(`{"cloud_cover":0.25,"path":28,"tile":"p28r33","usable":true}`, `[{}]`), "MessageBody", "/payload", at(`{"cloud`), "payload is an array"},
			{"null", body(`{"cloud_cover":0.25,"path":28,"tile":"p28r33","usable":true}`, `null`), "MessageBody", "/payload", at(`{"cloud`), "payload is null"},
		},
		good: []goodCase{{"empty object", body(`{"cloud_cover":0.25,"path":28,"tile":"p28r33","usable":true}`, `{}`)}},
	},
	{
		rule: "SF047",
		bad: []badCase{
			{"the sender's dataset", with(func(m *lint.Message) { m.KnowsDataset, m.DatasetID = knowsStorms, "storm" }), "Dataset", "", none, `no dataset "storm"`},
		},
		good: []goodCase{
			{"the record's ID", with(func(m *lint.Message) { m.KnowsDataset, m.DatasetID = knowsStorms, " storms " })},
			{"no dataset", with(func(m *lint.Message) { m.KnowsDataset = knowsStorms })},
			{"no catalogue", with(func(m *lint.Message) { m.DatasetID = "storm" })},
			{"known in the payload", with(func(m *lint.Message) {
				m.KnowsDataset, m.Body = knowsStorms, strings.Replace(m.Body, `"path":`, `"dataset_id":"storms","path":`, 1)
			})},
		},
	},
	{
		rule: "SF050",
		bad: []badCase{
			{
				"beyond the queue's limit", with(func(m *lint.Message) { m.MaxSize = len(goodBody) - 1 }), "MessageBody", "", none,
				fmt.Sprintf("%d bytes, 0 of them in attributes; the limit is %d", len(goodBody), len(goodBody)-1),
			},
			{"by an attribute", with(func(m *lint.Message) {
				m.Attributes = map[string]lint.Attribute{"hint": text("x")}
				m.MaxSize = len(goodBody) + len("hint")*1 + len("String")
			}), "MessageBody", "", none, "11 of them in attributes"},
			{"1 MiB and one byte", body(`p28r33`, strings.Repeat("p", 1<<20+1-len(goodBody)+6)), "MessageBody", "", none, "1,048,577 bytes, 0 of them in attributes; the limit is 1,048,576"},
		},
		good: []goodCase{
			{"at the queue's limit", with(func(m *lint.Message) {
				m.Attributes = map[string]lint.Attribute{"hint": text("x")}
				m.MaxSize = len(goodBody) + 11
			})},
			{"1 MiB", body(`p28r33`, strings.Repeat("p", 1<<20-len(goodBody)+6))},
		},
	},
	{
		rule: "SF051",
		bad: []badCase{
			{"U+FFFE", body(`p28r33`, "p\ufffe"), "MessageBody", "", at(`p28r33`) + 1, "U+FFFE"},
			{"U+FFFF", body(`p28r33`, "\uffff"), "MessageBody", "", at(`p28r33`), "U+FFFF"},
		},
		good: []goodCase{
			{"the ends of the ranges", body(`p28r33`, "\x7f\u0080\ud7ff\ue000\ufffd\U00010000\U0010ffff")},
			{"an escaped control character", body(`p28r33`, `\u0000`)},
		},
	},
	{
		rule: "SF052",
		bad:  []badCase{{"eleven", attributes(11), "MessageAttributes", "", none, "11 attributes, 10 are"}},
		good: []goodCase{{"ten", attributes(10)}},
	},
	{
		rule: "SF053",
		bad: []badCase{
			{"no name", attribute("", text("x")), `MessageAttributes[""]`, "", none, "no name"},
			{"name of 257", attribute(strings.Repeat("n", 257), text("x")), `MessageAttributes["` + strings.Repeat("n", 256) + `…"]`, "", none, "257 characters, 256 are"},
			{"reserved name", attribute("aWs.x", text("x")), `MessageAttributes["aWs.x"]`, "", none, "reserved"},
			{"reserved name", attribute("AMAZON.x", text("x")), `MessageAttributes["AMAZON.x"]`, "", none, "reserved"},
			{"leading dot", attribute(".x", text("x")), `MessageAttributes[".x"]`, "", none, "dot"},
			{"trailing dot", attribute("x.", text("x")), `MessageAttributes["x."]`, "", none, "dot"},
			{"blank in the name", attribute("a b", text("x")), `MessageAttributes["a b"]`, "", none, `' ' at byte 1`},
			{"invalid UTF-8 in the name", attribute("a\xff", text("x")), `MessageAttributes["a\xff"]`, "", none, "at byte 1"},
			{"no type", attribute("a", lint.Attribute{StringValue: "x"}), `MessageAttributes["a"]`, "", none, "no data type"},
			{"unknown type", attribute("a", lint.Attribute{DataType: "string", StringValue: "x"}), `MessageAttributes["a"]`, "", none, `"string" is none of`},
			{"type that only begins alike", attribute("a", lint.Attribute{DataType: "Stringy", StringValue: "x"}), `MessageAttributes["a"]`, "", none, `"Stringy" is none of`},
			{"type without its suffix", attribute("a", lint.Attribute{DataType: "String.", StringValue: "x"}), `MessageAttributes["a"]`, "", none, "no suffix"},
			{"type of 257", attribute("a", lint.Attribute{DataType: "String." + strings.Repeat("s", 250), StringValue: "x"}), `MessageAttributes["a"]`, "", none, "257 characters"},
			{"control character in the type", attribute("a", lint.Attribute{DataType: "String.\x01", StringValue: "x"}), `MessageAttributes["a"]`, "", none, "U+0001 at byte 7"},
			{"empty value", attribute("a", text("")), `MessageAttributes["a"]`, "", none, "empty value"},
			{"empty binary value", attribute("a", lint.Attribute{DataType: "Binary", BinaryValue: []byte{}}), `MessageAttributes["a"]`, "", none, "empty value"},
			{"binary value of a string", attribute("a", lint.Attribute{DataType: "String", BinaryValue: []byte("x")}), `MessageAttributes["a"]`, "", none, "has a binary value"},
			{"two values", attribute("a", lint.Attribute{DataType: "Binary.png", BinaryValue: []byte("x"), StringValue: "x"}), `MessageAttributes["a"]`, "", none, "has a string value"},
			{"control character in the value", attribute("a", text("x\x00")), `MessageAttributes["a"]`, "", none, "U+0000 at byte 1"},
			{"control character at the start", attribute("a", text("\x1fx")), `MessageAttributes["a"]`, "", none, "U+001F at byte 0"},
			{"empty value under a name of 256", attribute(strings.Repeat("n", 256), text("")), `MessageAttributes["` + strings.Repeat("n", 256) + `"]`, "", none, "empty value"},
			{"invalid UTF-8 in the value", attribute("a", text("x\xff")), `MessageAttributes["a"]`, "", none, "the value is not valid UTF-8"},
			{"empty identity", attribute("event_id", text("")), `MessageAttributes["event_id"]`, "", none, "empty value"},
		},
		good: []goodCase{
			{"256 characters", attribute(strings.Repeat("ü", 256), text("x"))},
			{"all kinds of characters", attribute("aZ09_-.é", text("é🙂\t\r\n"))},
			{"no prefix but a beginning", attribute("AWSTraceHeader", text("x"))},
			{"number", attribute("a", lint.Attribute{DataType: "Number.float", StringValue: "1.5"})},
			{"binary", attribute("a", lint.Attribute{DataType: "Binary", BinaryValue: []byte{0, 0xff}})},
			{"type of 256", attribute("a", lint.Attribute{DataType: "String." + strings.Repeat("s", 249), StringValue: "x"})},
		},
	},
}

func knowsStorms(datasetID string) bool { return datasetID == "storms" }
