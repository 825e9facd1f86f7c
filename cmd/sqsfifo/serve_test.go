package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func TestHostAndOrigin(t *testing.T) {
	served := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	for _, tc := range []struct {
		host, origin, site string
		code               int
	}{
		{"localhost", "", "", 204},
		{"LocalHost:9324", "", "", 204},
		{"127.0.0.1:9324", "", "", 204},
		{"127.8.9.10", "", "", 204},
		{"[::1]:9324", "", "", 204},
		{"[::1]", "", "", 204},
		{"", "", "", 403},
		{"evil.example", "", "", 403},
		{"evil.example:9324", "", "", 403},
		{"localhost.evil.example", "", "", 403},
		{"127.0.0.1.evil.example:9324", "", "", 403},
		{"localhost.", "", "", 403},
		{"192.168.0.7:9324", "", "", 403},
		{"0.0.0.0:9324", "", "", 403},
		{"[::]:9324", "", "", 403},
		{"[::ffff:10.0.0.1]:9324", "", "", 403},
		{"localhost:9324", "http://localhost:3000", "same-site", 204},
		{"localhost:9324", "http://127.0.0.1", "", 204},
		{"localhost:9324", "http://evil.example", "", 403},
		{"localhost:9324", "https://localhost.evil.example", "", 403},
		{"localhost:9324", "null", "", 403},
		{"localhost:9324", "", "cross-site", 403},
		{"localhost:9324", "", "none", 204},
		{"evil.example", "http://localhost", "", 403},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Host = tc.host
		if tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		if tc.site != "" {
			r.Header.Set("Sec-Fetch-Site", tc.site)
		}
		w := httptest.NewRecorder()
		loopbackOnly(served).ServeHTTP(w, r)
		assert.Equal(t, tc.code, w.Code, "%+v", tc)
	}
	two := httptest.NewRequest(http.MethodPost, "/", nil)
	two.Host = "localhost"
	two.Header["Origin"] = []string{"http://localhost", "http://evil.example"}
	w := httptest.NewRecorder()
	loopbackOnly(served).ServeHTTP(w, two)
	assert.Equal(t, 403, w.Code)
}

// startServe runs "sqsfifo serve" in this process. It returns the server's address, and a
// function that stops the server and returns the exit code.
func startServe(t *testing.T, args ...string) (address string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), stdio{nil, w, os.Stderr})
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	require.True(t, lines.Scan())
	go io.Copy(io.Discard, r)
	stop = sync.OnceValue(func() int {
		cancel()
		return <-code
	})
	t.Cleanup(func() { stop() })
	return strings.TrimPrefix(lines.Text(), "http://"), stop
}

func call(t *testing.T, address, host, operation, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/", strings.NewReader(body))
	require.NoError(t, err)
	if host != "" {
		r.Host = host
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+operation)
	out, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	require.NoError(t, err)
	return out.StatusCode, string(text)
}

func TestServeRefusesOtherHosts(t *testing.T) {
	address, _ := startServe(t)
	code, _ := call(t, address, "", "ListQueues", "{}")
	assert.Equal(t, 200, code)
	code, text := call(t, address, "rebound.example", "ListQueues", "{}")
	assert.Equal(t, 403, code)
	assert.Contains(t, text, "--allow-remote")
	for _, path := range []string{"/", "/_sqsfifo/window"} {
		r := httptest.NewRequest(http.MethodGet, "http://"+address+path, nil)
		r.RequestURI, r.Host = "", "rebound.example"
		out, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		out.Body.Close()
		assert.Equal(t, 403, out.StatusCode)
	}

	address, _ = startServe(t, "--allow-remote")
	code, _ = call(t, address, "sqs.compose.test", "ListQueues", "{}")
	assert.Equal(t, 200, code)
}

func TestServeBounds(t *testing.T) {
	send := `{"QueueUrl":"events.fifo","MessageBody":"%d","MessageGroupId":"g"}`
	round := func(address string, n int) (int, string) {
		if code, text := call(t, address, "", "SendMessage", fmt.Sprintf(send, n)); code != 200 {
			return code, text
		}
		_, text := call(t, address, "", "ReceiveMessage", `{"QueueUrl":"events.fifo"}`)
		_, handle, _ := strings.Cut(text, `"ReceiptHandle":"`)
		handle, _, _ = strings.Cut(handle, `"`)
		return call(t, address, "", "DeleteMessage", `{"QueueUrl":"events.fifo","ReceiptHandle":"`+handle+`"}`)
	}
	address, _ := startServe(t, "--max-messages", "3", "--max-queues", "2")
	for n := range 10 {
		code, text := round(address, n)
		assert.Equal(t, 200, code, text)
	}
	code, _ := call(t, address, "", "CreateQueue", `{"QueueName":"second"}`)
	assert.Equal(t, 200, code)
	code, text := call(t, address, "", "CreateQueue", `{"QueueName":"third"}`)
	assert.Equal(t, 403, code)
	assert.Contains(t, text, "com.amazonaws.sqs#OverLimit")

	address, _ = startServe(t, "--max-messages", "3", "--keep")
	for n := range 3 {
		code, _ := round(address, n)
		assert.Equal(t, 200, code)
	}
	code, text = round(address, 3)
	assert.Equal(t, 403, code)
	assert.Contains(t, text, "OverLimit")
}

// A client with a partial request body gets an error answer. A client with a partial
// header is disconnected. Other clients are not affected.
func TestHalfOpenRequests(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	q, err := sqstest.NewQueue(sqstest.Config{})
	require.NoError(t, err)
	limits := timeouts{header: time.Second, request: time.Second, response: time.Minute}
	go func() { done <- serveUntilDone(ctx, loopbackOnly(sqstest.NewServer(q)), limits, listener) }()
	address := listener.Addr().String()

	halves := []string{
		"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-",
		"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nContent-Length: 1000\r\n\r\n{\"QueueUrl\"",
	}
	var conns []net.Conn
	for i := range 900 {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer c.Close()
		_, err = io.WriteString(c, halves[i%2])
		require.NoError(t, err)
		conns = append(conns, c)
	}
	code, _ := call(t, address, "", "SendMessage", `{"QueueUrl":"events.fifo","MessageBody":"a","MessageGroupId":"g"}`)
	assert.Equal(t, 200, code)
	for i, c := range conns {
		answer, _ := io.ReadAll(c) // ends when the server closes the connection
		if i%2 == 1 {
			require.Contains(t, string(answer), "408 Request Timeout")
			require.Contains(t, string(answer), "RequestTimeout;Sender")
		}
	}
	stop()
	require.NoError(t, <-done)
}

// The server stops reading an endless body, and does not keep it in memory.
func TestEndlessBody(t *testing.T) {
	address, _ := startServe(t)
	c, err := net.Dial("tcp", address)
	require.NoError(t, err)
	defer c.Close()
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.SendMessage\r\nTransfer-Encoding: chunked\r\n\r\n")
	chunk := "10000\r\n" + strings.Repeat(" ", 1<<16) + "\r\n"
	sent := 0
	for sent < 1<<30 {
		n, err := io.WriteString(c, chunk)
		sent += n
		if err != nil {
			break
		}
	}
	assert.Less(t, sent, 1<<28, "the server stops reading")
	code, _ := call(t, address, "", "ListQueues", "{}")
	assert.Equal(t, 200, code)
}

// A stopped server first cancels the contexts of running requests, with the cause of the
// stop, and only then closes their connections.
func TestServeCancelsRequests(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	waiting, why, done := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(waiting)
		<-r.Context().Done()
		why <- context.Cause(r.Context())
	})
	go func() { done <- serveUntilDone(ctx, handler, defaultTimeouts, listener) }()
	go func() {
		if out, err := http.Get("http://" + listener.Addr().String()); err == nil {
			out.Body.Close()
		}
	}()
	<-waiting
	stop(stopped)
	assert.ErrorIs(t, <-why, stopped)
	require.NoError(t, <-done)
}

// Clients that wait in long polls do not delay the stop of the server.
func TestServeEndsWithPollers(t *testing.T) {
	address, stop := startServe(t)
	const polls = 50
	ended := make(chan struct{}, polls)
	for range polls {
		go func() {
			defer func() { ended <- struct{}{} }()
			r, _ := http.NewRequest(http.MethodPost, "http://"+address+"/", strings.NewReader(`{"QueueUrl":"events.fifo","WaitTimeSeconds":20}`))
			r.Header.Set("Content-Type", "application/x-amz-json-1.0")
			r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
			if out, err := http.DefaultClient.Do(r); err == nil {
				out.Body.Close()
			}
		}()
	}
	time.Sleep(200 * time.Millisecond) // most polls are waiting by now
	assert.Equal(t, 0, stop())
	for range polls {
		<-ended
	}
}
