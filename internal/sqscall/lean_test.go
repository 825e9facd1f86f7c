package sqscall_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/metrics"
	"github.com/aws/smithy-go/tracing"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/wire"
)

// storing is an HTTP client that keeps the requests and confirms each message of entries.
type storing struct {
	requests []*http.Request
	bodies   [][]byte
}

func (s *storing) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, body)
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), "Batch") {
		return response(200, []byte(batchSuccess(entries(3)).String())), err
	}
	return response(200, []byte(success(entries(1)[0]).String())), err
}

// roles is a provider with new credentials for each request, like an assumed role whose
// session is over.
type roles struct{ n int }

func (r *roles) Retrieve(context.Context) (aws.Credentials, error) {
	r.n++
	n := strconv.Itoa(r.n)
	return aws.Credentials{AccessKeyID: "ASIA" + n, SecretAccessKey: "SECRET" + n, SessionToken: "TOKEN" + n}, nil
}

type (
	endpoints struct{ sqs.EndpointResolverV2 }
	signer    struct{ sqs.HTTPSignerV4 }
	schemes   struct{ sqs.AuthSchemeResolver }
	tracers   struct{ tracing.NopTracerProvider }
	meters    struct{ metrics.NopMeterProvider }
	protocol  struct{ smithyhttp.ClientProtocol }
)

// interceptor adds a header to each request.
type interceptor struct{}

func (interceptor) BeforeTransmit(_ context.Context, in *smithyhttp.InterceptorContext) error {
	in.Request.Header.Set("X-Mine", "yes")
	return nil
}

// All requests are equal to those of a client of the SDK with the same options, and have a
// valid signature with new credentials. After the first request of each operation they do not
// run the SDK's middleware, unless one of the options could see the difference.
func TestOptions(t *testing.T) {
	for _, test := range []struct {
		name string
		lean bool
		set  func(*sqs.Options)
	}{
		{"defaults", true, func(*sqs.Options) {}},
		{"FIPS", true, func(o *sqs.Options) { o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled }},
		{"dual stack", true, func(o *sqs.Options) { o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled }},
		{"China", true, func(o *sqs.Options) { o.Region = "cn-north-1" }},
		{"endpoint", true, func(o *sqs.Options) { o.BaseEndpoint = aws.String("http://localhost:4566/some/path") }},
		{"application", true, func(o *sqs.Options) { o.AppID = "mine" }},
		{"retries", true, func(o *sqs.Options) { o.RetryMaxAttempts = 7 }},
		{"assumed role in a cache", true, func(o *sqs.Options) { o.Credentials = aws.NewCredentialsCache(o.Credentials) }},
		{"APIOptions", false, func(o *sqs.Options) {
			o.APIOptions = append(o.APIOptions, smithyhttp.AddHeaderValue("X-Mine", "yes"))
		}},
		{"interceptor", false, func(o *sqs.Options) { o.Interceptors.AddBeforeTransmit(interceptor{}) }},
		{"endpoint resolver", false, func(o *sqs.Options) { o.EndpointResolverV2 = endpoints{o.EndpointResolverV2} }},
		//lint:ignore SA1019 a program may still use the old resolver
		{"old endpoint resolver", false, func(o *sqs.Options) { o.EndpointResolver = sqs.EndpointResolverFromURL("http://localhost:1") }},
		{"signer", false, func(o *sqs.Options) { o.HTTPSignerV4 = signer{o.HTTPSignerV4} }},
		{"scheme resolver", false, func(o *sqs.Options) { o.AuthSchemeResolver = schemes{o.AuthSchemeResolver} }},
		{"schemes", false, func(o *sqs.Options) {
			o.AuthSchemes = sqs.New(sqs.Options{HTTPSignerV4: o.HTTPSignerV4}).Options().AuthSchemes
			o.AuthSchemes = append(o.AuthSchemes, o.AuthSchemes[0])
		}},
		{"tracer", false, func(o *sqs.Options) { o.TracerProvider = tracers{} }},
		{"meter", false, func(o *sqs.Options) { o.MeterProvider = meters{} }},
		{"log of requests", false, func(o *sqs.Options) { o.ClientLogMode = aws.LogRequest }},
		{"protocol", false, func(o *sqs.Options) { o.Protocol = protocol{o.Protocol} }},
		{"Lambda before the first invocation", false, func(*sqs.Options) { t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "f") }},
		{"Lambda", false, func(*sqs.Options) { t.Setenv("_X_AMZN_TRACE_ID", "Root=1-5759e988-bd862e3fe1be46a994272793") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			http1, http2 := &storing{}, &storing{}
			config := func(h aws.HTTPClient) aws.Config {
				return aws.Config{Region: "us-east-1", HTTPClient: h, Credentials: &roles{}}
			}
			own := sqscall.New(sqsfifo.NewClient(config(http1), test.set), queueURL)
			sdk := sqscall.New(sqs.NewFromConfig(config(http2), test.set), queueURL)
			for i := range 3 {
				assert.Equal(t, test.lean && i > 0, own.IsLean())
				assert.False(t, sdk.IsLean())
				for _, n := range []int{1, 3} {
					es := entries(n)
					for _, c := range []*sqscall.Caller{own, sdk} {
						answers := make([]attempt.Answer, n)
						_, err := c.Send(t.Context(), es, answers)
						require.NoError(t, err)
						require.Equal(t, stored, got(answers[n-1]))
					}
				}
			}
			require.Len(t, http1.requests, 6)
			require.Len(t, http2.requests, 6)
			for i, r := range http1.requests {
				checkSignature(t, r, http1.bodies[i], roleOf(test.name, i))
				want := http2.requests[i]
				for _, r := range []*http.Request{r, want} {
					for _, name := range []string{"Authorization", "X-Amz-Date", "Amz-Sdk-Invocation-Id"} { // new for each request
						assert.NotEmpty(t, r.Header.Get(name))
						r.Header.Del(name)
					}
				}
				assert.Equal(t, want.Header, r.Header)
				assert.Equal(t, want.URL, r.URL)
				assert.Equal(t, want.Host, r.Host)
				assert.Equal(t, want.Method, r.Method)
				assert.Equal(t, want.ContentLength, r.ContentLength)
				assert.JSONEq(t, string(http2.bodies[i]), string(http1.bodies[i]))
			}
		})
	}
}

// roleOf returns the credentials with which request i has to be signed.
func roleOf(test string, i int) aws.Credentials {
	if strings.HasSuffix(test, "cache") {
		i = 0
	}
	c, _ := (&roles{i}).Retrieve(context.Background())
	return c
}

func checkSignature(t *testing.T, r *http.Request, body []byte, c aws.Credentials) {
	t.Helper()
	assert.Equal(t, c.SessionToken, r.Header.Get("X-Amz-Security-Token"))
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	require.NoError(t, err)
	signed := r.Clone(t.Context())
	signed.Header.Del("Authorization")
	sum := sha256.Sum256(body)
	scope := strings.Split(r.Header.Get("Authorization"), "/")
	require.NoError(t, v4.NewSigner().SignHTTP(t.Context(), c, signed, hex.EncodeToString(sum[:]), "sqs", scope[2], at))
	assert.Equal(t, signed.Header.Get("Authorization"), r.Header.Get("Authorization"))
}

// The SDK makes the next request after each answer that is not a plain success, and after a
// minute.
func TestWhoSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := success(entries(1)[0]).String()
		text, status := plain, 200
		c := sqscall.New(sdkClient("http://localhost", stubHTTP(func(*http.Request) (*http.Response, error) {
			return response(status, []byte(text)), nil
		}), wire.Use), queueURL)
		send := func() { _, _ = c.Send(t.Context(), entries(1), make([]attempt.Answer, 1)) }
		for _, bad := range []func(){
			func() { text = "{}" }, func() { text = "" }, func() { text += "x" }, func() { text = text[:100] },
			func() { status = 201 }, func() { status = 302 }, func() { status = 400 }, func() { status = 500 },
		} {
			send()
			require.True(t, c.IsLean())
			bad()
			send()
			require.False(t, c.IsLean(), "%d %q", status, text)
			text, status = plain, 200
		}
		send()
		learned := c.Learned()
		require.Equal(t, time.Now(), learned)
		time.Sleep(time.Minute)
		send()
		require.Equal(t, learned, c.Learned())
		time.Sleep(time.Second)
		send()
		require.Equal(t, time.Now(), c.Learned())
	})
}

// outcome is what a caller of SendIf sees.
type outcome struct {
	answers []attempt.Answer
	chains  [][]string // types and texts of the errors
	load    attempt.Load
	got     sqscall.Exchange
}

func outcomeOf(t *testing.T, c *sqscall.Caller, n int) (o outcome) {
	t.Helper()
	c.ShowTexts = true
	var err error
	o.answers = make([]attempt.Answer, n)
	o.load, o.got, err = c.SendIf(t.Context(), entries(n), o.answers, nil)
	o.got.Skew = o.got.Skew.Round(time.Minute) // its last second depends on the time of the call
	o.chains = append(o.chains, chain(err))
	for i := range o.answers {
		o.chains = append(o.chains, chain(o.answers[i].Err))
		o.answers[i].Err = nil
	}
	return o
}

// chain returns the types and the texts of an error and of all errors that it wraps.
func chain(err error) (all []string) {
	for ; err != nil; err = errors.Unwrap(err) {
		all = append(all, reflect.TypeOf(err).String(), err.Error())
	}
	return all
}

// Each answer and each failure has the same outcome as with the SDK's middleware, with errors
// of the same types and texts.
func TestSameOutcomes(t *testing.T) {
	one, batch := success(entries(1)[0]), batchSuccess(entries(2))
	failed := object{"Successful": batch["Successful"].([]object)[:1], "Failed": []object{{"Id": "1", "Code": "InternalError", "SenderFault": false, "Message": "m"}}}
	type reply struct {
		text   string
		status int
		cut    error // error after the text
		failed error // error in place of an answer
		header http.Header
	}
	date := http.Header{"Date": {time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}, "X-Amzn-Requestid": {"r"}}
	var replies []reply
	for _, text := range []string{
		one.String(), batch.String(), failed.String(), "", "{}", "null", "<html>", one.String() + "x", batch.String()[:90], one.String()[:50],
		object{"__type": coral + "QueueDoesNotExist", "message": "The specified queue does not exist."}.String(),
		object{"__type": coral + "RequestThrottled"}.String(), object{"__type": coral + "InvalidSignatureException", "message": "Signature expired"}.String(),
	} {
		for _, status := range []int{200, 201, 204, 302, 400, 403, 413, 429, 500, 503} {
			replies = append(replies, reply{text: text, status: status, header: date})
		}
		replies = append(replies, reply{text: text, status: 200, cut: io.ErrUnexpectedEOF}, reply{text: text, status: 400, cut: errors.New("reset")},
			reply{text: text, status: 400, header: http.Header{"X-Amzn-Query-Error": {"AWS.SimpleQueueService.NonExistentQueue;Sender"}}})
	}
	replies = append(replies, reply{}, reply{failed: &net.OpError{Op: "read", Err: errors.New("reset")}}, reply{failed: context.DeadlineExceeded}, reply{failed: errors.New("")})
	for _, r := range replies {
		h := stubHTTP(func(*http.Request) (*http.Response, error) {
			if r.failed != nil || r.status == 0 {
				return nil, r.failed
			}
			out := response(r.status, nil)
			out.Body = io.NopCloser(wire.Body{Reader: bytes.NewReader([]byte(r.text)), Err: r.cut})
			out.Header = r.header.Clone()
			return out, nil
		})
		for _, n := range []int{1, 2} {
			sdk := sqscall.New(sdkClient("http://localhost", h, func(o *sqs.Options) { o.Protocol = protocol{o.Protocol} }), queueURL)
			own := sqscall.New(sdkClient("http://localhost", h, wire.Use), queueURL)
			own.Learn()
			require.True(t, own.IsLean())
			require.Equal(t, outcomeOf(t, sdk, n), outcomeOf(t, own, n), "%+v", r)
		}
	}
}

// A request that ends with its context has the same error as with the SDK's middleware.
func TestSameErrorAfterTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var chains [2][]string
		for i := range chains {
			h := stubHTTP(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
			c := sqscall.New(sdkClient("http://localhost", h, func(o *sqs.Options) {
				wire.Use(o)
				if i == 0 {
					o.Protocol = protocol{o.Protocol}
				}
			}), queueURL)
			c.ShowTexts = true
			c.Learn()
			require.Equal(t, i == 1, c.IsLean())
			answers := make([]attempt.Answer, 1)
			_, err := c.Send(t.Context(), entries(1), answers)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Equal(t, doubt, got(answers[0]))
			chains[i] = chain(err)
		}
		require.Equal(t, chains[0], chains[1])
	})
}

// A transport that still reads a request after its answer gets the bytes of this request and of
// no later one.
func TestAnswerBeforeTheEndOfTheRequest(t *testing.T) {
	var transport sync.WaitGroup
	late := true // the transport reads the request after its answer
	c := sqscall.New(sdkClient("http://localhost", stubHTTP(func(r *http.Request) (*http.Response, error) {
		answered, read := make(chan struct{}), make(chan struct{})
		if late {
			defer close(answered)
		} else {
			close(answered)
			defer func() { <-read }()
		}
		transport.Go(func() {
			defer close(read)
			<-answered
			time.Sleep(time.Millisecond)
			text, err := io.ReadAll(r.Body)
			assert.NoError(t, err)
			_, body, _ := strings.Cut(string(text), `"MessageBody":"`)
			body, _, _ = strings.Cut(body, `"`)
			assert.Equal(t, strings.Repeat(body[:1], 10_000), body)
			if hooks := httptrace.ContextClientTrace(r.Context()); hooks != nil && hooks.WroteRequest != nil {
				hooks.WroteRequest(httptrace.WroteRequestInfo{})
			}
		})
		return response(200, []byte(success(entries(1)[0]).String())), nil
	}), wire.Use), queueURL)
	for i := range 100 {
		c.Learn()
		late = i%3 != 0
		body := strings.Repeat(string(rune('a'+i%26)), 10_000)
		entry := sqscall.Entry{Body: &body, Group: aws.String("g"), BodyMD5: digest.Of(body)}
		_, _ = c.Send(t.Context(), []sqscall.Entry{entry}, make([]attempt.Answer, 1))
	}
	transport.Wait()
}
