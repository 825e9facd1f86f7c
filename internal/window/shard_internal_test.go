package window

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var start = time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC)

type nothing = struct{}

func put[V any](t *testing.T, w *Window[V], now time.Time, id string, r Record[V]) {
	t.Helper()
	if err := w.Put(now, w.Key("", id), r); err != nil {
		t.Fatal(err)
	}
}

// While an index grows, each Put copies at most a few records to the larger index,
// never all records at once.
func TestIndexesGrowInSteps(t *testing.T) {
	w := New[nothing](Options{})
	one := &shard[nothing]{index: newIndex(0)}
	growths := 0
	for i := range 100_000 {
		size, copied, growing := len(one.index), one.copyNext, one.older != nil
		if !one.add(0, record[nothing]{key: w.Key("", strconv.Itoa(i))}) {
			t.Fatal("full")
		}
		switch {
		case growing && one.older != nil:
			if one.copyNext-copied > indexedPerPut {
				t.Fatal(one.copyNext - copied)
			}
		case len(one.index) != size && one.len() > fewRecords:
			require.NotNil(t, one.older, "%d records were entered at once", one.len())
			growths++
		}
		if i%1000 == 0 {
			for j := 0; j <= i; j += 1 + i/50 {
				r, p := one.find(w.Key("", strconv.Itoa(j)))
				require.NotNil(t, r, "record %d of %d", j, i)
				require.EqualValues(t, j, p)
			}
		}
	}
	assert.GreaterOrEqual(t, growths, 4)
	assert.Less(t, len(one.index)*bucketLen, 100_000*5/2)
}

// After many records have expired, a few later Puts let the window free their memory.
func TestIndexesShrink(t *testing.T) {
	w := New[nothing](Options{})
	for i := range 200_000 {
		put(t, w, start, strconv.Itoa(i), Record[nothing]{From: start, To: start})
	}
	for i := range 40_000 {
		now := start.Add(Interval + time.Duration(i)*100*time.Millisecond)
		put(t, w, now, "later "+strconv.Itoa(i), Record[nothing]{From: now, To: now})
	}
	held, slots := 0, 0
	for i := range w.shards {
		held += w.shards[i].made() * chunkLen
		slots += len(w.shards[i].index) * bucketLen
	}
	assert.Less(t, held, 3*mostShards*chunkLen)
	assert.Less(t, slots, 8*3000+mostShards*leastBuckets*bucketLen*4, "3,000 are live")
}

func (s *shard[V]) made() int {
	n := len(s.spare)
	for _, slab := range s.slabs {
		n += len(slab)
	}
	return n
}

// A shard allocates its memory in slabs. The number of slabs is bounded, for any number of
// records, to save time in the garbage collector. The unused memory is bounded too, even
// when the number of records falls.
func TestSlabsFollowTheLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("holds 600,000 records")
	}
	one := &shard[nothing]{index: newIndex(0)}
	now, n := offset(0), uint64(0)
	key := func(n uint64) Key { return Key{high: n * 0x9e3779b97f4a7c15, low: n * 0xbf58476d1ce4e5b9} }
	next := func(live int) {
		n++
		now += offset(Interval) / offset(live)
		one.expire(now, 0)
		if !one.add(now, record[nothing]{key: key(n), from: now, to: now}) {
			t.Fatal("full")
		}
	}
	for _, l := range []struct{ live, intervals int }{{600_000, 3}, {50_000, 3}, {400_000, 3}, {1_000, 12}} {
		for range l.live * l.intervals {
			next(l.live)
		}
		made := testing.AllocsPerRun(1, func() {
			for range l.live {
				next(l.live)
			}
		})
		assert.Less(t, made, 20.0, "%d live, in an interval", l.live)
		assert.Less(t, len(one.slabs), 2*slabsPerShard+2, "%d live", l.live)
		assert.Less(t, one.made()*chunkLen, l.live*107/100+4*chunkLen, "%d live", l.live)
		assert.Less(t, len(one.spare), 2*one.slabLen()+1, "%d live", l.live)
		for i := range one.spare {
			require.Equal(t, chunk[nothing]{}, one.spare[i], "values may have pointers")
		}
		for i := range uint64(l.live - 1) {
			if r, _ := one.find(key(n - i)); r == nil {
				t.Fatal("forgotten")
			}
		}
	}
}

// A record without an answer stays in memory forever. The other records of its shard are
// freed as usual, although they arrived later.
func TestAnUnansweredRecordKeepsNoOthers(t *testing.T) {
	w := New[nothing](Options{})
	put(t, w, start, "unanswered", Record[nothing]{From: start})
	now := start
	for i := range 50_000 {
		now = now.Add(Interval / 2000)
		put(t, w, now, strconv.Itoa(i), Record[nothing]{From: now, To: now})
	}
	_, state := w.Lookup(now, w.Key("", "unanswered"))
	assert.Equal(t, Unsure, state)
	held := 0
	for i := range w.shards {
		held += w.shards[i].len()
	}
	assert.Less(t, held, 2000+3*chunkLen)
}

// The field w.live must equal the number of records in all shards, not counting freed
// records. The test puts new keys and known keys, with and without an answer, and deletes
// keys.
func TestLiveRecordsAreCounted(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	w := New[nothing](Options{Slack: time.Second})
	now := start
	for i := range 60_000 {
		now = now.Add(Interval / 20_000)
		k := w.Key("", strconv.Itoa(rng.IntN(40_000)))
		switch r := (Record[nothing]{From: now, To: now}); {
		case i%20_000 > 15_000:
			// In the last quarter of each interval, leave the switch and put a new key.
		case rng.IntN(4) == 0:
			w.Delete(k)
			continue
		case rng.IntN(50) == 0:
			r.To = time.Time{}
			fallthrough
		default:
			require.NoError(t, w.Put(now, k, r))
			continue
		}
		require.NoError(t, w.Put(now, w.Key("new", strconv.Itoa(i)), Record[nothing]{From: now, To: now}))
	}
	count := func() (n int) {
		for i := range w.shards {
			for range w.shards[i].all() {
				n++
			}
		}
		return n
	}
	assert.Equal(t, count(), w.live)

	// w.live must stay exact. The second chunk can be dropped in one step; the others
	// have a changed record, and their records are dropped one by one.
	w = New[nothing](Options{})
	for i := range 3 * chunkLen {
		put(t, w, start, strconv.Itoa(i), Record[nothing]{From: start, To: start})
	}
	w.Delete(w.Key("", "7"))
	put(t, w, start, "2800", Record[nothing]{From: start.Add(time.Minute), To: start.Add(time.Minute)})
	now = start.Add(Interval)
	for i := range 200 {
		put(t, w, now, "later "+strconv.Itoa(i), Record[nothing]{From: now, To: now})
		assert.Equal(t, count(), w.live)
	}
	assert.Equal(t, 201, w.live)
	_, state := w.Lookup(now, w.Key("", "2800"))
	assert.Equal(t, Inside, state, "set again, later than its chunk")
}

// A full shard, with all positions in use, refuses new records and keeps its live records.
// The call of expire cannot drop the first chunk: its records are live, and no position is
// free to move them to.
func TestAFullShardRefuses(t *testing.T) {
	w := New[nothing](Options{})
	one := &shard[nothing]{index: newIndex(0)}
	key := func(i int) Key { return w.Key("", strconv.Itoa(i)) }
	n := 0
	for one.add(offset(n), record[nothing]{key: key(n), from: offset(n), to: unanswered}) {
		n++
		if n == 1000*chunkLen {
			one.spare = make(slab[nothing], 30) // more chunks than the shard has room for
		}
	}
	assert.Greater(t, n, 1<<positionBits-2*chunkLen)
	assert.Less(t, n, 1<<positionBits, "a slot can mean one position only")
	for i := 0; i < n; i += 997 {
		_, p := one.find(key(i))
		require.EqualValues(t, i, p)
	}
	late := offset(2 * Interval)
	for range 10 {
		one.expire(late, 0)
		assert.False(t, one.add(late, record[nothing]{key: key(-1)}))
	}
	assert.Equal(t, n, one.len())
	for i := range n {
		r, p := one.find(key(i))
		require.NotNil(t, r)
		one.touch(p)
		r.to = 0
	}
	assert.Positive(t, one.expire(late, 0))
}

// Different keys with the same tag and the same two buckets must each find their own
// record. The method `insert` must refuse a key only after both buckets are full.
func TestKeysThatShareTheirSlots(t *testing.T) {
	one := &shard[int]{index: newIndex(0)}
	// The function `alike` makes different keys with the same tag and the same two buckets,
	// the first and the last bucket of the index.
	alike := func(i int) Key { return Key{high: uint64(i) << tagBits, low: 1<<64 - 1<<32} }
	require.True(t, one.extend())
	for i := range 2 * bucketLen {
		one.tail++
		*one.at(uint64(i)) = record[int]{key: alike(i), value: i}
		require.True(t, one.insert(one.index, alike(i), uint64(i)))
	}
	assert.False(t, one.insert(one.index, alike(2*bucketLen), 2*bucketLen))
	for i := range 2 * bucketLen {
		r, _ := one.find(alike(i))
		require.NotNil(t, r)
		assert.Equal(t, i, r.value)
	}
	r, _ := one.find(alike(2 * bucketLen))
	assert.Nil(t, r)
}

// With random keys, more than four fifths of an index must be in use before both buckets
// of a new key are full.
func TestIndexFillsBothBuckets(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	one := &shard[nothing]{index: make(index, 1<<10)}
	for len(one.index) == 1<<10 {
		require.True(t, one.add(0, record[nothing]{key: Key{high: rng.Uint64(), low: rng.Uint64()}}))
	}
	assert.Greater(t, one.len(), 1<<10*bucketLen*4/5)
}

// A steady load makes no garbage, because chunks are reused.
func TestSteadyLoadAllocatesNothing(t *testing.T) {
	w := New[[32]byte](Options{})
	now, n := start, uint64(0)
	next := func() {
		n++
		now = now.Add(Interval / 100_000)
		k := Key{high: n * 0x9e3779b97f4a7c15, low: n * 0xbf58476d1ce4e5b9} // like a hash; w.Key would be slower
		if _, state := w.Lookup(now, k); state != Outside {
			t.Fatal("a new key is known")
		}
		if err := w.Put(now, k, Record[[32]byte]{From: now, To: now}); err != nil {
			t.Fatal(err)
		}
	}
	for range 250_000 {
		next()
	}
	before := slices.Clone(w.shards)
	assert.Zero(t, testing.AllocsPerRun(150_000, next))
	for i := range before {
		assert.Same(t, &before[i].index[0], &w.shards[i].index[0], "what expired makes room in the index")
	}
}
