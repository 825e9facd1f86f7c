package sqscall

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// progress is how far a request came and what came back. The SDK's middleware and
// the hooks of net/http write it.
//
// All of it is atomic: a client that wraps an *sqs.Client may return while another
// goroutine is still in the SDK.
type progress struct {
	may func() bool // whether the request may leave; nil is yes

	calls         atomic.Int32 // of the SDK for this request
	running       atomic.Int32 // those that have not returned
	transmissions atomic.Int32 // requests that the SDK handed to its HTTP client

	wanted    atomic.Int32 // connections that net/http asked for
	connected atomic.Int32 // connections that it obtained

	status atomic.Int32           // of the last HTTP answer, 0 for none
	failed atomic.Pointer[string] // sanitized __type in a body that is not a success
}

type progressKey struct{}

func (p *progress) follow(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// followed reports whether the SDK ran the middleware. It does not if the client
// is not the SDK's, or wraps it and drops the options.
func (p *progress) followed() bool { return p.calls.Load() > 0 }

func (p *progress) allowed() bool { return p.may == nil || p.may() }

// neverTransmitted reports that the SDK took the request on, and gave up before
// it handed the request to its HTTP client.
func (p *progress) neverTransmitted() bool {
	return p.followed() && p.running.Load() == 0 && p.transmissions.Load() == 0
}

// neverConnected reports that net/http asked for a connection and never obtained
// one: not for the first transmission, a redirect or a retry of the transport. If
// net/http did not ask, nothing is known: the HTTP client is another one.
//
// It is wrong in one case: an HTTP client that tries net/http in vain, then sends
// by another transport that calls no hooks, and gets no answer.
func (p *progress) neverConnected() bool {
	sent := p.transmissions.Load()
	return sent > 0 && p.running.Load() == 0 && p.wanted.Load() >= sent && p.connected.Load() == 0 && p.status.Load() == 0
}

// once reports that the request was made at most once. After a redirect or
// a retry in the HTTP client a refusal proves nothing: it says nothing about the
// earlier request.
func (p *progress) once() bool {
	return p.transmissions.Load() == 1 && p.running.Load() == 0 && p.connected.Load() <= 1
}

// noteCall is the outermost middleware.
var noteCall = middleware.InitializeMiddlewareFunc("sqsfifo:call",
	func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		if p, ok := ctx.Value(progressKey{}).(*progress); ok {
			p.running.Add(1)
			defer p.running.Add(-1)
			p.calls.Add(1)
		}
		return next.HandleInitialize(ctx, in)
	})

// noteTransmission is the innermost middleware, next to the HTTP client. The hooks
// begin here so that they do not see the connections of a credentials provider,
// which gets the same context.
var noteTransmission = middleware.DeserializeMiddlewareFunc("sqsfifo:transmission",
	func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
		p, ok := ctx.Value(progressKey{}).(*progress)
		if !ok {
			return next.HandleDeserialize(ctx, in)
		}
		if !p.allowed() {
			return middleware.DeserializeOutput{}, middleware.Metadata{}, ErrNotAllowed
		}
		p.transmissions.Add(1)
		out, metadata, err := next.HandleDeserialize(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GetConn: func(string) { p.wanted.Add(1) },
			GotConn: func(httptrace.GotConnInfo) { p.connected.Add(1) },
		}), in)
		if response, ok := out.RawResponse.(*smithyhttp.Response); ok && err == nil {
			p.receive(response)
		}
		return out, metadata, err
	})

const (
	maxAnswer = 1 << 20  // of a success; ten entries take about 4 KiB
	maxError  = 64 << 10 // of everything else
)

// receive notes the status of an answer and, unless it is a success, the error
// type in its body. The SDK reads the same body afterwards, and not more of it:
// the SDK sets no limit.
func (p *progress) receive(r *smithyhttp.Response) {
	p.status.Store(int32(r.StatusCode)) // #nosec G115 -- three digits
	if r.Body == nil {
		r.Body = http.NoBody
	}
	if r.StatusCode >= 200 && r.StatusCode < 300 {
		r.Body = &limitedBody{r.Body, maxAnswer}
		return
	}
	body, err := io.ReadAll(&limitedBody{r.Body, maxError})
	rest := io.Reader(bytes.NewReader(body))
	if err != nil {
		rest = io.MultiReader(rest, failingReader{err}) // the SDK must see the failure, too
	} else if name, ok := errorType(body); ok {
		p.failed.Store(&name)
	}
	r.Body = replayedBody{rest, r.Body}
}

// errorType returns the __type of a JSON error without its namespace. It reads
// the whole body: half an object, or an object with something after it, is not
// the answer of SQS.
func errorType(body []byte) (string, bool) {
	var fields map[string]json.RawMessage // a struct would match __TYPE, too
	var name string
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(fields["__type"], &name) != nil {
		return "", false
	}
	name, _, _ = strings.Cut(name, ":")
	name = name[strings.LastIndexByte(name, '#')+1:]
	return name, name != ""
}

// checkStatus returns an error if the answer has an HTTP status other than 200.
// The status is that of the middleware or, if the client dropped the options,
// that in the SDK's metadata; a client without HTTP has none.
func (p *progress) checkStatus(metadata middleware.Metadata) error {
	status := int(p.status.Load())
	if !p.followed() {
		if r, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response); ok && r != nil && r.Response != nil {
			status = r.StatusCode
		}
	}
	if status != 0 && status != http.StatusOK {
		return &StatusError{Status: status}
	}
	return nil
}

var errTooLong = errors.New("the answer is too long to be from SQS")

// limitedBody fails after left bytes. It does not end there, because the part
// before may look whole.
type limitedBody struct {
	io.ReadCloser
	left int
}

func (b *limitedBody) Read(to []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(to[:min(len(to), b.left)])
	b.left -= n
	return n, err
}

// replayedBody is a body of which a part was read.
type replayedBody struct {
	io.Reader
	io.Closer
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }
