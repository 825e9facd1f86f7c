package sqscall_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// failingDialer returns an HTTP client of net/http whose connections fail.
func failingDialer(err error) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err },
	}}
}

// quiet hides the server's log of broken handshakes.
func quiet(s *httptest.Server) *httptest.Server {
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	return s
}

// Send reports "not stored" if the message provably did not leave this machine.
func TestNeverLeft(t *testing.T) {
	secure := quiet(httptest.NewUnstartedServer(http.NotFoundHandler()))
	secure.StartTLS()
	t.Cleanup(secure.Close)
	plain := listen(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 Bad\r\n\r\n") })
	proxy := listen(t, func(c net.Conn) {
		readRequest(c)
		_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
	})
	through := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: proxy})}}
	dns := &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "sqs.invalid", IsNotFound: true}}
	noCredentials := func(o *sqs.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("no credentials")
		})
	}
	deniedCredentials := func(o *sqs.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			// This request for credentials has the context of the request to SQS. Its
			// connection must not count as a connection to SQS.
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, secure.URL, nil)
			require.NoError(t, err)
			response, err := secure.Client().Do(r)
			require.NoError(t, err)
			_ = response.Body.Close()
			return aws.Credentials{}, &smithy.GenericAPIError{Code: "InternalError", Fault: smithy.FaultServer}
		})
	}
	for _, test := range []struct {
		name   string
		client *sqs.Client
		want   want
	}{
		{"refused connection", sdkClient("http://"+closedAddress(t), nil), unsent},
		{"refused connection, net/http", sdkClient("http://"+closedAddress(t), http.DefaultClient), unsent},
		{"name without an address", sdkClient("http://sqs.invalid", failingDialer(dns)), unsent},
		{"dial error of any kind", sdkClient("http://sqs.invalid", failingDialer(io.ErrUnexpectedEOF)), unsent},
		{"unknown certificate", sdkClient(secure.URL, nil), unsent},
		{"not TLS", sdkClient("https://"+plain, nil), unsent},
		{"proxy refuses to connect", sdkClient("https://localhost:1", through), unsent},
		{"no credentials", sdkClient(secure.URL, nil, noCredentials), again},
		{"no credentials after requests of the provider", sdkClient(secure.URL, nil, deniedCredentials), again},
		{"no region", sqs.New(sqs.Options{}), again},
		{"middleware of the user", sdkClient(secure.URL, nil, func(o *sqs.Options) {
			o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
				return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("user's",
					func(context.Context, middleware.InitializeInput, middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
						return middleware.InitializeOutput{}, middleware.Metadata{}, errors.New("not allowed")
					}), middleware.Before)
			})
		}), again},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, n := range []int{1, 3} {
				answers, _, err := send(t, sqscall.New(test.client, queueURL), n)
				require.Error(t, err)
				for _, a := range answers {
					assert.Equal(t, test.want, got(a), err)
					assert.Empty(t, a.Code, "it is not that of SQS")
				}
			}
		})
	}
	t.Run("credentials by a request, then a refused connection", func(t *testing.T) {
		client := sdkClient("http://"+closedAddress(t), nil, func(o *sqs.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, secure.URL, nil)
				require.NoError(t, err)
				response, err := secure.Client().Do(r)
				require.NoError(t, err)
				_ = response.Body.Close()
				return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
			})
		})
		answers, _, _ := send(t, sqscall.New(client, queueURL), 1)
		assert.Equal(t, unsent, got(answers[0]))
	})
	t.Run("credentials that panic", func(t *testing.T) {
		client := sdkClient("http://"+closedAddress(t), nil, func(o *sqs.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { panic("no role") })
		})
		answers, _, _ := send(t, sqscall.New(client, queueURL), 1)
		assert.Equal(t, again, got(answers[0]), "nothing left this machine")
	})
	t.Run("credentials that panic later", func(t *testing.T) {
		over := false
		c := sqscall.New(sdkClient("http://"+closedAddress(t), nil, func(o *sqs.Options) {
			o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				if over {
					panic("no role")
				}
				return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
			})
		}), queueURL)
		c.Learn()
		over = true
		answers, _, _ := send(t, c, 1)
		assert.Equal(t, again, got(answers[0]), "nothing left this machine")
	})
	t.Run("no connection in time", func(t *testing.T) {
		c := sqscall.New(sdkClient("http://sqs.invalid", &http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		}}), queueURL)
		c.SetTimeout(20 * time.Millisecond)
		answers, _, _ := send(t, c, 1)
		assert.Equal(t, unsent, got(answers[0]))
	})
	t.Run("a request that the SDK finds invalid", func(t *testing.T) {
		for _, n := range []int{1, 2} {
			es := entries(n)
			es[0].Body = nil
			answers := make([]attempt.Answer, n)
			_, err := sqscall.New(sdkClient(secure.URL, nil), queueURL).Send(t.Context(), es, answers)
			var params smithy.InvalidParamsError
			require.ErrorAs(t, err, &params)
			for _, a := range answers {
				assert.Equal(t, refused, got(a))
			}
		}
	})
	t.Run("a client certificate refused after the handshake", func(t *testing.T) {
		s := quiet(httptest.NewUnstartedServer(http.NotFoundHandler()))
		s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13}
		s.StartTLS()
		t.Cleanup(s.Close)
		answers, _, _ := send(t, sqscall.New(sdkClient(s.URL, s.Client()), queueURL), 1)
		assert.Equal(t, doubt, got(answers[0]), "the request may have been written by then")
	})
}

// If the HTTP client does not call the hooks of net/http, Send cannot know whether a
// request left this machine. Without an answer from SQS, every entry is in doubt.
func TestWithoutHooks(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	c := sqscall.New(sdkClient("http://localhost", stubHTTP(func(*http.Request) (*http.Response, error) { return nil, dial })), queueURL)
	answers, _, _ := send(t, c, 2)
	assert.Equal(t, []want{doubt, doubt}, gotAll(answers))
	nothing := sqscall.New(sdkClient("http://localhost", stubHTTP(func(*http.Request) (*http.Response, error) { return nil, nil })), queueURL)
	answers, _, _ = send(t, nothing, 1)
	assert.Equal(t, doubt, got(answers[0]))
	refuses := sqscall.New(sdkClient("http://localhost", stubHTTP(func(*http.Request) (*http.Response, error) {
		return response(400, []byte(`{"__type":"QueueDoesNotExist"}`)), nil
	})), queueURL)
	answers, _, _ = send(t, refuses, 1)
	assert.Equal(t, again, got(answers[0]), "the body is proof enough")
}

// The HTTP client cannot connect, and then uses another transport, which does not call
// the hooks of net/http. This transport returns an answer, so a request left this
// machine, and the entry is in doubt.
func TestFallbackWithoutHooks(t *testing.T) {
	dead := failingDialer(errors.New("refused"))
	c := sqscall.New(sdkClient("http://sqs.invalid", stubHTTP(func(r *http.Request) (*http.Response, error) {
		_, err := dead.Do(r)
		require.Error(t, err)
		return response(502, []byte(html)), nil
	})), queueURL)
	answers, _, _ := send(t, c, 1)
	assert.Equal(t, doubt, got(answers[0]), "somebody answered")
}

// SendIf checks its condition twice: before the call of the client, and after the request
// was signed. If a check returns false, no request leaves this machine, and the entries
// may be sent again.
func TestNotAllowed(t *testing.T) {
	var arrived atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	t.Cleanup(server.Close)
	for _, allowed := range []int{0, 1} {
		for _, n := range []int{1, 3} {
			asked := 0
			answers := make([]attempt.Answer, n)
			c := sqscall.New(sdkClient(server.URL, nil), queueURL)
			c.Learn()
			load, _, err := c.SendIf(t.Context(), entries(n), answers, func() bool {
				asked++
				return asked <= allowed
			})
			require.ErrorIs(t, err, sqscall.ErrNotAllowed)
			require.Equal(t, attempt.LoadPassed, load)
			require.Equal(t, allowed+1, asked)
			for _, a := range answers {
				require.Equal(t, want{attempt.FateNotStored, attempt.NextRetry, attempt.LoadPassed, false}, got(a))
				require.ErrorIs(t, a.Err, sqscall.ErrNotAllowed)
			}
		}
	}
	require.Zero(t, arrived.Load())
}
