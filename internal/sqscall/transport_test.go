package sqscall_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// listen serves each connection with h, and returns the address.
func listen(t testing.TB, h func(net.Conn)) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				h(c)
			}()
		}
	}()
	return l.Addr().String()
}

func readRequest(c net.Conn) {
	r, err := http.ReadRequest(bufio.NewReader(c))
	if err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
	}
}

func reset(c net.Conn) {
	_ = c.(*net.TCPConn).SetLinger(0)
	_ = c.Close()
}

func closedAddress(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

func to(address string) *sqscall.Caller {
	return sqscall.New(sdkClient("http://"+address, nil), queueURL)
}

// A truncated answer proves nothing, even if the server closes the connection normally.
func TestCutAnswers(t *testing.T) {
	one, batch := success(entries(2)[1]).String(), batchSuccess(entries(2)).String()
	for n, whole := range map[int]string{1: success(entries(1)[0]).String(), 2: batch} {
		var cut atomic.Int32
		c := sqscall.New(sdkClient("http://localhost", stubHTTP(func(*http.Request) (*http.Response, error) {
			return response(200, []byte(whole[:cut.Load()])), nil
		})), queueURL)
		for i := range len(whole) {
			cut.Store(int32(i))
			answers, _, _ := send(t, c, n)
			for _, a := range answers {
				require.Equal(t, doubt, got(a), whole[:i])
			}
		}
		cut.Store(int32(len(whole)))
		answers, _, _ := send(t, c, n)
		assert.Equal(t, stored, got(answers[0]))
	}
	header := "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\n"
	for name, answer := range map[string]string{
		"in the header":          header[:30],
		"after the header":       header + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(one)),
		"in the body":            header + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(one)) + one[:50],
		"in a body of no length": header + "Connection: close\r\n\r\n" + one[:50],
		"in a chunk":             header + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s", len(one), one[:50]),
		"not HTTP":               "220 smtp.example.com\r\n",
		"a refusal":              "HTTP/1.1 400 Bad Request\r\nContent-Length: 500\r\n\r\n" + `{"__type":"QueueDoesNotExist"}`,
		"nothing":                "",
	} {
		for how, end := range map[string]func(net.Conn){"closed": func(net.Conn) {}, "reset": reset} {
			answers, _, err := send(t, to(listen(t, func(c net.Conn) {
				readRequest(c)
				_, _ = c.Write([]byte(answer))
				end(c)
			})), 1)
			require.Error(t, err)
			assert.Equal(t, doubt, got(answers[0]), name+", "+how)
		}
	}
}

func TestBrokenConnections(t *testing.T) {
	for name, h := range map[string]func(net.Conn){
		"closed before the request is read": func(net.Conn) {},
		"reset within the request": func(c net.Conn) {
			_, _ = io.ReadFull(c, make([]byte, 20))
			reset(c)
		},
		"reset after the request": func(c net.Conn) {
			readRequest(c)
			reset(c)
		},
		"an endless header": func(c net.Conn) {
			readRequest(c)
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nX: "))
			for line := bytes.Repeat([]byte("x"), 64<<10); ; {
				if _, err := c.Write(line); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			answers, _, err := send(t, to(listen(t, h)), 2)
			require.Error(t, err)
			assert.Equal(t, []want{doubt, doubt}, gotAll(answers))
		})
	}
}

// A server resets each connection immediately. Either the connection attempt or the request
// fails.
func TestResetAtOnce(t *testing.T) {
	answers, _, err := send(t, to(listen(t, reset)), 1)
	require.Error(t, err)
	assert.Contains(t, []want{doubt, unsent}, got(answers[0]))
}

// An answer with an endless body takes a bounded amount of memory and time.
func TestEndlessBodies(t *testing.T) {
	for _, status := range []int{200, 400} {
		var written atomic.Int64
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = w.Write([]byte(`{"__type":"QueueDoesNotExist","message":"`))
			for {
				n, err := w.Write(bytes.Repeat([]byte("m"), 64<<10))
				if written.Add(int64(n)); err != nil {
					return
				}
			}
		})
		answers, _, _ := send(t, c, 1)
		assert.Equal(t, doubt, got(answers[0]), status)
		assert.Less(t, written.Load(), int64(64<<20), "the client reads on")
	}
	// A complete answer followed by 2 MiB of spaces exceeds the limit for an answer, so it
	// proves nothing.
	padded := success(entries(1)[0]).String() + strings.Repeat(" ", 2<<20)
	answers, _, _ := send(t, answering(t, 200, padded), 1)
	assert.Equal(t, doubt, got(answers[0]))
}

func TestTimeout(t *testing.T) {
	hold := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	for name, h := range map[string]func(net.Conn){
		"silence": hold,
		"slow bytes": func(c net.Conn) {
			readRequest(c)
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{"))
			for {
				if _, err := c.Write([]byte(" ")); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		},
		"slow bytes of a refusal": func(c net.Conn) {
			readRequest(c)
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad\r\nContent-Length: 100\r\n\r\n" + `{"__type":"QueueDoesNotExist"}`))
			hold(c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := to(listen(t, h))
			c.SetTimeout(50 * time.Millisecond)
			answers, _, err := send(t, c, 2)
			require.Error(t, err)
			assert.Equal(t, []want{doubt, doubt}, gotAll(answers))
			// In the other cases the client may report a broken connection instead.
			if name == "silence" {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
	}
	t.Run("the limit is that of Timeout", func(t *testing.T) {
		c := sqscall.New(stub{one: func(ctx context.Context) (*sqs.SendMessageOutput, error) {
			at, ok := ctx.Deadline()
			assert.True(t, ok)
			assert.InDelta(t, sqscall.Timeout, time.Until(at), float64(5*time.Second))
			return nil, ctx.Err()
		}}, queueURL)
		_, _ = c.Send(t.Context(), entries(1), make([]attempt.Answer, 1))
	})
	t.Run("the context ended before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		answers := make([]attempt.Answer, 1)
		c := to(listen(t, hold))
		c.Learn()
		_, err := c.Send(ctx, entries(1), answers)
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, again, got(answers[0]))
	})
}

func TestHTTP2(t *testing.T) {
	var handle http.HandlerFunc
	s := quiet(httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, 2, r.ProtoMajor)
		_, _ = io.Copy(io.Discard, r.Body)
		handle(w, r)
	})))
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	c := sqscall.New(sdkClient(s.URL, s.Client()), queueURL)
	abort := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	handle = abort
	answers, _, _ := send(t, c, 1)
	assert.Equal(t, doubt, got(answers[0]), "on a new connection")
	handle = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, success(entries(1)[0]).String())
	}
	answers, _, _ = send(t, c, 1)
	assert.Equal(t, stored, got(answers[0]))
	handle = abort
	answers, _, _ = send(t, c, 1)
	assert.Equal(t, doubt, got(answers[0]), "on a connection that was used before")
	handle = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"__type":"QueueDoesNotExist"}`)
	}
	answers, _, _ = send(t, c, 1)
	assert.Equal(t, again, got(answers[0]))
}

// The client keeps the connection after the first answer. At the first byte of the second
// request, the server resets the connection. The second entry is in doubt, because a part
// of its request has left this machine.
func TestIdleConnectionIsClosed(t *testing.T) {
	answer := success(entries(1)[0]).String()
	for range 20 {
		var accepted atomic.Int32
		c := to(listen(t, func(c net.Conn) {
			accepted.Add(1)
			readRequest(c)
			// The transport must see the end of the request's body before the answer.
			// Otherwise it closes the connection.
			time.Sleep(5 * time.Millisecond)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
			_, _ = c.Read(make([]byte, 1)) // a byte of the next request
			reset(c)
		}))
		first, _, _ := send(t, c, 1)
		assert.Equal(t, stored, got(first[0]))
		second, _, _ := send(t, c, 1)
		if accepted.Load() == 1 {
			assert.Equal(t, doubt, got(second[0]))
			return
		}
	}
	t.Error("the connection was never used again")
}

// SQS refuses a request because the clock of this machine is wrong. Send does not retry
// and reports that the entry may be sent again. The SDK learns the time from the refusal,
// so the next call of Send succeeds.
func TestClockSkew(t *testing.T) {
	for _, code := range []string{"InvalidSignatureException", "RequestExpired", "SignatureDoesNotMatch", "RequestInTheFuture"} {
		t.Run(code, func(t *testing.T) {
			var requests atomic.Int32
			c := serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				now := time.Now().Add(time.Hour)
				w.Header().Set("Date", now.UTC().Format(http.TimeFormat))
				signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
				if err != nil || now.Sub(signed).Abs() > 15*time.Minute {
					w.WriteHeader(403)
					_, _ = io.WriteString(w, object{"__type": coral + code, "message": "Signature expired"}.String())
					return
				}
				_, _ = io.WriteString(w, success(entries(1)[0]).String())
			})
			first, _, _ := send(t, c, 1)
			assert.Equal(t, again, got(first[0]))
			assert.Equal(t, code, first[0].Code)
			assert.EqualValues(t, 1, requests.Load(), "the SDK must not retry")
			second, _, _ := send(t, c, 1)
			assert.Equal(t, stored, got(second[0]))
		})
	}
}

// The SDK's retries and its check of digests are off, so each Send makes exactly one
// request.
func TestOneRequest(t *testing.T) {
	var requests atomic.Int32
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(500)
	})
	_, _, _ = send(t, c, 1)
	assert.EqualValues(t, 1, requests.Load())
	_, _, _ = send(t, c, 2)
	assert.EqualValues(t, 2, requests.Load())
}
