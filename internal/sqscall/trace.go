package sqscall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/wire"
)

// progress describes how far a request has come, and its answer. The SDK's middleware and
// net/http's hooks write all fields except the first three. These fields are atomic, because a
// wrapper of an *sqs.Client may return while another goroutine still writes them.
type progress struct {
	permit  func() bool                           // whether the request may leave; nil means yes
	learn   func(_ *http.Request, left time.Time) // called with an answered request of the SDK, unless nil
	replays bool                                  // the SDK only reads the answer to a request of type lean

	calls         atomic.Int32 // calls of the SDK for this request
	running       atomic.Int32 // calls that have not returned
	transmissions atomic.Int32 // requests passed to the SDK's HTTP client

	wanted    atomic.Int32 // connections requested by net/http
	connected atomic.Int32 // connections obtained by net/http
	written   atomic.Int32 // requests that net/http has written, with their bodies

	status atomic.Int32           // status of the last HTTP answer, or 0
	failed atomic.Pointer[string] // error type in the body of the last failed answer

	answered atomic.Pointer[Exchange] // the last HTTP answer
}

// Exchange has data from the headers of an HTTP answer. It is zero without an answer, or
// with a client other than the SDK's.
type Exchange struct {
	RequestID string

	// Skew is the lead of SQS's clock over this machine's clock, rounded to seconds.
	// HasDate reports whether the answer had a date; otherwise Skew is zero.
	Skew    time.Duration
	HasDate bool
}

func (p *progress) exchange() Exchange {
	if e := p.answered.Load(); e != nil {
		return *e
	}
	return Exchange{}
}

// noteExchange stores the request ID and the date of an HTTP response in p.answered.
func (p *progress) noteExchange(r *http.Response) {
	e := Exchange{RequestID: r.Header.Get("X-Amzn-Requestid")}
	if date, err := http.ParseTime(r.Header.Get("Date")); err == nil {
		// The Date header has whole seconds, so SQS's time was on average half a second
		// later than the date.
		e.Skew, e.HasDate = time.Until(date.Add(time.Second/2)).Round(time.Second), true
	}
	p.answered.Store(&e)
}

type progressKey struct{}

func (p *progress) follow(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// followed reports whether the SDK ran the middleware that writes p. Clients other than the
// SDK's, and wrappers that drop the options, skip the middleware.
func (p *progress) followed() bool { return p.calls.Load() > 0 }

func (p *progress) allowed() bool { return p.permit == nil || p.permit() }

// neverTransmitted reports whether the SDK gave up before it passed the request to its HTTP
// client. Without the middleware this is unknown, and the result is false.
func (p *progress) neverTransmitted() bool {
	return p.followed() && p.running.Load() == 0 && p.transmissions.Load() == 0
}

// neverConnected reports whether net/http wanted a connection for every transmission and
// never obtained a connection, so that nothing left this machine. The result is wrong in
// one case: after net/http has failed, the HTTP client sends the request through a
// transport without net/http's hooks, and gets no answer.
func (p *progress) neverConnected() bool {
	sent := p.transmissions.Load()
	return sent > 0 && p.running.Load() == 0 && p.wanted.Load() >= sent && p.connected.Load() == 0 && p.status.Load() == 0
}

// wasSentOnce reports whether the request went to the network at most once. Only then
// does a refusal prove that SQS stored nothing. After a redirect or a retry by the HTTP
// client, SQS may have stored the first transmission's messages.
func (p *progress) wasSentOnce() bool {
	return p.transmissions.Load() == 1 && p.running.Load() == 0 && p.connected.Load() <= 1
}

// noteCall counts the SDK's calls for a request, and those still running. It is the
// outermost middleware, so it covers all work of the SDK.
var noteCall = middleware.InitializeMiddlewareFunc("sqsfifo:call",
	func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		if p, ok := ctx.Value(progressKey{}).(*progress); ok {
			p.running.Add(1)
			defer p.running.Add(-1)
			p.calls.Add(1)
		}
		return next.HandleInitialize(ctx, in)
	})

// noteTransmission counts the requests passed to the HTTP client, and installs the hooks of
// net/http. It is the innermost middleware, so the hooks do not count the connections of a
// credentials provider.
var noteTransmission = middleware.DeserializeMiddlewareFunc("sqsfifo:transmission",
	func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		p, ok := ctx.Value(progressKey{}).(*progress)
		if !ok || p.replays {
			return next.HandleDeserialize(ctx, in)
		}
		hooked, err := p.begin(ctx)
		if err != nil {
			return middleware.DeserializeOutput{}, middleware.Metadata{}, err
		}
		left := time.Now()
		out, metadata, err := next.HandleDeserialize(hooked, in)
		if response, ok := out.RawResponse.(*smithyhttp.Response); ok && err == nil {
			p.receive(response.Response)
			if request, ok := in.Request.(*smithyhttp.Request); ok && p.learn != nil {
				p.learn(request.Request, left)
			}
		}
		return out, metadata, err
	})

// begin counts a request that is about to be passed to the HTTP client, if it may still
// leave. The request must have the returned context, which has the hooks of net/http.
func (p *progress) begin(ctx context.Context) (context.Context, error) {
	if !p.allowed() {
		return nil, ErrNotAllowed
	}
	p.transmissions.Add(1)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { p.wanted.Add(1) },
		GotConn: func(httptrace.GotConnInfo) { p.connected.Add(1) },
		WroteRequest: func(i httptrace.WroteRequestInfo) {
			if i.Err == nil {
				p.written.Add(1)
			}
		},
	}), nil
}

const (
	maxAnswer = 1 << 20  // limit for the body of a success, in bytes; ten entries take about 4 KiB
	maxError  = 64 << 10 // limit for the body of any other answer, in bytes
)

// receive records an answer's status, request ID and date and, unless it is a success, the
// error type in the body. It limits the body to maxAnswer or maxError bytes, because the SDK
// has no limit.
func (p *progress) receive(r *http.Response) {
	p.noteExchange(r)
	p.status.Store(int32(r.StatusCode)) // #nosec G115 -- three digits
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if r.StatusCode >= 200 && r.StatusCode < 300 {
		r.Body = &limitedBody{r.Body, maxAnswer}
		return
	}
	body, err := io.ReadAll(&limitedBody{r.Body, maxError})
	if name, ok := errorType(body); ok && err == nil {
		p.failed.Store(&name)
	}
	r.Body = wire.Body{Reader: bytes.NewReader(body), Err: err, Closer: r.Body}
}

// errorType returns the __type of a JSON error without its namespace. It reads the
// whole body: SQS's answer is one complete object without trailing data.
func errorType(body []byte) (string, bool) {
	var fields map[string]json.RawMessage // a map matches __type exactly; a struct field would also match __TYPE
	var name string
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(fields["__type"], &name) != nil {
		return "", false
	}
	name, _, _ = strings.Cut(name, ":")
	name = name[strings.LastIndexByte(name, '#')+1:]
	return name, name != ""
}

// checkStatus returns an error if the HTTP status of the answer is known and not 200. If
// the client has not run the middleware, checkStatus takes the status from the SDK's
// metadata.
func (p *progress) checkStatus(metadata middleware.Metadata) error {
	status := int(p.status.Load())
	if !p.followed() {
		if r, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response); ok && r != nil && r.Response != nil {
			status = r.StatusCode
		}
	}
	if status != 0 && status != http.StatusOK {
		return fmt.Errorf("%w: HTTP status %d", ErrUnproven, status)
	}
	return nil
}

var errTooLong = errors.New("the answer is too long to be from SQS")

// limitedBody passes on a limited number of bytes of an answer, and then fails with
// errTooLong. If it ended with io.EOF, the SDK could mistake the first part for a complete
// answer.
type limitedBody struct {
	io.ReadCloser
	left int // number of bytes that may still be read
}

func (b *limitedBody) Read(to []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(to[:min(len(to), b.left)])
	b.left -= n
	return n, err
}
