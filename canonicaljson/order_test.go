package canonicaljson_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// alphabet has characters with JSON escapes, and characters sorted differently by UTF-8
// and UTF-16.
var alphabet = []rune("\x00\t\n\x1f !\"/09AZ\\az~\u007f\u0080é߿ࠀ€\ud7ff\ue000דּ�\uffff\U00010000😀\U0010ffff")

func randomName(r *rand.Rand) string {
	n := r.IntN(12)
	name := make([]rune, n)
	for i := range name {
		name[i] = alphabet[r.IntN(len(alphabet))]
		if r.IntN(3) > 0 { // long common prefixes
			name[i] = 'a'
		}
	}
	return string(name)
}

// TestOrderIsUTF16 canonicalises objects with random names. The names of each result must
// be in the order of their UTF-16 code units (RFC 8785 section 3.2.3).
func TestOrderIsUTF16(t *testing.T) {
	r := rand.New(rand.NewPCG(8785, 1))
	for range 3_000 {
		names := map[string]bool{}
		for range 1 + r.IntN(40) {
			names[randomName(r)] = true
		}
		want := make([]string, 0, len(names))
		for name := range names {
			want = append(want, name)
		}
		slices.SortFunc(want, func(a, b string) int {
			return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
		})
		given := slices.Clone(want)
		r.Shuffle(len(given), func(i, j int) { given[i], given[j] = given[j], given[i] })

		var text strings.Builder
		for i, name := range given {
			fmt.Fprintf(&text, "%s%s:%d", []string{"{", ", "}[min(i, 1)], writtenOtherwise(r, name), slices.Index(want, name))
		}
		text.WriteString("}")
		got, err := canonicaljson.CanonicalizeStrict([]byte(text.String()))
		require.NoError(t, err, text.String())

		value := map[string]int{}
		for i, name := range want {
			value[name] = i
		}
		typed, err := canonicaljson.Marshal(value)
		require.NoError(t, err)
		assert.Equal(t, string(typed), string(got))

		d := json.NewDecoder(bytes.NewReader(got))
		_, _ = d.Token()
		for i, name := range want {
			token, err := d.Token()
			require.NoError(t, err)
			require.Equal(t, name, token, "member %d of %s", i, got)
			value, err := d.Token()
			require.NoError(t, err)
			require.Equal(t, float64(i), value)
		}
	}
}

// writtenOtherwise returns name as a JSON string with needless escapes.
func writtenOtherwise(r *rand.Rand, name string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range name {
		switch {
		case c >= ' ' && c != '"' && c != '\\' && r.IntN(4) > 0:
			b.WriteRune(c)
		default:
			for _, u := range utf16.Encode([]rune{c}) {
				fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[r.IntN(2)], u)
			}
		}
	}
	b.WriteByte('"')
	return b.String()
}

// TestMovingNestedObjects writes random trees as text, with the members of each object in
// random order. Canonicalize must return the canonical text of the tree.
func TestMovingNestedObjects(t *testing.T) {
	r := rand.New(rand.NewPCG(8785, 2))
	for range 3_000 {
		ordered, given := randomTree(r, 5)
		got, err := canonicaljson.CanonicalizeStrict([]byte(given))
		require.NoError(t, err, given)
		require.Equal(t, ordered, string(got), given)
		require.Equal(t, given == ordered, canonicaljson.IsCanonical([]byte(given)))
		require.True(t, canonicaljson.IsCanonical(got))
	}
}

// randomTree returns a tree in canonical form and in another form.
func randomTree(r *rand.Rand, depth int) (ordered, given string) {
	space := func() string { return []string{"", "", "", " ", "\n\t"}[r.IntN(5)] }
	kind := r.IntN(4)
	if depth == 0 {
		kind = 3
	}
	switch kind {
	case 0:
		var a, b []string
		for range r.IntN(5) {
			o, g := randomTree(r, depth-1)
			a, b = append(a, o), append(b, space()+g+space())
		}
		return "[" + strings.Join(a, ",") + "]", "[" + strings.Join(b, ",") + "]"
	case 1, 2:
		var a, b []string
		for i := range r.IntN(7) {
			o, g := randomTree(r, depth-1)
			name := fmt.Sprintf(`"member%d"`, i)
			a, b = append(a, name+":"+o), append(b, space()+name+space()+":"+space()+g+space())
		}
		if r.IntN(3) > 0 {
			r.Shuffle(len(b), func(i, j int) { b[i], b[j] = b[j], b[i] })
		}
		return "{" + strings.Join(a, ",") + "}", "{" + strings.Join(b, ",") + "}"
	}
	leaves := [][2]string{{"1", "1.0"}, {`"a/b"`, `"a\/b"`}, {"null", "null"}, {"1e+21", "1000000000000000000000"}, {`""`, `""`}, {"{}", "{ }"}, {"0.5", "5e-1"}, {"12", "12"}}
	leaf := leaves[r.IntN(len(leaves))]
	return leaf[0], leaf[1]
}

// An input 16 times as large may take up to 100 times the processor time; quadratic work
// would take 256 times. In the small input, a byte may take up to 60 times as long as in
// ordinary events.
func TestTimeIsLinear(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector's own time is not linear")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	object := func(n int, name func(i int) int) string {
		var b strings.Builder
		b.WriteByte('{')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"name%08d":%d`, name(i), i)
		}
		b.WriteByte('}')
		return b.String()
	}
	list := func(value string) func(n int) string {
		return func(n int) string { return "[" + strings.Repeat(value+",", n*20/(len(value)+1)) + "0]" }
	}
	for _, shape := range []struct {
		name string
		make func(n int) string
	}{
		{"small numbers", list("1.5")},
		{"subnormal numbers", list("5e-324")},
		{"subnormal numbers of 17 digits", list("4.9406564584124654e-310")},
		{"subnormal numbers of 40 digits", list("4.940656458412465441765687928682213723651e-310")},
		{"numbers below all doubles", list("1e-400")},
		{"integers half way between doubles", list("9007199254740993")},
		{"fractions half way between doubles", list("4503599627370497.5")},
		{"numbers near the middle of small doubles", list(nearMiddle(1.2345e-300, 20))},
		{"numbers near the middle of subnormal doubles", list(nearMiddle(1.2345e-310, 20))},
		{"numbers near the middle of large doubles", list(nearMiddle(1.2345e300, 20))},
		{"long numbers near the middle", list(nearMiddle(1.2345e-300, 760))},
		{"empty arrays", list("[]")},
		{"empty objects", list("{}")},
		{"objects out of order", list(`{"b":0,"a":{"d":0,"c":0}}`)},
		{"short strings", list(`"\u0041"`)},
		{"ascending names", func(n int) string { return object(n, func(i int) int { return i }) }},
		{"descending names", func(n int) string { return object(n, func(i int) int { return n - i }) }},
		{"random names", func(n int) string {
			p := rand.New(rand.NewPCG(1, 2)).Perm(n)
			return object(n, func(i int) int { return p[i] })
		}},
		{"names that go up and down", func(n int) string { return object(n, func(i int) int { return i ^ 1 }) }},
		{"levels out of order", func(n int) string {
			n /= 2 // the largest n is 20,000; halved, it gives MaxDepth levels
			return strings.Repeat(`{"b":1,"a":`, n) + "0" + strings.Repeat("}", n)
		}},
		{"levels of arrays", func(n int) string {
			n /= 2
			return strings.Repeat("[", n) + strings.Repeat("]", n)
		}},
		{"escapes", func(n int) string { return `"` + strings.Repeat(`\u0041\n`, n*6) + `"` }},
		{"escapes in a name", func(n int) string { return `{"b":0,"` + strings.Repeat(`\u0041\n`, n*6) + `":1}` }},
		{"white space", func(n int) string { return strings.Repeat(" ", n*20) + "0" + strings.Repeat("\n", n*20) }},
		{"digits", func(n int) string { return "0." + strings.Repeat("1", n*10) }},
		{"not closed", func(n int) string { return strings.Repeat(`{"a":`, n/2) }},
		{"duplicate at the end", func(n int) string {
			return strings.TrimSuffix(object(n, func(i int) int { return i }), "}") + `,"name00000000":0}`
		}},
	} {
		t.Run(shape.name, func(t *testing.T) {
			const n, most = 1_250, 60
			small, large, events := []byte(shape.make(n)), []byte(shape.make(16*n)), []byte(list(ordinary)(n))
			var dst []byte
			work := func(text []byte, times int) time.Duration {
				// Free memory first, because new pages from the operating system would be
				// slow.
				runtime.GC()
				start := processTime()
				for range times {
					dst, _ = canonicaljson.Append(dst[:0], text)
				}
				return processTime() - start
			}
			// least is the time of a measurement, far above the clock's resolution, and runs
			// is the number of measurements. The fastest of them counts.
			least, runs := 2*time.Millisecond, 5
			if testing.Short() {
				least, runs = 500*time.Microsecond, 2
			}
			// enough returns a number of repetitions that take at least this time.
			enough := func(text []byte) int {
				times := 1
				for work(text, times) < least {
					times *= 2
				}
				return times
			}
			times, timesEvents := enough(small), enough(events)
			var growth, cost float64
			for range 5 {
				once, sixteen, usual := time.Hour, time.Hour, time.Hour
				for range runs {
					once, sixteen, usual = min(once, work(small, times)), min(sixteen, work(large, times)), min(usual, work(events, timesEvents))
				}
				growth = float64(sixteen) / float64(once)
				perByte := float64(once) / float64(times) / float64(len(small))
				cost = perByte / (float64(usual) / float64(timesEvents) / float64(len(events)))
				if growth < 100 && cost < most {
					t.Logf("%.1f times as long for 16 times the input; %.1f times the cost of events for a byte", growth, cost)
					return
				}
			}
			t.Errorf("16 times the input takes %.1f times as long; a byte costs %.1f times what one of events costs, at most %d are allowed", growth, cost, most)
		})
	}
}

// ordinary is an event as producers send it.
const ordinary = `{"event_id":"014e7a6f-1c00-7a9f-8f3b-0c6d9a3c1e55","event_source":"kfm.remote-sensing.landsat-refresh","event_time":"2015-07-10T01:02:03Z","dedupe_key":"landsat:LC08_L2SP_005009_20150710","payload":{"scene_id":"LC08_L2SP_005009_20150710_02_T2","wrs_path":5,"wrs_row":9,"cloud_cover":54.65,"reprocessed":false}}`

// nearMiddle returns the decimal half way between f and the next double, cut to the
// given number of digits.
func nearMiddle(f float64, digits int) string {
	low, high := new(big.Float).SetPrec(4000).SetFloat64(f), new(big.Float).SetFloat64(math.Nextafter(f, math.Inf(1)))
	middle := low.Add(low, high)
	return middle.Quo(middle, big.NewFloat(2)).Text('e', digits-1)
}
