package kfm

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"unicode/utf8"
)

// randomCases makes random inputs, many of them close to a limit of the specification,
// such as the largest integer.
type randomCases struct{ *rand.Rand }

func (r *randomCases) pick(all ...string) string { return all[r.IntN(len(all))] }

// often reports true in n of 10 calls.
func (r *randomCases) often(n int) bool { return r.IntN(10) < n }

// repeat calls the function `generate` a random number of times, at most n, and joins the
// results.
func (r *randomCases) repeat(n int, generate func() string) string {
	var b strings.Builder
	for range r.IntN(n + 1) {
		b.WriteString(generate())
	}
	return b.String()
}

// edit returns s unchanged in 7 of 10 calls. In the other calls it removes, inserts,
// replaces or doubles one byte.
func (r *randomCases) edit(s string) string {
	if r.often(7) || s == "" {
		return s
	}
	i := r.IntN(len(s))
	switch r.IntN(4) {
	case 0:
		return s[:i] + s[i+1:]
	case 1:
		return s[:i] + r.character() + s[i:]
	case 2:
		return s[:i] + r.character() + s[i+1:]
	}
	return s[:i] + s[i:i+1] + s[i:]
}

func (r *randomCases) character() string {
	switch r.IntN(8) {
	case 0:
		return string([]rune(whiteSpace)[r.IntN(utf8.RuneCountInString(whiteSpace))])
	case 1:
		return string(rune(r.IntN(0xa0)))
	case 2:
		return r.pick("|", `\`, `"`, "%", "+", "&", "=", "?", "#", "/", ":", "@", "[", "]", ".", "-", "\x00", "\x7f", "\xff", "\xed\xa0\x80", "\ufffe", "\uffff", "\ufeff")
	case 3:
		return r.pick("\u00e9", "e\u0301", "\ud7ff", "\ue000", "\U00010000", "\U0010ffff", "😀", "\u2028", "\u212a", "\u0130", "ſ")
	}
	return string(rune(' ' + r.IntN(95)))
}

func (r *randomCases) text(n int) string {
	s := r.repeat(n, r.character)
	if r.often(7) {
		return strings.ToValidUTF8(s, "?")
	}
	return s
}

func (r *randomCases) number() string {
	switch r.IntN(7) {
	case 0:
		f := math.Float64frombits(r.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) {
			f = 1
		}
		return strconv.FormatFloat(f, r.pick("e", "g", "E")[0], -1, 64)
	case 1:
		return strconv.FormatInt(1<<53+r.Int64N(400)-200, 10)
	case 2:
		return strconv.FormatUint(r.Uint64()>>r.IntN(60), 10) + strings.Repeat("0", r.IntN(6))
	case 3:
		return fmt.Sprintf("%s%d.%0*de%d", r.pick("", "-"), r.IntN(10), 1+r.IntN(20), r.Int64(), r.IntN(660)-340)
	case 4:
		return strconv.FormatFloat(math.Ldexp(r.Float64(), r.IntN(90)-45), 'f', r.IntN(25), 64)
	case 5:
		return r.pick("-0", "0.0", "1e21", "1e-7", "1e-6", "9.999999999999999e20", "123456789012345678901", "0.1e1", "1E400", "5e-324", "2.5e-324", "1.7976931348623158e308", "1.7976931348623159e308", "4.35", "100000000000000000000")
	}
	return strconv.Itoa(r.IntN(2000) - 1000)
}

func (r *randomCases) string() string {
	var b strings.Builder
	b.WriteByte('"')
	for range r.IntN(6) {
		switch r.IntN(5) {
		case 0:
			fmt.Fprintf(&b, r.pick(`\u%04x`, `\u%04X`), r.IntN(0x10000))
		case 1:
			b.WriteString(r.pick(`\n`, `\"`, `\\`, `\/`, `\b`, `\ud83d\ude00`, `\u0000`, `\u001f`, `\x`))
		default:
			b.WriteString(strings.NewReplacer(`"`, "", `\`, "").Replace(r.character()))
		}
	}
	return b.String() + `"`
}

// json returns a random text that is JSON in most cases.
func (r *randomCases) json(depth int) string {
	blank := func() string { return r.pick("", "", "", " ", "\n\t", "\r ") }
	kind := r.IntN(10)
	switch {
	case kind < 3 && depth > 0:
		var members []string
		for range r.IntN(5) {
			name := r.string()
			if r.often(5) {
				name = r.pick(`"a"`, `"b"`, `"A"`, `""`, `"é"`, `"😀"`, `"\ue000"`, `"__proto__"`, `"10"`, `"9"`)
			}
			members = append(members, blank()+name+blank()+":"+r.json(depth-1))
		}
		return blank() + "{" + strings.Join(members, ",") + blank() + "}" + blank()
	case kind < 5 && depth > 0:
		var items []string
		for range r.IntN(4) {
			items = append(items, r.json(depth-1))
		}
		return blank() + "[" + strings.Join(items, ",") + blank() + "]" + blank()
	case kind < 8:
		return blank() + r.number() + blank()
	case kind < 9:
		return r.pick("true", "false", "null")
	}
	return blank() + r.string() + blank()
}

func (r *randomCases) object() string {
	return "{" + r.pick("", `"n":`+r.number()+",") + `"v":` + r.json(3) + "}"
}

func (r *randomCases) key() string {
	return r.edit(r.pick("landsat|LC08|", "storm|10096222", `a\|b|`, "büro|", "") + strings.TrimSpace(strings.ToValidUTF8(r.repeat(4, func() string { return string(rune('a' + r.IntN(26))) }), "")))
}

func (r *randomCases) time() string {
	s := fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02d", r.pickYear(), r.IntN(13), r.IntN(32), r.IntN(25), r.IntN(61), r.IntN(61))
	if r.often(6) {
		s = fmt.Sprintf("%04d-%02d-%02dT%02d:%02d:%02d", r.pickYear(), 1+r.IntN(12), 1+r.IntN(29), r.IntN(24), r.IntN(60), r.IntN(60))
	}
	if r.often(5) {
		s += "." + r.pick("5", "500", "000", "123456789", "000000001", "120", fmt.Sprintf("%0*d", 1+r.IntN(9), r.IntN(10)))
	}
	s += r.pick("Z", "Z", "Z", "+01:00", "-06:00", "+23:59", "-23:59", "+24:00", "+0100", "z", fmt.Sprintf("+%02d:%02d", r.IntN(26), r.IntN(62)))
	if r.often(9) {
		return s
	}
	return strings.ToValidUTF8(r.edit(s), "")
}

func (r *randomCases) pickYear() int {
	return []int{0, 1, 4, 1500, 1582, 1900, 1969, 1970, 2000, 2024, 2025, 9999, r.IntN(10000)}[r.IntN(13)]
}

func (r *randomCases) source() string {
	if r.often(8) {
		return r.pick("kfm.remote-sensing.landsat-refresh", "kfm.a.b", "kfm.0.9-1")
	}
	return strings.ToValidUTF8(r.edit(r.pick("kfm.a.b", "acme.a.b", "kfm.a-.b", "kfm.A.b", "kfm.a.b.c", "kfm..b")), "")
}

func (r *randomCases) uri() string {
	if r.often(6) {
		return r.plainURI()
	}
	scheme := r.pick("https", "http", "HTTPS", "s3", "file", "ftp", "sftp", "a+b", "")
	host := r.pick("example.org", "Example.ORG", "h", "", "my_bucket", "1.2.3.4", "["+r.address()+"]", "caf\u00e9", "a%41", "u@h")
	port := r.pick("", "", "", ":", ":80", ":443", ":8443", ":0443", ":x")
	path := r.repeat(5, func() string {
		return "/" + r.pick("a", "b.csv", ".", "..", "", "%2e", "%2E%2e", "%2f", "%7e", "c d", "é", "%c3%a9", "%", "%zz", "a%41", "\u212a", "😀", "*", "~", "a;b=c,d", "[x]", "%25", r.character())
	})
	query := ""
	if r.often(4) {
		query = "?" + r.repeat(4, func() string {
			return r.pick("year", "state", "flag", "y%65ar", "month", "token", "X-Amz-Date", "%C3%BC", "ü", "") + r.pick("", "=", "=1", "=a+b", "=%2b", "=a=b", "=%ff", "=é", "=%") + r.pick("&", "&&", "")
		})
	}
	fragment := r.pick("", "", "", "#", "#part", "#a?b", "#%", "#%41")
	return r.edit(scheme + r.pick("://", "://", "://", "://", ":/", ":", "//") + host + port + path + query + fragment)
}

// plainURI returns a valid URI in most cases.
func (r *randomCases) plainURI() string {
	scheme := r.pick("https", "http", "HTTPS", "s3", "ftp", "sftp", "a+b")
	host := r.pick("example.org", "Example.ORG", "my_bucket", "1.2.3.4", "[2001:DB8:0:0::1]", "[::FFFF:1.2.3.4]", "[1:0:0:2::3]")
	path := r.repeat(5, func() string {
		return "/" + r.pick("a", "b.csv", ".", "..", "", "%2e", "%2E%2e", "%2f", "%7e", "c d", "é", "%c3%a9", "a%41", "😀", "a;b=c,d", "[x]", "%25", strings.Trim(r.character(), "|%\x00\x7f"))
	})
	query := ""
	if r.often(4) {
		query = "?" + r.repeat(4, func() string {
			return r.pick("year", "state", "flag", "y%65ar", "%C3%BC", "ü") + r.pick("", "=", "=1", "=a+b", "=%2b", "=a=b", "=%ff", "=é") + r.pick("&", "&&")
		})
	}
	return scheme + "://" + host + r.pick("", "", ":", ":80", ":443", ":8443", ":0443") + path + query + r.pick("", "", "#", "#part", "#a?b", "#%41")
}

func (r *randomCases) address() string {
	var groups []string
	for range r.IntN(10) {
		groups = append(groups, r.pick("0", "0", "0", "1", "db8", "FFFF", "00ab", "", "12345", "192.0.2.1", "1.2.3.04"))
	}
	return r.pick("", "::", "::ffff:", "1::", "2001:db8::") + strings.Join(groups, ":") + r.pick("", "", "", "::", "%25eth0")
}

func (r *randomCases) version() string {
	number := func() string { return r.pick("0", "1", "10", "3", "01", "", "007") }
	s := r.pick("v", "", "V", "vv") + number() + "." + number() + "." + number()
	if r.often(3) {
		s += "-" + r.pick("alpha", "0", "01", "a.b", "", "0a", "x-y", "1.02", "é")
	}
	if r.often(3) {
		s += "+" + r.pick("build", "001", "", "a.b", "a+b", "-")
	}
	return r.edit(s)
}

func (r *randomCases) attributes() map[string]string {
	out := map[string]string{}
	for range r.IntN(3) {
		name := r.pick("", "x_", "kfm.", "X-Amzn-", "request") + r.pick("event", "message", "dedupe", "unique", "job", "route", "trace", "uuid", "Größe") + r.pick("", "_", "-", ".", " ") + r.pick("id", "ID", "key", "name", "version", "uuid", "")
		out[strings.ToValidUTF8(r.edit(name), "")] = strings.ToValidUTF8(r.pick("1", "true", "landsat", "LC08", "1.5", "north", "", r.text(3)), "")
	}
	return out
}

// next returns a vector with a random operation and a random input. The output is not
// set.
func (r *randomCases) next() vector {
	of := func(op string, in input) vector { return vector{Op: op, In: in} }
	switch r.IntN(12) {
	case 0, 1, 2:
		return of("canonicalize", input{Text: ptr(text(r.edit(r.json(4))))})
	case 3:
		parts := []text{}
		for range 1 + r.IntN(4) {
			parts = append(parts, text(r.edit(r.pick("landsat", "a|b", `\`, "é", "x", "", " a", strings.Repeat("k", 300)))))
		}
		return of("join_key", input{Parts: &parts})
	case 4:
		return of("event_time", input{Time: r.time()})
	case 5:
		return of("event_id", input{Source: ptr(r.source()), DedupeKey: ptr(text(strings.ToValidUTF8(r.key(), ""))), EventTime: r.time()})
	case 6, 7:
		in := datasetOf(r.edit(r.pick("soil", " NOAA storm ", "a|b", "é")), r.version(), r.uri(), "year", "state", "flag", "ü")
		if r.often(7) {
			in.DatasetID, in.Version = ptr(text("soil")), ptr(text("v1.0.0"))
		}
		return of("dataset", in)
	case 8, 9:
		in := input{Source: ptr(r.source()), DedupeKey: ptr(text(r.key())), EventTime: r.time(), Payload: text(r.object())}
		if r.often(5) {
			in.EventTime, in.Source = exampleTime, ptr("kfm.a.b")
		}
		return of("envelope", in)
	case 10:
		in := eventOf(`landsat|LC08|a\|b`, `{"v":`+r.pick("1", "1.50", `"LC09"`, "true", "[]")+"}")
		in.Group, in.Attributes = ptr(strings.ToValidUTF8(r.edit("p32r29"), "")), r.attributes()
		return of("message", in)
	}
	in := bodyWith("dedupe_key", r.string(), "event_time", strconv.Quote(strings.ToValidUTF8(r.time(), "")), "payload", r.pick("{}", `{"a":1}`, r.object()))
	if r.often(5) {
		in = bodyWith("payload", r.pick("{}", `{"a":1}`, `{"v":`+r.json(2)+"}", "[]"))
	}
	in.Text = ptr(text(r.edit(string(*in.Text))))
	return of("check_body", in)
}
