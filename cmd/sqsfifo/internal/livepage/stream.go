package livepage

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// idle is the longest time without a write to a page. After this time the stream sends the
// unchanged state again, because proxies and browsers close silent connections.
const idle = 15 * time.Second

// stream sends a queue's state to an open page, first immediately and then after each
// change. It ends when the page closes the connection or reads too slowly.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "live takes GET", http.StatusMethodNotAllowed)
		return
	}
	select {
	case h.readers <- struct{}{}:
		defer func() { <-h.readers }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, fmt.Sprintf("%d pages are open already; close one", MaxReaders), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	answer := http.NewResponseController(w)
	wait := time.NewTimer(0)
	defer wait.Stop()
	var last []byte
	var sent time.Time
	for {
		select {
		case <-r.Context().Done():
			return
		case <-wait.C:
		}
		now, next := h.state(r.URL.Query().Get("queue"))
		if !bytes.Equal(now, last) || time.Since(sent) >= idle {
			// After h.patience, the write fails. The page then connects again.
			if err := answer.SetWriteDeadline(time.Now().Add(h.patience)); err != nil {
				return
			}
			if _, err := fmt.Fprintf(w, "retry: 1000\ndata: {\"sent\":%d,\"state\":%s}\n\n", time.Now().UnixMilli(), now); err != nil {
				return
			}
			if err := answer.Flush(); err != nil {
				return
			}
			last, sent = now, time.Now()
		}
		wait.Reset(next)
	}
}

// states caches the state of each watched queue, shared by the readers of the queue.
type states struct {
	mu sync.Mutex
	of map[string]*state
}

type state struct {
	mu   sync.Mutex
	text []byte
	next time.Time // earliest time for the next read of the queue
}

// state returns the state of the named queue as JSON, and the time until the next read of
// the queue. Until this read, all callers get the same JSON.
func (h *Handler) state(name string) ([]byte, time.Duration) {
	queues := h.server.Queues()
	shown := h.server.Queue(name)
	if shown == nil && len(queues) > 0 {
		shown = queues[0]
	}
	name = ""
	if shown != nil {
		name = shown.Name()
	}
	s := h.states.get(name, len(queues))
	s.mu.Lock()
	defer s.mu.Unlock()
	if begun := time.Now(); s.text == nil || !begun.Before(s.next) {
		s.text = h.read(queues, shown)
		// A large queue must not keep the server busy with reads.
		s.next = time.Now().Add(max(h.every, 10*time.Since(begun)))
	}
	return s.text, max(time.Until(s.next), time.Millisecond)
}

// get returns the cached state of a queue. For a queue without a state it adds an empty
// state. It first clears the cache if there are more states than queues, because some queues
// were deleted.
func (s *states) get(name string, queueCount int) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[name] == nil {
		if len(s.of) > queueCount {
			clear(s.of)
		}
		s.of[name] = new(state)
	}
	return s.of[name]
}
