package sqscall_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// replaying is an HTTP client that sends the body again after a redirect. For this, it
// sets the field GetBody of each request.
type replaying struct{ *http.Client }

func (c replaying) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return c.Client.Do(r)
}

func TestRedirects(t *testing.T) {
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"__type":"QueueDoesNotExist"}`)
	}))
	t.Cleanup(refusing.Close)
	storing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, success(entries(1)[0]).String())
	}))
	t.Cleanup(storing.Close)
	for target, location := range map[string]string{
		"a closed port": "http://" + closedAddress(t), "a refusal": refusing.URL, "a success": storing.URL, "nowhere": "",
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			t.Run(fmt.Sprint(status, " to ", target), func(t *testing.T) {
				redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if location != "" {
						w.Header().Set("Location", location)
					}
					w.WriteHeader(status)
				}))
				t.Cleanup(redirecting.Close)
				for _, h := range []aws.HTTPClient{nil, &http.Client{}, replaying{&http.Client{}}} {
					answers, _, _ := send(t, sqscall.New(sdkClient(redirecting.URL, h), queueURL), 1)
					want := doubt
					_, follows := h.(replaying)
					if target == "a success" && follows {
						want = stored
					}
					// After the statuses 301, 302 and 303, net/http sends a GET without
					// the message. The test's server confirms the message anyway.
					if _, ok := h.(*http.Client); ok && target == "a success" && status < 307 {
						want = stored
					}
					assert.Equal(t, want, got(answers[0]), "%T", h)
				}
			})
		}
	}
}

// The HTTP client repeats a request after a lost answer. The server refuses the second
// request, but may have stored the message of the first: the entry is in doubt.
func TestRetryingHTTPClient(t *testing.T) {
	var n atomic.Int32
	s := quiet(httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if n.Add(1)%2 == 1 {
			panic(http.ErrAbortHandler) // the request was stored and its answer is lost
		}
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"__type":"AccessDenied"}`)
	})))
	s.Start()
	t.Cleanup(s.Close)
	twice := stubHTTP(func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if answer, err := http.DefaultClient.Do(r); err == nil {
			return answer, nil
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return http.DefaultClient.Do(r)
	})
	answers, _, _ := send(t, sqscall.New(sdkClient(s.URL, twice), queueURL), 1)
	assert.Equal(t, doubt, got(answers[0]))
	assert.EqualValues(t, 2, n.Load())
}
