package sqstest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
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
		d := testQueue{t, q, q}
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
		d := testQueue{t, q, q}
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

// Pages reach every entry. Headers have the total and the links to the previous and the
// next page.
func TestListsHavePages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newQueue(t, sqstest.Config{Name: "a.fifo"}), newQueue(t, sqstest.Config{Name: "b.fifo"})
		s := sqstest.NewServer(a, b)
		var want []string
		for i := range 2500 {
			q := a
			if i >= 1200 {
				q = b
			}
			body := fmt.Sprint(i)
			testQueue{t, q, q}.send(msg{body: body, group: "g"})
			testQueue{t, q, q}.send(msg{body: body, group: "g"})
			want = append(want, body)
		}
		link := regexp.MustCompile(`<([^>]*)>; rel="(\w+)"`)
		page := func(path string) (bodies []string, links map[string]string) {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			require.Equal(t, 200, w.Code, w.Body)
			assert.Equal(t, "2500", w.Header().Get("X-Total-Count"))
			var entries []struct{ Body string }
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &entries))
			for _, e := range entries {
				bodies = append(bodies, e.Body)
			}
			links = map[string]string{}
			for _, l := range w.Header()["Link"] {
				m := link.FindStringSubmatch(l)
				links[m[2]] = m[1]
			}
			return bodies, links
		}
		newest, links := page("/_sqsfifo/suppressed")
		assert.Equal(t, want[1500:], newest)
		assert.NotContains(t, links, "next")
		before, links := page(links["prev"])
		assert.Equal(t, want[500:1500], before)
		assert.Contains(t, links, "prev")
		assert.Contains(t, links, "next")

		var all []string
		for path, pages := "/_sqsfifo/suppressed?offset=0&limit=700", 0; path != ""; pages++ {
			require.Less(t, pages, 5)
			var some []string
			some, links = page(path)
			all, path = append(all, some...), links["next"]
		}
		assert.Equal(t, want, all)
		first, links := page("/_sqsfifo/window?limit=10")
		assert.Len(t, first, 10)
		assert.NotContains(t, links, "prev")
		beyond, links := page("/_sqsfifo/window?offset=9999")
		assert.Empty(t, beyond)
		assert.Contains(t, links, "prev")
	})
}

// Tests in any language can inject faults over HTTP: among others a lost answer to a stored
// message, a throttle error, a failed batch entry and a delayed answer.
func TestFaultsOverHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		s := sqstest.NewServer(q, newQueue(t, sqstest.Config{Name: "other.fifo"}))
		client := s.Client(func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
		d := testQueue{t, client, q}
		inject := func(body string) (made []map[string]any) {
			code, text := control(s, "POST", "/_sqsfifo/faults", body)
			require.Equal(t, 200, code, text)
			require.NoError(t, json.Unmarshal([]byte(text), &made))
			return made
		}
		list := func(query string) string {
			code, text := control(s, "GET", "/_sqsfifo/faults"+query, "")
			require.Equal(t, 200, code)
			return text
		}
		assert.JSONEq(t, "[]", list(""))

		made := inject(`{"queue":"events.fifo","fault":"lose_answer"}`)
		require.Len(t, made, 1)
		assert.EqualValues(t, 1, made[0]["calls"])
		_, err := d.trySend(msg{body: "lost", group: "g"})
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, []string{"lost"}, d.stored())

		inject(`{"queue":"events.fifo","fault":"pass"}`)
		inject(`{"queue":"events.fifo","fault":"throttle","calls":2}`)
		inject(`{"queue":"events.fifo","fault":"fail_entries","code":"Broken","sender_fault":true,"entry_ids":["2"]}`)
		inject(`{"queue":"events.fifo","fault":"delay_answer","delay_seconds":1.5}`)
		d.send(msg{body: "passes", group: "g"})
		for range 2 {
			_, err = d.trySend(msg{body: "a", group: "g"})
			d.refused(err, "RequestThrottled", "Request is throttled.")
		}
		out := d.batch(msg{body: "1", group: "g"}.entry("1"), msg{body: "2", group: "g"}.entry("2"))
		require.Len(t, out.Failed, 1)
		assert.Equal(t, "2", *out.Failed[0].Id)
		assert.Equal(t, "Broken", *out.Failed[0].Code)
		assert.True(t, out.Failed[0].SenderFault)
		started := time.Now()
		d.send(msg{body: "late", group: "g"})
		assert.Equal(t, 1500*time.Millisecond, time.Since(started))
		assert.JSONEq(t, "[]", list(""))

		removal := inject(`{"queue":"events.fifo","fault":"throttle","on":"delete"}`)
		assert.JSONEq(t, fmt.Sprintf(`[{"id":%q,"queue":"events.fifo","fault":"throttle","on":"delete","calls":1}]`, removal[0]["id"]), list(""))
		received := d.receive(1)
		d.refused(d.tryDelete(received[0]), "RequestThrottled", "Request is throttled.")
		d.delete(received...)

		random := inject(`{"fault":"server_error","rate":0.5,"seed":7}`)
		require.Len(t, random, 2, "one for each queue")
		script := inject(`{"queue":"events.fifo","fault":"reset_connection","calls":3}`)
		assert.JSONEq(t, fmt.Sprintf(`[{"id":%q,"queue":"events.fifo","fault":"reset_connection","calls":3},
			{"id":%q,"queue":"events.fifo","fault":"server_error","rate":0.5,"seed":7}]`, script[0]["id"], random[0]["id"]), list("?queue=events.fifo"))
		code, text := control(s, "DELETE", fmt.Sprintf("/_sqsfifo/faults?id=%s", script[0]["id"]), "")
		assert.Equal(t, 200, code)
		assert.JSONEq(t, `{"removed":1}`, text)
		code, _ = control(s, "DELETE", fmt.Sprintf("/_sqsfifo/faults?id=%s", script[0]["id"]), "")
		assert.Equal(t, 404, code)
		_, text = control(s, "DELETE", "/_sqsfifo/faults", "")
		assert.JSONEq(t, `{"removed":2}`, text)
		for range 20 {
			d.send(msg{body: "fine", group: "g"})
		}
	})
}

func TestWindowIsListedInTheOrderOfForgetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := sqstest.NewQueue(sqstest.Config{DeduplicationScope: sqstest.ScopeMessageGroup})
		require.NoError(t, err)
		d := testQueue{t, q, q}
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
		{"GET", "/_sqsfifo/", "", 404, "clock, window, suppressed, blocked and faults"},
		{"GET", "/_sqsfifo/clock", "", 405, "takes POST"},
		{"POST", "/_sqsfifo/window", "", 405, "takes GET"},
		{"DELETE", "/_sqsfifo/suppressed", "", 405, "takes GET"},
		{"PUT", "/_sqsfifo/faults", "", 405, "takes GET, POST, DELETE"},
		{"POST", "/_sqsfifo/faults", "{}", 400, "is not one of"},
		{"POST", "/_sqsfifo/faults", `{"fault":"throttle","on":"purge"}`, 400, "is not one of send, receive, delete, visibility"},
		{"POST", "/_sqsfifo/faults", `{"fault":"lose_answer","queue":"nowhere.fifo"}`, 404, "no such queue"},
		{"POST", "/_sqsfifo/faults", `{"fault":"lose_answer","id":"1"}`, 400, "id is given"},
		{"POST", "/_sqsfifo/faults", `{"fault":"lose_answer","calls":-1}`, 400, "calls"},
		{"POST", "/_sqsfifo/faults", `{"fault":"lose_answer","calls":1,"rate":0.5}`, 400, "combined"},
		{"POST", "/_sqsfifo/faults", `{"fault":"lose_answer","rate":2}`, 400, "rate"},
		{"POST", "/_sqsfifo/faults", `{"fault":"lose_answer","delay_seconds":2}`, 400, "delay_answer"},
		{"POST", "/_sqsfifo/faults", `{"fault":"lose_answer","code":"X"}`, 400, "fail_entries"},
		{"POST", "/_sqsfifo/faults", `{"fault":"delay_answer"}`, 400, "delay_seconds"},
		{"POST", "/_sqsfifo/faults", `{"fault":"delay_answer","delay_seconds":61}`, 400, "up to"},
		{"POST", "/_sqsfifo/faults", `{"fault":"lose_answer","unknown":1}`, 400, "unknown"},
		{"GET", "/_sqsfifo/faults?queue=nowhere.fifo", "", 404, "no such queue"},
		{"DELETE", "/_sqsfifo/faults?id=x", "", 400, "id"},
		{"GET", "/_sqsfifo/window?offset=-1", "", 400, "offset"},
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
	f.Add("POST", "/_sqsfifo/faults", `{"fault":"fail_entries","code":"X","entry_ids":["1"],"rate":0.5,"seed":1}`)
	f.Add("DELETE", "/_sqsfifo/faults?id=1", "")
	f.Add("GET", "/_sqsfifo/window?limit=9223372036854775807&offset=9223372036854775807", "")
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
