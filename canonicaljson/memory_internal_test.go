package canonicaljson

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// largeUnits are pieces of JSON. The test makes a large text from each piece, by repeating
// the piece. Different pieces fill different buffers of the scanner: for example, only names
// with escapes fill the buffer for decoded names.
var largeUnits = []string{
	`{"z":1,"a":{"y":2,"b":3}},`, `{"\u007a":1.50,"\u0061":2},`, `[[[[[]]]]],`, `{"":{}},`, `1.50,`, `"\u0041",`, `0.1000000000000000000000001,`, ` 1 ,`,
}

// TestIdleScannersAreBounded scans large texts. After free, the buffers of each scanner
// take at most maxKeptBytes.
func TestIdleScannersAreBounded(t *testing.T) {
	for _, unit := range largeUnits {
		for _, size := range []int{smallText - 10, 1 << 20, 8 << 20} {
			text := []byte("[" + strings.Repeat(unit, size/len(unit)) + "0]")
			s := new(scanner)
			require.True(t, s.scan(text), "%v", s.fault)
			s.appendResult(nil)
			assert.Equal(t, memoryOf(reflect.ValueOf(s).Elem()), s.bufferBytes(), "memory counts each buffer")
			if size < smallText {
				assert.LessOrEqual(t, s.bufferBytes(), 40*len(text)+4096, unit)
			}
			s.free()
			assert.LessOrEqual(t, s.bufferBytes(), maxKeptBytes, unit)
			assert.Nil(t, s.src)
		}
	}
	members := []byte(`{"n":0`)
	for i := range 200_000 {
		members = append(members, `,"`...)
		members = append(members, string(rune('a'+i%26))+strings.Repeat("x", i%7)...)
		members = append(members, string(rune(0x4e00+i%20_000))+string(rune(0x4e00+i/20_000))+`":0`...)
	}
	s := new(scanner)
	require.True(t, s.scan(append(members, '}')), "%v", s.fault)
	s.free()
	assert.LessOrEqual(t, s.bufferBytes(), maxKeptBytes, "an object of many members")
}

// memoryOf returns the bytes in all slices of a struct and its inner structs, except the
// text in src. It omits arrays, maps and pointers, whose memory is limited in other ways.
func memoryOf(v reflect.Value) int {
	n := 0
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Name, v.Field(i)
		switch {
		case name == "src":
		case f.Kind() == reflect.Slice:
			n += f.Cap() * int(f.Type().Elem().Size())
		case f.Kind() == reflect.Struct:
			n += memoryOf(f)
		}
	}
	return n
}

// TestIdleEncodersAreBounded encodes large values. After free, the buffers of each
// encoder take at most maxKeptBytes.
func TestIdleEncodersAreBounded(t *testing.T) {
	type quoted struct {
		S string `json:",string"`
	}
	entries := map[int]int{}
	for i := range 300_000 {
		entries[i] = i
	}
	for name, v := range map[string]any{
		"text":           strings.Repeat("x", 8<<20),
		"text in text":   quoted{strings.Repeat("x", 8<<20)},
		"entries":        entries,
		"entries, twice": []any{entries, map[string]any{"a": entries}},
	} {
		e := new(encoder)
		out, err := e.encode(e.scratch[:0], v)
		require.NoError(t, err)
		e.scratch = out
		e.free()
		assert.LessOrEqual(t, memoryOf(reflect.ValueOf(e).Elem()), maxKeptBytes, name)
	}
}

// TestIdleMapBuffersAreBounded encodes maps of few but large values, and then measures
// the memory that the idle map buffers keep.
func TestIdleMapBuffersAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	large := map[string]*[1 << 18]byte{}
	values := map[string][1 << 18]byte{}
	for i := range 32 {
		name := string(rune('a' + i))
		large[name], values[name] = new([1 << 18]byte), [1 << 18]byte{}
	}
	for _, v := range []any{values, large} {
		m := newMapEncoding(reflect.TypeOf(v))
		_, err := m.encodeMap(new(encoder), nil, reflect.ValueOf(v))
		require.Nil(t, err)
		b := m.buffers.Get().(*mapBuffer)
		assert.LessOrEqual(t, b.values.Cap()*int(b.values.Type().Elem().Size()), maxKeptBytes)
	}
}
