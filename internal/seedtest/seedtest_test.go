package seedtest

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// Run runs the selected number of seeds, each in a separate bubble of virtual time. It
// returns after all have ended.
func TestRun(t *testing.T) {
	many, none := 5, -1
	for _, tc := range []struct {
		seeds Seeds
		want  []uint64
	}{
		{Seeds{&many, &none}, []uint64{0, 1, 2, 3, 4}},
		{Seeds{&many, &many}, []uint64{5}},
	} {
		var mu sync.Mutex
		var got []uint64
		n := tc.seeds.Run(t, 3, 3, func(_ *testing.T, seed uint64) {
			time.Sleep(time.Hour)
			mu.Lock()
			defer mu.Unlock()
			got = append(got, seed)
		})
		slices.Sort(got)
		if !slices.Equal(got, tc.want) || n != len(tc.want) {
			t.Errorf("%d seeds: %v, want %v", n, got, tc.want)
		}
	}
}
