package main

import (
	"time"
)

// placesKept is how long the place of a message is kept: as long as another can be a
// duplicate of it, and a little longer.
const placesKept = 6 * time.Minute

// recentPlaces knows where the messages of the last minutes stand, by their index.
type recentPlaces struct {
	first  int // index of the first place of the first chunk
	chunks []placeChunk
}

type placeChunk struct {
	places []place
	last   time.Time
}

const placesInChunk = 4096

func (r *recentPlaces) add(p place, at time.Time) {
	if n := len(r.chunks); n == 0 || len(r.chunks[n-1].places) == placesInChunk {
		for len(r.chunks) > 0 && r.chunks[0].last.Before(at.Add(-placesKept)) {
			r.first += placesInChunk
			r.chunks[0] = placeChunk{}
			r.chunks = r.chunks[1:]
		}
		r.chunks = append(r.chunks, placeChunk{places: make([]place, 0, placesInChunk)})
	}
	c := &r.chunks[len(r.chunks)-1]
	c.places, c.last = append(c.places, p), at
}

func (r *recentPlaces) of(index int) place {
	index -= r.first
	return r.chunks[index/placesInChunk].places[index%placesInChunk]
}
