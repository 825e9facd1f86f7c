package timeline

import "time"

// recentKept is how long what findings may name is kept: their interval and a little.
const recentKept = 6 * time.Minute

// recent knows the messages of the last minutes by their numbers.
type recent struct {
	first  int // number of the first message of the first chunk
	chunks []recentChunk
}

type recentChunk struct {
	messages []recentMessage
	last     int64
}

type recentMessage struct {
	at    int64
	group uint32
	place Place
}

const recentInChunk = 4096

func (r *recent) add(m row) {
	at := m.at
	if n := len(r.chunks); n == 0 || len(r.chunks[n-1].messages) == recentInChunk {
		for len(r.chunks) > 0 && r.chunks[0].last < at-recentKept.Milliseconds() {
			r.first += recentInChunk
			r.chunks[0] = recentChunk{}
			r.chunks = r.chunks[1:]
		}
		r.chunks = append(r.chunks, recentChunk{messages: make([]recentMessage, 0, recentInChunk)})
	}
	c := &r.chunks[len(r.chunks)-1]
	c.messages, c.last = append(c.messages, recentMessage{at, m.group, m.place}), at
}

func (r *recent) of(number int) (recentMessage, bool) {
	i := number - r.first
	if number < 0 || i < 0 || i/recentInChunk >= len(r.chunks) || i%recentInChunk >= len(r.chunks[i/recentInChunk].messages) {
		return recentMessage{}, false
	}
	return r.chunks[i/recentInChunk].messages[i%recentInChunk], true
}
