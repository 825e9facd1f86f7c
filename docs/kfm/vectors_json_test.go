package kfm

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// classRule maps a class of invalid JSON texts, such as "surrogate", to the rule of the
// KFM specification that forbids the texts, such as J3. The classes are those of the RFC
// 8785 test vectors in package canonicaljson.
var classRule = map[string]string{
	"syntax": "J1", "trailing-data": "J1", "byte-order-mark": "J1", "invalid-utf8": "J2", "surrogate": "J3", "duplicate-name": "J4",
	"number-range": "J10", "depth": "J11", "inexact-integer": "J12",
}

// jsonCases returns test vectors (inputs with the expected result) for the JSON rules of the
// specification. Most are vectors of package canonicaljson for strict parsing.
func jsonCases(t testing.TB) []vector {
	t.Helper()
	var out []vector
	add := func(rule, class, note, in string) {
		v := vector{Rule: rule, Op: "canonicalize", Note: note, In: input{Text: ptr(text(in))}}
		if class == "syntax" && !utf8.ValidString(in) {
			class = "invalid-utf8"
		}
		if class != "ok" {
			v.Rule, v.Refused = classRule[class], classRule[class]
			require.NotEmpty(t, v.Rule, class)
		}
		if len(in) < 200<<10 {
			out = append(out, v)
		}
	}
	const folder = "../../canonicaljson/testdata/vectors/"
	for _, file := range []struct{ name, rule string }{{"structure", "J5"}, {"strings", "J7"}, {"numbers", "J9"}, {"names", "J6"}} {
		readLines(t, folder+file.name+".jsonl", func(line []byte) {
			var v struct {
				Name   string           `json:"name"`
				Input  string           `json:"input"`
				Hex    string           `json:"input_hex"`
				Parts  [][2]any         `json:"input_parts"`
				Expect string           `json:"expect"`
				Strict string           `json:"strict"`
				_      *json.RawMessage // other members
			}
			require.NoError(t, json.Unmarshal(line, &v))
			for _, p := range v.Parts {
				v.Input += strings.Repeat(p[0].(string), int(p[1].(float64)))
			}
			if v.Hex != "" {
				b, err := hex.DecodeString(v.Hex)
				require.NoError(t, err)
				v.Input = string(b)
			}
			class := v.Expect
			if v.Strict != "" {
				class = v.Strict
			}
			add(file.rule, class, v.Name, v.Input)
		})
	}
	readLines(t, folder+"doubles.jsonl", func(line []byte) {
		var v struct{ IEEE string }
		require.NoError(t, json.Unmarshal(line, &v))
		b, err := strconv.ParseUint(v.IEEE, 16, 64)
		require.NoError(t, err)
		if f := math.Float64frombits(b); !math.IsNaN(f) && !math.IsInf(f, 0) {
			rule := "J9"
			if f == 0 {
				rule = "J8"
			}
			add(rule, "ok", "double "+v.IEEE, strconv.FormatFloat(f, 'e', 17, 64))
		}
	})
	for _, s := range []string{"-0", "-0.0e5", "0.000", "1e-400", "[0.1,-1e-324,0.30000000000000004]", "2.4703282292062327208e-324"} {
		add("J8", "ok", "nearest double", s)
	}
	add("J8", "ok", "a tie goes to the even neighbour", "9007199254740993.0")
	for _, s := range []string{"[ ]", "{\n}", "[1 , [ 2,3 ] , {} ]", `{"b" : null , "a" : [true,false] }`} {
		add("J5", "ok", "white space", s)
	}
	for _, s := range []string{"", " ", "'a'", "[1,]", `{"a":1,}`, "{a:1}", "01", "+1", ".5", "1.", "1e", "NaN", "-Infinity", "tru", "[1}", `{"a" 1}`, "// c\n1", `"\a"`, "\"\t\"", "1 2", "\u00a01", "[", `{"a":`, `"`, "\ufeff1", "nul\u0131", `"` + strings.Repeat("a", 20000), `["` + strings.Repeat(`a\\`, 300)} {
		add("", "syntax", "not JSON", s)
	}
	for i, s := range []string{"\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "{\"\xe9\":1}"} {
		add("", "invalid-utf8", "bytes "+strconv.Itoa(i+1), s)
	}
	add("", "duplicate-name", "in a nested object, with an escape", `{"a":[{"b":1,"\u0062":2}]}`)
	add("J6", "ok", "an astral character sorts before U+E000", "{\"\ue000\":1,\"\U00010000\":2,\"\ud7ff\":3}")
	add("J6", "ok", "the prefix comes first", `{"aa":1,"a":2,"":3,"aA":4}`)
	add("J7", "ok", "every control character", `"\u0000\u0001\u0008\u0009\u000a\u000b\u000c\u000d\u000e\u001f\u007f\u0080"`)
	add("J7", "ok", "no normalisation", "\"\u00e9 e\u0301 \u212b \u00c5\"")
	add("J11", "ok", "10,000 levels", strings.Repeat("[", 10000)+strings.Repeat("]", 10000))
	for _, s := range []string{"9007199254740991", "-9007199254740991", "9007199254740992", "295147905179352830000", "9007199254740993.5", "9007199254740993e0", "1" + strings.Repeat("0", 22), "-0"} {
		add("J12", "ok", "an integer that stays, or no integer literal", s+" ")
	}
	for _, s := range []string{"9007199254740993", "-9007199254740993", "18446744073709551615", "1152921504606846976", "100000000000000000000001"} {
		add("", "inexact-integer", "an integer that rounding would change", "["+s+"]")
	}
	for _, s := range []string{"", "hello", "{}", "é🙂", `{"dedupe_key":"a"}`} {
		out = append(out, good("H1", "hash", "SHA-256", input{Text: ptr(text(s))}))
		out = append(out, good("H2", "hash", "MD5", input{Text: ptr(text(s + " "))}))
	}
	var once []vector
	seen := map[string]bool{}
	for _, v := range out { // some cases occur in more than one source
		if id := v.Op + string(*v.In.Text); !seen[id] {
			seen[id] = true
			once = append(once, v)
		}
	}
	return once
}

// whiteSpace has the white space characters of section 1 of the specification.
const whiteSpace = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

func keyCases() []vector {
	join := func(parts ...string) input {
		all := make([]text, len(parts))
		for i, p := range parts {
			all[i] = text(p)
		}
		return input{Parts: &all}
	}
	key := func(s string) input { return input{Key: ptr(text(s))} }
	long := strings.Repeat("a", 1024)
	out := []vector{
		good("K1", "join_key", "one part", join("landsat")),
		good("K1", "join_key", "three parts", join("landsat", "LC08_L2SP_047027_20201204_20210313_02_T1", "v2")),
		good("K1", "join_key", "not ASCII", join("büro", "東京", "🙂")),
		good("K1", "join_key", "NFC and NFD are two keys", join("\u00e9", "e\u0301")),
		good("K2", "join_key", "a bar in the first part", join("a|b", "c")),
		good("K2", "join_key", "a bar in the second part", join("a", "b|c")),
		good("K2", "join_key", "backslashes", join(`a\`, `\b`, `\\`)),
		good("K2", "join_key", "backslash and bar", join(`a\|b`, `|`, `\|`)),
		refused("K3", "join_key", "no part", join()),
		refused("K3", "join_key", "an empty part alone", join("")),
		refused("K3", "join_key", "an empty part", join("a", "", "b")),
		refused("K3", "check_key", "empty", key("")),
		refused("K4", "join_key", "not UTF-8", join("a", "b\xff")),
		refused("K4", "check_key", "not UTF-8", key("a\xc3")),
		refused("K4", "join_key", "in a later part", join("a", "b\u009fc")),
		refused("K5", "join_key", "white space at the beginning", join(" a", "b")),
		refused("K5", "join_key", "white space at the end", join("a", "b\u3000")),
		refused("K5", "join_key", "white space alone", join(" ")),
		good("K5", "join_key", "white space inside", join("a b", " c ", "d")),
		good("K5", "check_key", "zero width space and byte order mark are not white space", key("\u200ba\ufeff")),
		good("K6", "join_key", "1,024 bytes", join(long)),
		refused("K6", "join_key", "1,025 bytes", join(long+"a")),
		refused("K6", "join_key", "the bar counts", join(long[:1000], strings.Repeat("b", 24))),
		refused("K6", "join_key", "the escapes count", join(strings.Repeat("|", 513))),
		good("K6", "join_key", "the escapes count", join(strings.Repeat("|", 512))),
		good("K6", "check_key", "bytes and not characters, fits", key(strings.Repeat("é", 512))),
		refused("K6", "check_key", "bytes and not characters", key(strings.Repeat("é", 513))),
	}
	for _, c := range []string{"\x00", "\t", "\n", "\x1f", "\x7f", "\u0080", "\u0085", "\u009f"} {
		out = append(out, refused("K4", "join_key", "control character", join("a"+c+"b")), refused("K4", "check_key", "control character", key("a"+c+"b")))
	}
	for _, c := range whiteSpace {
		if c != ' ' && c < 0xa0 {
			continue // a control character breaks rule K4, and this loop tests K5
		}
		out = append(out, refused("K5", "check_key", "white space", key(string(c)+"a")), refused("K5", "check_key", "white space", key("a"+string(c))))
	}
	return out
}

func timeCases() []vector {
	var out []vector
	add := func(make func(rule, op, note string, in input) vector, rule, note string, times ...string) {
		for _, s := range times {
			out = append(out, make(rule, "event_time", note, input{Time: s}))
		}
	}
	add(good, "T1", "offsets", "2025-12-04T11:03:21.5-06:00", "2025-12-04T17:03:21Z", "2026-01-01T05:29:59+05:30", "2025-12-31T23:59:59-00:01", "2024-02-29T00:00:00+14:00", "0001-01-01T00:00:01Z", "0000-03-01T00:00:00Z", "1500-02-28T23:00:00-01:00")
	add(good, "T2", "fractions", "2025-12-04T17:03:21.500Z", "2025-12-04T17:03:21.000Z", "2025-12-04T17:03:21.000000001Z", "2025-12-04T17:03:21.120Z", "2025-12-04T17:03:21.123456789Z", "2025-12-04T17:03:21.1000001Z", "1969-12-31T23:59:59.999999999Z")
	add(good, "T3", "leap years and bounds", "2000-02-29T12:00:00Z", "2024-02-29T12:00:00Z", "9999-12-31T23:59:59.999999999Z", "0000-01-01T00:00:00Z", "0000-02-29T00:00:00Z")
	add(refused, "T3", "no such time", "1900-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "2025-04-31T00:00:00Z", "2025-13-01T00:00:00Z", "2025-00-10T00:00:00Z", "2025-01-00T00:00:00Z", "2025-01-01T24:00:00Z", "2025-01-01T00:60:00Z", "2016-12-31T23:59:60Z")
	add(refused, "T3", "the year in UTC is out of range", "9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01")
	add(refused, "T4", "zero time", "0001-01-01T00:00:00Z", "0001-01-01T01:00:00+01:00", "0001-01-01T00:00:00.000Z")
	add(good, "T4", "one nanosecond later", "0001-01-01T00:00:00.000000001Z")
	add(good, "T5", "the largest offset", "2025-12-04T17:03:21+23:59", "2025-12-04T17:03:21-23:59")
	add(refused, "T5", "not a time", "", "2025-12-04", "2025-12-04T17:03:21", "2025-12-04t17:03:21Z", "2025-12-04T17:03:21z", "2025-12-04 17:03:21Z", "2025-12-04T17:03:21,5Z", "2025-12-04T17:03:21.Z", "2025-12-4T17:03:21Z", "2025-12-04T7:03:21Z", "2025-12-04T17:03:21+0600", "2025-12-04T17:03:21+24:00", "2025-12-04T17:03:21+01:60", "2025-12-04T17:03Z", " 2025-12-04T17:03:21Z", "2025-12-04T17:03:21Z\n", "+2025-12-04T17:03:21Z", "٢٠٢٥-12-04T17:03:21Z")
	id := func(rule, note, source, key, at string) {
		out = append(out, good(rule, "event_id", note, input{Source: &source, DedupeKey: ptr(text(key)), EventTime: at}))
	}
	const source, key, at = "kfm.remote-sensing.landsat-refresh", "landsat|LC08_L2SP_047027_20201204_20210313_02_T1", "2020-12-04T19:02:11.194Z"
	id("I1", "the contract's example", source, key, at)
	id("I1", "another key", source, key+"x", at)
	id("I1", "another source", source+"x", key, at)
	id("I1", "lengths keep source and key apart", source+key[:1], key[1:], at)
	id("I1", "lengths count bytes", "kfm.a.b", "büro|東京|🙂", at)
	id("I1", "a long key", "kfm.a.b", strings.Repeat("k", 300), at)
	for i := range 8 {
		id("I2", "layout", "kfm.soils.refresh", "soil|"+strconv.Itoa(i), "2025-06-01T00:00:0"+strconv.Itoa(i)+"Z")
	}
	id("I3", "milliseconds are rounded down", source, key, "2020-12-04T19:02:11.194999999Z")
	id("I3", "the first millisecond", source, key, "1970-01-01T00:00:00.001Z")
	id("I3", "the last time", source, key, "9999-12-31T23:59:59.999999999Z")
	id("I3", "the offset does not count", source, key, "2020-12-04T20:02:11.194+01:00")
	id("I4", "1970", source, key, "1970-01-01T00:00:00Z")
	id("I4", "a storm of 1950", "kfm.hazards.storm-events", "storm|10096222", "1950-04-28T20:45:00Z")
	id("I4", "half a millisecond before 1970", source, key, "1969-12-31T23:59:59.9995Z")
	id("I4", "year 0", source, key, "0000-01-01T00:00:00Z")
	return out
}
