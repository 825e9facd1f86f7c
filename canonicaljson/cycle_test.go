package canonicaljson_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type cyclic struct {
	Data string
	More []int
	Next *cyclic
}

type cyclicSlice []any

// TestCyclesAreRefusedEarly marshals values that contain themselves. Marshal refuses each
// value, as json.Marshal does, and allocates at most as much memory.
func TestCyclesAreRefusedEarly(t *testing.T) {
	allocated := func(do func()) uint64 {
		runtime.GC() // the first collection empties pools only partly
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	text := strings.Repeat("x", 20_000)
	pointer := &cyclic{Data: text, More: []int{1, 2}}
	pointer.Next = &cyclic{Next: pointer}
	slice := cyclicSlice{text, nil}
	slice[1] = slice
	mapping := map[string]any{"a": text, "b": nil}
	mapping["b"] = []any{mapping}
	for _, row := range []struct {
		name  string
		value any
		// step is a JSON pointer. Error.Pointer is step, repeated any number of times. One
		// step leads from the value back to itself, or two in the row "pointer".
		step string
	}{
		{"pointer", pointer, "/Next"},
		{"slice", slice, "/1"},
		{"map", mapping, "/b/0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var err, errJSON error
			theirs := allocated(func() { _, errJSON = json.Marshal(row.value) })
			ours := allocated(func() { _, err = canonicaljson.Marshal(row.value) })
			require.Error(t, errJSON)
			var e *canonicaljson.Error
			require.ErrorAs(t, err, &e)
			assert.ErrorIs(t, err, canonicaljson.ErrDepth)
			assert.Contains(t, err.Error(), "contains itself")
			assert.Empty(t, strings.ReplaceAll(e.Pointer+row.step, row.step, ""), "%.60q", e.Pointer)
			assert.LessOrEqual(t, ours, theirs, "bytes allocated")
			t.Logf("%d bytes allocated, encoding/json %d", ours, theirs)
		})
	}
}

// TestSharedIsNotCyclic encodes a value that contains the same pointer, slice and map
// several times, but never inside itself. The value must be accepted. It is nested deeply
// enough for the encoder to search for cycles.
func TestSharedIsNotCyclic(t *testing.T) {
	shared := &Chain{1, &Chain{N: 2}}
	list, members, empty := []any{shared, 1}, map[string]any{"a": shared}, []any{}
	deep := any([]any{shared, shared, list, list[:1], list, members, members, empty, []any{empty}, list})
	for range 900 {
		level := deep
		deep = []any{&level, members, list}
	}
	agree(t, deep)
}
