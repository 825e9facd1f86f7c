package livepage

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func newQueue(t testing.TB, c sqstest.Config) *sqstest.Queue {
	t.Helper()
	q, err := sqstest.NewQueue(c)
	require.NoError(t, err)
	return q
}

func newHandler(t testing.TB, queues ...*sqstest.Queue) *Handler {
	t.Helper()
	h, err := New(sqstest.NewServer(queues...))
	require.NoError(t, err)
	return h
}

func send(t testing.TB, q *sqstest.Queue, group, body string, attributes map[string]string) {
	t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: &body, MessageGroupId: &group, MessageAttributes: map[string]types.MessageAttributeValue{}}
	for name, value := range attributes {
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	_, err := q.SendMessage(t.Context(), in)
	require.NoError(t, err)
}

// answer returns the handler's answer to a request, without a network connection.
func answer(h http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://127.0.0.1:9324"+path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const browserAccepts = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// Only browsers get the page. The answers to programs are those of the fake SQS.
func TestWhoGetsThePage(t *testing.T) {
	h := newHandler(t, newQueue(t, sqstest.Config{}))
	w := answer(h, http.MethodGet, "/", "", "Accept", browserAccepts)
	assert.Equal(t, 200, w.Code)
	assert.Contains(t, w.Header().Get("Content-Type"), "text/html")
	assert.Contains(t, w.Body.String(), "<h1>sqsfifo serve</h1>")
	assert.Contains(t, w.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'")
	assert.Equal(t, "DENY", w.Header().Get("X-Frame-Options"))
	for _, header := range [][]string{nil, {"Accept", "*/*"}, {"Accept", "application/json"}, {"Accept", browserAccepts, "X-Amz-Target", "AmazonSQS.ListQueues"}} {
		w := answer(h, http.MethodGet, "/", "", header...)
		assert.NotContains(t, w.Body.String(), "<html", "%q", header)
		assert.NotContains(t, w.Header().Get("Content-Type"), "html", "%q", header)
	}
	assert.JSONEq(t, `{"status":"ok"}`, answer(h, http.MethodGet, "/", "").Body.String())
	w = answer(h, http.MethodPost, "/", "{}", "X-Amz-Target", "AmazonSQS.ListQueues", "Content-Type", "application/x-amz-json-1.0", "Accept", browserAccepts)
	assert.Contains(t, w.Body.String(), "QueueUrls")
	w = answer(h, http.MethodGet, "/?Action=ListQueues", "", "Accept", browserAccepts)
	assert.Contains(t, w.Body.String(), "ErrorResponse", "the query protocol")
}

// A browser requests an icon. The request is not shown as a request to the queue.
func TestIcon(t *testing.T) {
	h := newHandler(t, newQueue(t, sqstest.Config{}))
	assert.Equal(t, http.StatusNoContent, answer(h, http.MethodPost, "/_sqsfifo/requests", `{"on": true}`, "Content-Type", "application/json").Code)
	w := answer(h, http.MethodGet, "/favicon.ico", "", "Accept", "image/*")
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "image/svg+xml", w.Header().Get("Content-Type"))
	assert.Contains(t, w.Body.String(), "<svg")
	_, logged := h.requests.snapshot()
	assert.Empty(t, logged)
	assert.Contains(t, answer(h, http.MethodGet, "/", "", "Accept", browserAccepts).Header().Get("Content-Security-Policy"), "img-src 'self'")
}

// A page of another origin, in a browser of the same machine, can neither change nor read
// state.
func TestForeignPages(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	h := newHandler(t, q)
	for _, request := range []struct{ method, path, body string }{
		{http.MethodPost, "/_sqsfifo/faults", `{"fault": "lose_answer"}`},
		{http.MethodPost, "/_sqsfifo/clock", `{"advance_seconds": 300}`},
		{http.MethodDelete, "/_sqsfifo/faults", ""},
		{http.MethodPost, "/_sqsfifo/requests", `{"on": true}`},
	} {
		for _, header := range [][]string{
			{"Origin", "https://evil.example"},
			{"Origin", "http://127.0.0.1:3000"},
			{"Origin", "http://localhost:9324"}, // the server is at 127.0.0.1:9324
			{"Origin", "null"},
			{"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"},
			{"Sec-Fetch-Site", "same-site", "Content-Type", "application/json"},
			{"Sec-Fetch-Site", "cross-site", "Origin", "http://127.0.0.1:9324"},
		} {
			w := answer(h, request.method, request.path, request.body, header...)
			assert.Equal(t, http.StatusForbidden, w.Code, "%s %s %q", request.method, request.path, header)
		}
	}
	for _, path := range []string{"/_sqsfifo/live", "/_sqsfifo/window", "/_sqsfifo/suppressed", "/_sqsfifo/faults"} {
		for _, site := range []string{"cross-site", "same-site"} {
			assert.Equal(t, http.StatusForbidden, answer(h, http.MethodGet, path, "", "Sec-Fetch-Site", site).Code, "%s %s", path, site)
		}
	}
	assert.Zero(t, q.PendingFaults())
	assert.WithinDuration(t, time.Now(), q.Now(), time.Minute)
	assert.False(t, h.requests.wanted())

	// Requests from the page itself, and from programs, are accepted.
	own := []string{"Origin", "http://127.0.0.1:9324", "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json"}
	assert.Equal(t, 200, answer(h, http.MethodPost, "/_sqsfifo/faults", `{"fault": "lose_answer"}`, own...).Code)
	assert.Equal(t, 200, answer(h, http.MethodPost, "/_sqsfifo/faults", `{"fault": "lose_answer"}`).Code)
	assert.Equal(t, 2, q.PendingFaults())
	assert.Equal(t, http.StatusUnsupportedMediaType, answer(h, http.MethodPost, "/_sqsfifo/requests", `{"on": true}`, "Content-Type", "text/plain").Code)
	assert.Equal(t, http.StatusNoContent, answer(h, http.MethodPost, "/_sqsfifo/requests", `{"on": true}`, own...).Code)
	assert.True(t, h.requests.wanted())
	assert.Equal(t, http.StatusMethodNotAllowed, answer(h, http.MethodGet, "/_sqsfifo/requests", "").Code)
	assert.Equal(t, http.StatusMethodNotAllowed, answer(h, http.MethodPost, "/_sqsfifo/live", "").Code)
	assert.Equal(t, http.StatusBadRequest, answer(h, http.MethodPost, "/_sqsfifo/requests", `{}`, own...).Code)
}

func stateOf(t testing.TB, h *Handler, queue string) (s stateWire) {
	t.Helper()
	clear(h.states.of)
	text, _ := h.state(queue)
	require.NoError(t, json.Unmarshal(text, &s))
	return s
}

// A suppressed message is shown with its original and the first differing byte.
func TestState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{Name: "a.fifo"})
		h := newHandler(t, q, newQueue(t, sqstest.Config{Name: "b.fifo"}))
		send(t, q, "g", "body", map[string]string{"key": "1", "traceparent": "x"})
		time.Sleep(time.Second)
		send(t, q, "g", "body", map[string]string{"key": "1", "traceparent": "y"})
		send(t, q, "other", "body", map[string]string{"key": "2"})
		_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String("one"), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("id")})
		require.NoError(t, err)
		_, err = q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String("old"), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("id")})
		require.NoError(t, err)

		s := stateOf(t, h, "a.fifo")
		assert.Equal(t, []string{"a.fifo", "b.fifo"}, s.Queues)
		assert.Equal(t, "a.fifo", s.Queue)
		assert.Equal(t, 2, s.Remembered)
		assert.Equal(t, 3, s.Suppressed)
		assert.Equal(t, q.Messages()[0].MessageID, s.Window[0].Message)
		assert.Equal(t, "2", s.Attributes["ApproximateNumberOfMessages"])
		require.Len(t, s.Suppression, 3)
		assert.Empty(t, s.Suppression[0].Lost, "a trace identifies nothing")
		assert.Equal(t, []string{"attributes", "group"}, s.Suppression[1].Lost)
		assert.Equal(t, -1, s.Suppression[1].Body.Byte)
		assert.Contains(t, s.Suppression[1].Attributes, `key is "2" instead of "1"`)
		assert.Equal(t, []string{"body"}, s.Suppression[2].Lost)
		assert.Equal(t, 1, s.Suppression[2].Body.Byte, "one, old")
		assert.Equal(t, s.Window[1].Message, s.Suppression[2].Original.Message)

		assert.JSONEq(t, "[]", string(s.Faults))
		q.Inject(sqstest.LoseAnswer(), 2)
		assert.Contains(t, string(stateOf(t, h, "a.fifo").Faults), "lose_answer")

		q.Advance(time.Hour)
		s = stateOf(t, h, "a.fifo")
		assert.Zero(t, s.Remembered)
		assert.EqualValues(t, 3_600_000, s.AheadMS)
		assert.Equal(t, "b.fifo", stateOf(t, h, "b.fifo").Queue)
		assert.Equal(t, "a.fifo", stateOf(t, h, "gone.fifo").Queue, "the first instead")
		assert.Empty(t, stateOf(t, newHandler(t), "").Queues)
	})
}

// A group is blocked while its first message was received and not deleted. The page shows
// how often this message was received, and the end of its visibility timeout.
func TestBlockedGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{VisibilityTimeout: 30 * time.Second})
		h := newHandler(t, q)
		for i, group := range []string{"kaw", "kaw", "osage", "platte"} {
			send(t, q, group, fmt.Sprint(i), nil)
		}
		assert.Empty(t, stateOf(t, h, "").Blockage)
		receive := func() *sqs.ReceiveMessageOutput {
			out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), MaxNumberOfMessages: 1})
			require.NoError(t, err)
			return out
		}
		first := time.Now()
		receive() // receives group kaw
		time.Sleep(time.Second)
		out := receive() // receives group osage
		s := stateOf(t, h, "")
		assert.Equal(t, 2, s.Blocked)
		messages := q.Messages()
		assert.Equal(t, []blockedWire{
			{"kaw", messages[0].MessageID, 1, 2, first.UnixMilli(), first.Add(30 * time.Second).UnixMilli()},
			{"osage", messages[2].MessageID, 1, 1, first.Add(time.Second).UnixMilli(), first.Add(31 * time.Second).UnixMilli()},
		}, s.Blockage)
		_, err := q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(q.URL()), ReceiptHandle: out.Messages[0].ReceiptHandle})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		assert.Equal(t, []blockedWire{{"kaw", messages[0].MessageID, 1, 2, first.UnixMilli(), 0}}, stateOf(t, h, "").Blockage)
		receive() // receives group platte
		receive() // receives group kaw
		assert.Equal(t, 2, stateOf(t, h, "").Blockage[0].Receives)
		assert.Contains(t, answer(h, http.MethodGet, "/_sqsfifo/blocked", "").Body.String(), `"message_group_id":"kaw","messages":2,"message_id":"`+messages[0].MessageID+`"`)
	})
}

// A suppressed message is compared with the original. If the queue no longer has the text
// of the original, the page shows no difference.
func TestForgottenOriginal(t *testing.T) {
	q := newQueue(t, sqstest.Config{DiscardDeleted: true})
	h := newHandler(t, q)
	for i := range 1200 { // after so many sends, the queue no longer remembers deleted messages
		send(t, q, "g", fmt.Sprint(i), nil)
		out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL())})
		require.NoError(t, err)
		_, err = q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(q.URL()), ReceiptHandle: out.Messages[0].ReceiptHandle})
		require.NoError(t, err)
	}
	send(t, q, "g", "0", nil)
	s := stateOf(t, h, "")
	require.Len(t, s.Suppression, 1)
	assert.True(t, s.Suppression[0].Forgotten)
	assert.Empty(t, s.Suppression[0].Lost)
	assert.Equal(t, 1200, s.Remembered)
	assert.Len(t, s.Window, MaxRemembered)
}

// The JSON text of the page's state has a limited size for any number of sent messages.
func TestStateIsBounded(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	h := newHandler(t, q)
	for i := range 2 * MaxRemembered {
		send(t, q, "g", fmt.Sprint(i, strings.Repeat("x", 10_000)), nil)
	}
	for range 3 {
		for i := range 2 * MaxRemembered {
			send(t, q, strings.Repeat("h", 128), fmt.Sprint(i, strings.Repeat("x", 10_000)), map[string]string{"key": strings.Repeat("k", 10_000)})
		}
	}
	text, _ := h.state("")
	assert.Less(t, len(text), 600_000)
	s := stateOf(t, h, "")
	assert.Len(t, s.Suppression, MaxSuppressed)
	assert.Equal(t, 6*MaxRemembered, s.Suppressed)
}

// serveOnPipes serves a handler on pipes in memory, for tests in a synctest bubble. The
// function `dial` returns a pipe without a buffer, so unread data blocks the server. The
// function `stop` ends the server.
func serveOnPipes(t *testing.T, h http.Handler) (dial func() net.Conn, stop func()) {
	t.Helper()
	l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	s := &http.Server{Handler: h, WriteTimeout: 2 * time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(l) }()
	dial = func() net.Conn {
		here, there := net.Pipe()
		l.conns <- there
		return here
	}
	return dial, func() {
		cancel()
		assert.NoError(t, s.Close())
		<-ended
	}
}

type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func ask(t *testing.T, c net.Conn, path string) {
	t.Helper()
	_, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	require.NoError(t, err)
}

func (h *Handler) open() int { return len(h.readers) }

// An open page receives each change of its queue, even after the WriteTimeout of the
// server. When the page closes the connection, the goroutine of the request ends;
// otherwise synctest.Test would not return.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		h := newHandler(t, q)
		dial, stop := serveOnPipes(t, h)
		defer stop()
		c := dial()
		ask(t, c, "/_sqsfifo/live")
		lines := bufio.NewScanner(c)
		lines.Buffer(nil, 1<<20)
		next := func() (s stateWire) {
			for lines.Scan() {
				if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					var event struct {
						Sent  int64
						State stateWire
					}
					require.NoError(t, json.Unmarshal([]byte(text), &event))
					assert.Equal(t, time.Now().UnixMilli(), event.Sent)
					return event.State
				}
			}
			require.Fail(t, "the stream has ended", "%v", lines.Err())
			return s
		}
		assert.Zero(t, next().Remembered)
		send(t, q, "g", "a", nil)
		begun := time.Now()
		assert.Equal(t, 1, next().Remembered)
		assert.LessOrEqual(t, time.Since(begun), time.Second)
		send(t, q, "h", "a", nil)
		assert.Equal(t, []string{"group"}, next().Suppression[0].Lost)
		for begun = time.Now(); time.Since(begun) < 4*time.Minute; {
			before := time.Now()
			next()
			assert.LessOrEqual(t, time.Since(before), idle+time.Second, "a sign of life")
		}
		assert.Equal(t, 1, h.open())
		require.NoError(t, c.Close())
		time.Sleep(2 * idle)
		assert.Zero(t, h.open())
	})
}

// A page that does not read its stream is disconnected, and does not delay other pages.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		h := newHandler(t, q)
		dial, stop := serveOnPipes(t, h)
		defer stop()
		slow := dial()
		defer slow.Close()
		// The test reads nothing from this connection, like a page that hangs.
		ask(t, slow, "/_sqsfifo/live")
		fast := dial()
		defer fast.Close()
		ask(t, fast, "/_sqsfifo/live")
		lines := bufio.NewScanner(fast)
		lines.Buffer(nil, 1<<20)
		require.True(t, lines.Scan())
		synctest.Wait()
		assert.Equal(t, 2, h.open())
		go func() {
			for lines.Scan() {
			}
		}()
		time.Sleep(h.patience + time.Second)
		assert.Equal(t, 1, h.open())
	})
}

// The handler accepts at most MaxReaders open pages at a time. The streams of all pages end
// when the server ends.
func TestReadersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, newQueue(t, sqstest.Config{}))
		dial, stop := serveOnPipes(t, h)
		ended := false
		defer func() {
			if !ended {
				stop()
			}
		}()
		for range MaxReaders {
			c := dial()
			defer c.Close()
			ask(t, c, "/_sqsfifo/live")
			lines := bufio.NewScanner(c)
			require.True(t, lines.Scan())
			assert.Contains(t, lines.Text(), "200")
			go func() {
				for lines.Scan() {
				}
			}()
		}
		c := dial()
		defer c.Close()
		ask(t, c, "/_sqsfifo/live")
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
		answer.Body.Close()
		stop()
		ended = true
		synctest.Wait()
		assert.Zero(t, h.open())
	})
}

// The handler keeps the newest requests for display, but only while the request log is
// switched on.
func TestRequestLog(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	h := newHandler(t, q)
	list := func() []requestWire { return stateOf(t, h, "").Requests }
	one := func(body string) {
		answer(h, http.MethodPost, "/", body, "X-Amz-Target", "AmazonSQS.SendMessage", "Content-Type", "application/x-amz-json-1.0")
	}
	body := `{"MessageBody":"\"QueueUrl\":\"no\"","MessageGroupId":"g","QueueUrl":"http://localhost/000000000000/events.fifo"}`
	one(body)
	assert.Empty(t, list())
	toggle := func(on bool) {
		w := answer(h, http.MethodPost, "/_sqsfifo/requests", fmt.Sprintf(`{"on": %t}`, on), "Content-Type", "application/json")
		require.Equal(t, http.StatusNoContent, w.Code)
	}
	toggle(true)
	one(body)
	got := list()
	require.Len(t, got, 1)
	assert.Equal(t, "SendMessage", got[0].Operation)
	assert.Equal(t, "events.fifo", got[0].Queue)
	assert.Equal(t, 200, got[0].Status)
	assert.EqualValues(t, len(body), got[0].Bytes)
	q.Inject(sqstest.LoseAnswer(), 1)
	assert.Panics(t, func() { one(body) })
	assert.Equal(t, 0, list()[1].Status)
	one(`{}`)
	assert.Equal(t, 400, list()[2].Status)
	for range 2 * MaxRequests {
		one(`{}`)
	}
	assert.Len(t, list(), MaxRequests)
	toggle(false)
	assert.Empty(t, list())
}

// Injected faults, such as a lost answer, still break the connection while requests are
// logged.
func TestFaultsWhileRequestsAreKept(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	h := newHandler(t, q)
	h.requests.on = true
	server := httptest.NewServer(h)
	defer server.Close()
	client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1})
	for i, fault := range []sqstest.Fault{sqstest.ResetConnection(), sqstest.LoseAnswer(), sqstest.TruncateAnswer()} {
		q.Inject(fault, 1)
		_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String("a"), MessageGroupId: aws.String("g")})
		require.Error(t, err)
		if i == 0 {
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
	}
	assert.Zero(t, q.PendingFaults())
}
