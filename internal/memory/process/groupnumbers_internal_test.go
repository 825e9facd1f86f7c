package process

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestARecordIsOneCacheLine(t *testing.T) {
	assert.EqualValues(t, 32, unsafe.Sizeof(remembered{}))
	assert.LessOrEqual(t, unsafe.Sizeof(Submission{}), uintptr(128))
}

// The sequence numbers of many groups are recorded, slightly out of order. For each group,
// the table returns the highest recorded number. The result may be lower or zero only if
// the table was full and has dropped the group's entry.
func TestGroupNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var w groupNumbers
	assert.Zero(t, w.highest(1))
	model := map[uint64]sequence{}
	now := sequence(1)
	groups := make([]uint64, 3*maxEntries)
	for i := range groups {
		groups[i] = max(rng.Uint64(), 1)
	}
	for i := range 10 * maxEntries {
		now += perMilli
		group := groups[rng.IntN(1+min(i, len(groups)-1))]
		number := now - sequence(rng.IntN(3*perMilli))
		w.raise(group, number)
		w.raise(group, 0)
		model[group] = max(model[group], number)
		if got := w.highest(group); got > model[group] || got < number {
			t.Fatalf("got %d, want %d, at least %d", got, model[group], number)
		}
	}
	known := 0
	for group, want := range model {
		if got := w.highest(group); got != 0 {
			require.Equal(t, want, got)
			known++
		}
	}
	assert.Equal(t, maxSets, len(w.sets))
	assert.Greater(t, known, maxEntries*99/100)
	w.clear()
	assert.Zero(t, w.highest(groups[0]))
}

// The table keeps the sequence numbers of all 10,000 groups, and has at most ten times as
// many entries as groups.
func TestFewGroupNumbersAreKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var w groupNumbers
	for i := range sequence(10_000) {
		w.raise(rng.Uint64(), 1+i)
	}
	rng = rand.New(rand.NewPCG(2, 2))
	for i := range sequence(10_000) {
		require.Equal(t, 1+i, w.highest(rng.Uint64()))
	}
	assert.Less(t, len(w.sets)*entriesPerSet, 10*10_000)
}

// A million message groups send one message each. SQS remembers only about 100 of these
// messages at a time. The table reuses the entries of forgotten messages and stays small.
func TestOldGroupNumbersMakeRoom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var w groupNumbers
	for i := range sequence(1_000_000) {
		w.raise(rng.Uint64(), 1+i*sequenceSpan/100) // the numbers of 100 messages span one interval
	}
	assert.Less(t, len(w.sets)*entriesPerSet, 100*30)

	w = groupNumbers{}
	full := minSets * entriesPerSet
	for i := range full {
		w.raise(uint64(i+minSets), 10)
	}
	require.Len(t, w.sets, minSets)
	w.raise(1<<20, 10+sequenceSpan)
	assert.Len(t, w.sets, minSets)
	w.raise(1<<20+1, 9+sequenceSpan)
	assert.Len(t, w.sets, 2*minSets, "not old enough")
}
