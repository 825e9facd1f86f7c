package sqscall

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/wire"
)

// lean makes requests without the SDK's middleware, which needs most of the processor time
// of a request. Such a request is a copy of an answered request of the SDK with another
// body: it has the same URL and headers. Credentials, signer and HTTP client are the SDK's.
//
// The SDK makes the first request of each operation, one request a minute, and the next
// request after each answer that is not a plain success. The SDK also reads these answers,
// so the errors are its own.
type lean struct {
	options sqs.Options
	do      func(*http.Request) (*http.Response, error)

	single, batch atomic.Pointer[pattern] // for the two operations; nil if the SDK must make the next request
}

// pattern is an answered request of the SDK.
type pattern struct {
	request         *http.Request
	service, region string        // of the signature
	ahead           time.Duration // by which the signature's time was ahead of this machine's clock
	learned         time.Time
}

// maxAge is the time for which a pattern is in use. Each request of the SDK looks again at the
// endpoint and at the clock of SQS.
const maxAge = time.Minute

// newLean returns nil if only the SDK can make the requests of the client: it is not a client
// of sqsfifo.NewClient, or the user has set an option for which requests, or what is done for
// each request, may differ from the SDK's defaults. On AWS Lambda, the SDK adds the trace
// header of an invocation to its requests.
func newLean(client Client) *lean {
	c, ok := client.(*sqs.Client)
	if !ok || os.Getenv("AWS_LAMBDA_FUNCTION_NAME") != "" {
		return nil
	}
	o, plain := c.Options(), sqs.New(sqs.Options{}, wire.Use).Options()
	for _, values := range [][2]any{
		{o.Protocol, plain.Protocol},
		{o.HTTPSignerV4, plain.HTTPSignerV4},
		{o.EndpointResolverV2, plain.EndpointResolverV2},
		{o.AuthSchemeResolver, plain.AuthSchemeResolver},
		{o.TracerProvider, plain.TracerProvider},
		{o.MeterProvider, plain.MeterProvider},
	} {
		if reflect.TypeOf(values[0]) != reflect.TypeOf(values[1]) {
			return nil
		}
	}
	//lint:ignore SA1019 a program may still use the old resolver
	if o.EndpointResolver != nil || o.Credentials == nil || len(o.APIOptions) > 0 || !reflect.DeepEqual(o.Interceptors, plain.Interceptors) ||
		o.ClientLogMode != 0 || len(o.AuthSchemes) != 1 || reflect.TypeOf(o.AuthSchemes[0].Signer()) != reflect.TypeOf(plain.AuthSchemes[0].Signer()) {
		return nil
	}
	l := &lean{options: o, do: o.HTTPClient.Do}
	if h, ok := o.HTTPClient.(interface {
		DoInMemory(*http.Request) (*http.Response, error)
	}); ok {
		l.do = h.DoInMemory
	}
	return l
}

// newPattern returns the pattern for an answered request that left at the given time. It
// returns nil for a request with a header that this package does not know, or with another
// signature than Signature Version 4.
func newPattern(r *http.Request, left time.Time) *pattern {
	p := &pattern{request: r.Clone(context.Background()), learned: left}
	p.request.GetBody = nil // it would return the old body
	header := http.Header{}
	for name, value := range p.request.Header {
		switch name {
		case "Authorization", "X-Amz-Date", "X-Amz-Security-Token", "Amz-Sdk-Invocation-Id": // new in each request
		case "Amz-Sdk-Request":
			attempt, _, _ := strings.Cut(value[0], "; ttl=") // the end of the request's time
			header.Set(name, attempt)
		case "User-Agent", "Content-Type", "X-Amz-Target", "X-Amzn-Query-Mode":
			header[name] = value
		default:
			return nil
		}
	}
	credential, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), ",")
	scope := strings.Split(credential, "/") // key/date/region/service/aws4_request
	signed, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil || len(scope) != 5 || scope[4] != "aws4_request" {
		return nil
	}
	p.request.Header, p.region, p.service, p.ahead = header, scope[2], scope[3], signed.Sub(p.learned).Round(time.Second)
	return p
}

// answer is the answer to a request, or the error of the HTTP client. Unless the answer is a
// plain success, which send has read, the SDK reads it: the answer is then the SDK's context
// and HTTP client. The context does not end before the SDK calls its HTTP client.
type answer struct {
	context.Context
	plain    bool
	response *http.Response
	err      error
	read     atomic.Bool
}

func (a *answer) configure(o *sqs.Options) {
	configure(o)
	o.HTTPClient = a
}

func (a *answer) Do(*http.Request) (*http.Response, error) {
	a.read.Store(true)
	return a.response, a.err
}

func (a *answer) Done() <-chan struct{} {
	if a.read.Load() {
		return a.Context.Done()
	}
	return nil
}

func (a *answer) Err() error {
	if a.read.Load() {
		return a.Context.Err()
	}
	return nil
}

// send makes a request and sets the members of out if the answer is a plain success. It
// returns nil without an error if the SDK must make the request.
func (l *lean) send(ctx context.Context, p *progress, in, out any) (*answer, error) {
	known := &l.batch
	if _, ok := in.(*sqs.SendMessageInput); ok {
		known = &l.single
	}
	like := known.Load()
	if like == nil || time.Since(like.learned) > maxAge || ctx.Err() != nil {
		p.learn = func(r *http.Request, left time.Time) {
			if p.status.Load() == http.StatusOK {
				known.Store(newPattern(r, left))
			}
		}
		return nil, nil
	}
	p.calls.Add(1) // before the credentials, which may panic: nothing has left this machine then
	text := wire.Buffer()
	if !wire.Encode(text, in.(smithy.Serializable)) {
		return nil, nil
	}
	request, err := l.request(ctx, like, text.Bytes())
	if err != nil {
		return nil, nil //nolint:nilerr // the SDK reports the error
	}
	hooked, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	a := &answer{Context: ctx}
	a.response, a.err = l.do(request.WithContext(hooked))
	if a.err == nil && a.response != nil {
		p.receive(a.response)
		if a.plain = wire.Read(a.response, out.(smithy.Deserializable)); a.plain {
			_ = a.response.Body.Close()
			if p.written.Load() == 1 && p.wasSentOnce() { // no transport reads the text any more
				wire.Keep(text)
			}
			return a, nil
		}
	}
	known.Store(nil)
	return a, nil
}

// request returns a signed request with the given body. After an error, the SDK must make the
// request.
func (l *lean) request(ctx context.Context, like *pattern, body []byte) (*http.Request, error) {
	credentials, err := l.options.Credentials.Retrieve(ctx)
	if err != nil {
		return nil, err
	}
	request, url := *like.request, *like.request.URL
	request.URL, request.Header = &url, maps.Clone(like.request.Header)
	request.Header.Set("Amz-Sdk-Invocation-Id", uuid.NewString())
	request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	sum := sha256.Sum256(body)
	return &request, l.options.HTTPSignerV4.SignHTTP(ctx, credentials, &request, hex.EncodeToString(sum[:]), like.service, like.region, time.Now().Add(like.ahead))
}
