package sqstest_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func advance(s *sqstest.Server, body, origin string) int {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/_sqsfifo/clock", strings.NewReader(body))
	if origin != "" {
		r.Header.Set("Origin", origin)
	}
	s.ServeHTTP(w, r)
	return w.Code
}

func accepted(t *testing.T, q *sqstest.Queue) time.Time {
	t.Helper()
	_, err := q.SendMessage(t.Context(), input(q, "g", "a"))
	assert.NoError(t, err)
	all := q.Messages()
	return all[len(all)-1].AcceptedAt
}

// The offset of the clock does not overflow, even after many large advances. An overflow
// would set the clock back.
func TestClockStopsBeforeItOverflows(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	s := sqstest.NewServer(q)
	before := accepted(t, q)
	for range 60 {
		assert.Equal(t, http.StatusOK, advance(s, `{"advance_seconds": 315360000}`, ""))
	}
	ahead := accepted(t, q).Sub(before)
	assert.Greater(t, ahead, 199*365*24*time.Hour)
}

// A web page in a user's browser cannot send requests to the fake on this machine.
func TestClockRefusesOtherOrigins(t *testing.T) {
	s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
	assert.Equal(t, http.StatusForbidden, advance(s, `{"advance_seconds": 1}`, "https://example.org"))
	assert.Equal(t, http.StatusOK, advance(s, `{"advance_seconds": 1}`, "http://example.com"), "httptest's own host")
}

// Queue.Now uses the same clock as all other times of the queue.
func TestNowIsTheQueuesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		q.Advance(time.Hour)
		assert.Equal(t, time.Now().Add(time.Hour), q.Now())
		assert.Equal(t, q.Now(), accepted(t, q))
		time.Sleep(time.Minute)
		assert.Equal(t, 4*time.Minute, q.Window()[0].Until.Sub(q.Now()))
	})
}

func TestQueuesOfAServer(t *testing.T) {
	b, a := newQueue(t, sqstest.Config{Name: "b.fifo"}), newQueue(t, sqstest.Config{Name: "a.fifo"})
	assert.Equal(t, []*sqstest.Queue{a, b}, sqstest.NewServer(b, a).Queues())
	assert.Empty(t, sqstest.NewServer().Queues())
}
