package sqstest_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func control(s *sqstest.Server, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

func TestControlEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := sqstest.NewQueue(sqstest.Config{Name: "scenes.fifo"})
		require.NoError(t, err)
		other, err := sqstest.NewQueue(sqstest.Config{Name: "other.fifo"})
		require.NoError(t, err)
		s := sqstest.NewServer(q, other)
		d := desk{t, q, q}
		first := d.send(msg{body: "a", group: "g"})
		d.send(msg{body: "a", group: "h"})

		code, text := control(s, "GET", "/_sqsfifo/window", "")
		assert.Equal(t, 200, code)
		assert.JSONEq(t, `[{"queue":"scenes.fifo","deduplication_id":"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
			"message_group_id":"g","scope":"queue","message_id":"`+*first.MessageId+`","sequence_number":"`+*first.SequenceNumber+`",
			"accepted_at":"2000-01-01T00:00:00Z","until":"2000-01-01T00:05:00Z","remaining_seconds":300}]`, text)

		code, text = control(s, "GET", "/_sqsfifo/suppressed?queue=scenes.fifo", "")
		assert.Equal(t, 200, code)
		var why []map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &why))
		require.Len(t, why, 1)
		assert.Equal(t, *first.MessageId, why[0]["original_message_id"])
		assert.Equal(t, "h", why[0]["message_group_id"])
		assert.Contains(t, why[0]["why"], "the SHA-256 of the body")

		code, text = control(s, "GET", "/_sqsfifo/suppressed?queue=other.fifo", "")
		assert.Equal(t, 200, code)
		assert.JSONEq(t, "[]", text)

		code, text = control(s, "POST", "/_sqsfifo/clock", `{"advance_seconds": 301}`)
		assert.Equal(t, 200, code)
		assert.JSONEq(t, `{"advanced_seconds":301,"now":{"scenes.fifo":"2000-01-01T00:05:01Z","other.fifo":"2000-01-01T00:05:01Z"}}`, text)
		_, text = control(s, "GET", "/_sqsfifo/window", "")
		assert.JSONEq(t, "[]", text)
		assert.Empty(t, q.Window())
		assert.NotEqual(t, *first.MessageId, *d.send(msg{body: "a", group: "g"}).MessageId)
	})
}

func TestListsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := sqstest.NewQueue(sqstest.Config{})
		require.NoError(t, err)
		s := sqstest.NewServer(q)
		d := desk{t, q, q}
		for _, body := range []string{"a", "b", "c"} {
			d.send(msg{body: body, group: "g"})
			d.send(msg{body: body, group: "g"})
			time.Sleep(time.Second)
		}
		list := func(path string) (out []map[string]any) {
			code, text := control(s, "GET", path, "")
			require.Equal(t, 200, code)
			require.NoError(t, json.Unmarshal([]byte(text), &out))
			return out
		}
		assert.Len(t, list("/_sqsfifo/window"), 3)
		soonest := list("/_sqsfifo/window?limit=1")
		require.Len(t, soonest, 1)
		assert.Equal(t, q.Messages()[0].MessageID, soonest[0]["message_id"])
		newest := list("/_sqsfifo/suppressed?limit=2")
		require.Len(t, newest, 2)
		assert.Equal(t, "c", newest[1]["body"])
	})
}

func TestWindowIsListedInTheOrderOfForgetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := sqstest.NewQueue(sqstest.Config{DeduplicationScope: sqstest.ScopeMessageGroup})
		require.NoError(t, err)
		d := desk{t, q, q}
		for _, body := range []string{"c", "a", "b"} {
			d.send(msg{body: body, group: "g", id: body})
			time.Sleep(time.Minute)
		}
		var ids []string
		for _, e := range q.Window() {
			ids = append(ids, e.DeduplicationID)
			assert.Equal(t, sqstest.ScopeMessageGroup, e.Scope)
			assert.Equal(t, 5*time.Minute, e.Until.Sub(e.AcceptedAt))
		}
		assert.Equal(t, []string{"c", "a", "b"}, ids)
	})
}

func TestControlEndpointRefuses(t *testing.T) {
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	s := sqstest.NewServer(q)
	before := q.Window()
	for _, tc := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"GET", "/_sqsfifo/", "", 404, "clock, window and suppressed"},
		{"GET", "/_sqsfifo/clock", "", 405, "takes POST"},
		{"POST", "/_sqsfifo/window", "", 405, "takes GET"},
		{"DELETE", "/_sqsfifo/suppressed", "", 405, "takes GET"},
		{"GET", "/_sqsfifo/window?queue=nowhere.fifo", "", 404, "no such queue"},
		{"GET", "/_sqsfifo/window?limit=0", "", 400, "limit"},
		{"GET", "/_sqsfifo/suppressed?limit=all", "", 400, "limit"},
		{"POST", "/_sqsfifo/clock", "", 400, "advance_seconds"},
		{"POST", "/_sqsfifo/clock", "{}", 400, "number above 0"},
		{"POST", "/_sqsfifo/clock", `{"advance_seconds":0}`, 400, "number above 0"},
		{"POST", "/_sqsfifo/clock", `{"advance_seconds":-1}`, 400, "do not run backwards"},
		{"POST", "/_sqsfifo/clock", `{"advance_seconds":1e300}`, 400, "up to"},
		{"POST", "/_sqsfifo/clock", `{"advance_seconds":NaN}`, 400, "advance_seconds"},
		{"POST", "/_sqsfifo/clock", `{"advance_seconds":"1"}`, 400, "advance_seconds"},
		{"POST", "/_sqsfifo/clock", `{"advance_seconds":1,"backwards":true}`, 400, "backwards"},
		{"POST", "/_sqsfifo/clock", `{"advance_seconds":1}{}`, 400, "more than one"},
		{"POST", "/_sqsfifo/clock", `{"advance_seconds":1` + strings.Repeat(" ", 5000) + `}`, 400, "too large"},
	} {
		code, text := control(s, tc.method, tc.path, tc.body)
		assert.Equal(t, tc.code, code, "%s %s %s", tc.method, tc.path, tc.body)
		assert.Contains(t, text, tc.says)
	}
	assert.Equal(t, before, q.Window())
}

func FuzzControl(f *testing.F) {
	f.Add("POST", "/_sqsfifo/clock", `{"advance_seconds": 301}`)
	f.Add("GET", "/_sqsfifo/window?queue=events.fifo", "")
	f.Add("GET", "/_sqsfifo/suppressed?queue=%zz", "")
	f.Fuzz(func(t *testing.T, method, path, body string) {
		r, err := http.NewRequest(method, "http://sqs.test"+path, strings.NewReader(body))
		if err != nil || !strings.HasPrefix(r.URL.Path, "/_sqsfifo/") {
			return
		}
		q, err := sqstest.NewQueue(sqstest.Config{})
		require.NoError(t, err)
		w := httptest.NewRecorder()
		sqstest.NewServer(q).ServeHTTP(w, r)
		require.Less(t, w.Code, 500)
		require.True(t, json.Valid(w.Body.Bytes()), w.Body.String())
	})
}
