package canonicaljson_test

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestErrorMessages(t *testing.T) {
	for _, row := range []struct {
		name, text, want string
	}{
		{"syntax", `{"a":[1,2,}`, `canonicaljson: byte 10, value at "/a/2": want a value, found "}": not JSON (RFC 8259)`},
		{"end of the text", `{"a":`, `canonicaljson: byte 5, value at "/a": want a value, found the end of the text: not JSON (RFC 8259)`},
		{"duplicate name", `{"a":1,"\u0061":2}`, `canonicaljson: byte 7, value at "/a": name "a": duplicate member name: names in an object have to be unique (RFC 8785 section 3.1)`},
		{"number", `[0,-1e999]`, `canonicaljson: byte 3, value at "/1": number "-1e999": number beyond the range of a double: encode it as a string (RFC 8785 section 3.2.2.3)`},
		{"integer", `[9007199254740993]`, `canonicaljson: byte 1, value at "/0": number "9007199254740993": integer outside ±(2^53-1), where a double holds every integer: encode it as a string (RFC 7493 section 2.2)`},
		{"surrogate", `"a\uD800b"`, `canonicaljson: byte 2: escape "\\uD800": lone surrogate: write both halves of the pair (RFC 8785 section 3.2.2.2)`},
		{"invalid UTF-8", "\"a\xff\"", `canonicaljson: byte 2: bytes "\xff\"": invalid UTF-8: convert it, or encode the bytes as base64 (RFC 8785 section 3.2.2.2)`},
		{"trailing data", `{}{}`, `canonicaljson: byte 2: trailing data after the value: canonicalise one value at a time (RFC 8259 section 2)`},
		{"byte order mark", "\ufeff{}", `canonicaljson: byte 0: byte order mark: strip it (RFC 8259 section 8.1)`},
		{"depth", strings.Repeat("[", 10_001), `canonicaljson: byte 10000, value at "/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0/0"... (20000 bytes): nested too deeply: the limit is 10000 levels`},
		{"long name", `{"` + strings.Repeat("é", 5000) + `":1,"` + strings.Repeat("é", 5000) + `":2}`, `canonicaljson: byte 10006, value at "/ééééééééééééééééééééééééééééééé"... (10001 bytes): name "éééééééééééééééé"... (10000 bytes): duplicate member name: names in an object have to be unique (RFC 8785 section 3.1)`},
		{"long number", strings.Repeat("9", 5000), `canonicaljson: byte 0: number "99999999999999999999999999999999"... (5000 bytes): number beyond the range of a double: encode it as a string (RFC 8785 section 3.2.2.3)`},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := canonicaljson.CanonicalizeStrict([]byte(row.text))
			assert.EqualError(t, err, row.want)
		})
	}
}

func TestErrorsOfPlainFunctions(t *testing.T) {
	_, err := canonicaljson.AppendString(nil, "caf\xe9")
	assert.EqualError(t, err, `canonicaljson: byte 3 of the string, "\xe9": invalid UTF-8: convert it, or encode the bytes as base64 (RFC 8785 section 3.2.2.2)`)
	var e *canonicaljson.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, int64(-1), e.Offset)
}

func TestTooLong(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector would touch all of the memory")
	}
	// Canonicalize reads only the length of this text, so most pages of the slice are
	// never used.
	text := make([]byte, canonicaljson.MaxLength+1)
	text[0] = ']'
	_, err := canonicaljson.Canonicalize(text)
	assert.ErrorIs(t, err, canonicaljson.ErrTooLong)
	assert.False(t, canonicaljson.IsCanonical(text))
}

// TestInputIsLeftAlone checks that Canonicalize neither changes its input nor shares
// memory with it.
func TestInputIsLeftAlone(t *testing.T) {
	for _, text := range []string{`{"a":"canonical"}`, `{"b":1,"a":"moved"}`, ` {"a" : "spread"} `, `"plain"`, `1`, `{"b":[{"d":1,"c":2}], "a":1.0}`} {
		src := []byte(text)
		got, err := canonicaljson.Canonicalize(src)
		require.NoError(t, err)
		require.Equal(t, text, string(src))
		want := string(got)
		for i := range src {
			src[i] = 'X'
		}
		assert.Equal(t, want, string(got))
		for i := range got[:cap(got)] {
			got[i] = 'Y'
		}
		assert.Equal(t, strings.Repeat("X", len(src)), string(src))
	}
}

// TestOutputIsOurs keeps results of Canonicalize and Marshal. Later calls use the same
// pooled buffers and must not change these results.
func TestOutputIsOurs(t *testing.T) {
	text, err := canonicaljson.Canonicalize([]byte(`{"b":1.0, "a":"\u0041"}`))
	require.NoError(t, err)
	value, err := canonicaljson.Marshal(map[string]string{"b": "x", "a": "y"})
	require.NoError(t, err)
	for range 100 {
		_, _ = canonicaljson.Canonicalize([]byte(`{"zzzzzzz" : 9 ,"yyyyyyy":"\u0042" }`))
		_, _ = canonicaljson.Marshal(map[string]string{"zzz": "zzz", "yyy": "yyy"})
	}
	assert.Equal(t, `{"a":"A","b":1}`, string(text))
	assert.Equal(t, `{"a":"y","b":"x"}`, string(value))
}

type event struct {
	DedupeKey string         `json:"dedupe_key"`
	ID        string         `json:"event_id"`
	Source    string         `json:"event_source"`
	Time      string         `json:"event_time"`
	Payload   map[string]any `json:"payload,omitempty"`
	Scene     scene          `json:"scene"`
}

type scene struct {
	Path  int       `json:"path"`
	Row   int       `json:"row"`
	Cloud float64   `json:"cloud_cover"`
	BBox  []float64 `json:"bbox"`
	Name  string    `json:"name"`
}

var sampleEvent = event{
	DedupeKey: "landsat:LC08_L2SP_005009_20150710:T2", ID: "014e7a6f-1c00-7a9f-8f3b-0c6d9a3c1e55", Source: "kfm.remote-sensing.landsat-refresh",
	Time: "2015-07-10T01:02:03Z", Scene: scene{5, 9, 54.65, []float64{-42.81076871497076, 71.03398759793903, -35.24761728197594, 73.37663856483091}, "Groenland é"},
}

func TestNoAllocations(t *testing.T) {
	unsorted := []byte(`{"event_source": "kfm.a.b", "dedupe_key":"k\u0041", "payload":{"z":[1.50,2e3,-65.613616999999977],"a":{"y":1,"x":2}}, "event_id":"x"}`)
	canonical, err := canonicaljson.Canonicalize(unsorted)
	require.NoError(t, err)
	long := []byte("[" + nearMiddle(1.5e-310, 30) + "," + nearMiddle(1.5, 700) + "]")
	quoted := any(&struct {
		S string `json:",string"`
	}{"<é>"})
	dst := make([]byte, 0, 4096)
	value := any(&sampleEvent)
	for _, row := range []struct {
		name string
		do   func() error
	}{
		{"Append", func() error { _, err := canonicaljson.Append(dst, unsorted); return err }},
		{"AppendStrict", func() error { _, err := canonicaljson.AppendStrict(dst, unsorted); return err }},
		{"Append, long numbers", func() error { _, err := canonicaljson.Append(dst, long); return err }},
		{"Append, canonical", func() error { _, err := canonicaljson.Append(dst, canonical); return err }},
		{"AppendValue", func() error { _, err := canonicaljson.AppendValue(dst, value); return err }},
		{"AppendValue, string in a string", func() error { _, err := canonicaljson.AppendValue(dst, quoted); return err }},
		{"AppendString", func() error { _, err := canonicaljson.AppendString(dst, "é\n"); return err }},
		{"AppendNumber", func() error { _, err := canonicaljson.AppendNumber(dst, 0.1); return err }},
		{"IsCanonical", func() error {
			if !canonicaljson.IsCanonical(canonical) || canonicaljson.IsCanonical(unsorted) {
				return errors.New("wrong")
			}
			return nil
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if raceEnabled {
				t.Skip("the race detector empties pools at random")
			}
			require.NoError(t, row.do())
			assert.Zero(t, testing.AllocsPerRun(200, func() { _ = row.do() }))
		})
	}
}

// TestPooledMemoryIsBounded canonicalises large texts, then many small ones, and
// measures the heap.
func TestPooledMemoryIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	heap := func() uint64 {
		runtime.GC() // the first collection does not free the entries of a sync.Pool
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for _, unit := range []string{
		`{ "zeta\u0041" : 1.50, "alpha" : {"b":[],"a":{}} },`,
		`1.50, `,
		`"\u0041",`,
	} {
		text := "[" + strings.Repeat(unit, 50<<20/len(unit)) + "0]"
		_, err := canonicaljson.Canonicalize([]byte(text))
		require.NoError(t, err)
	}
	dst := make([]byte, 0, 256)
	small := []byte(`{"b":1.0,"a":{"d":1,"c":2}}`)
	peak := uint64(0)
	for i := range 1_000_000 {
		var err error
		if dst, err = canonicaljson.Append(dst[:0], small); err != nil {
			t.Fatal(err)
		}
		if i%250_000 == 0 {
			// Measure the memory of the scanners in the pool: a single garbage collection
			// does not free them, so HeapAlloc includes them.
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapAlloc)
		}
	}
	during, after := int64(peak)-int64(before), int64(heap())-int64(before)
	t.Logf("%d bytes held while small texts are canonicalised, %d after it", during, after)
	assert.Less(t, during, int64(16<<20))
	assert.Less(t, after, int64(16<<20))
}

// Several goroutines use the package at the same time. They compile and use the encoders
// of types that contain each other, and canonicalise texts.
func TestConcurrentUse(t *testing.T) {
	type node struct {
		Name string           `json:"name"`
		Next *node            `json:"next,omitempty"`
		Many map[string]*node `json:"many,omitempty"`
		List []node           `json:"list,omitempty"`
	}
	value := node{"a", &node{Name: "b"}, map[string]*node{"z": {Name: "c"}, "y": nil}, []node{{Name: "d"}}}
	want := `{"list":[{"name":"d"}],"many":{"y":null,"z":{"name":"c"}},"name":"a","next":{"name":"b"}}`
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				got, err := canonicaljson.Marshal(value)
				assert.NoError(t, err)
				assert.Equal(t, want, string(got))
				got, err = canonicaljson.Canonicalize([]byte(` {"b":1, "a":[2.0]} `))
				assert.NoError(t, err)
				assert.Equal(t, `{"a":[2],"b":1}`, string(got))
			}
		})
	}
	wg.Wait()
}
