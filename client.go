package sqsfifo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/wire"
)

// Client is the subset of *sqs.Client that a producer calls. *sqs.Client and the fake queue
// of package sqstest implement Client. The methods must be safe for concurrent use.
//
// A wrapper of an *sqs.Client must pass the options to that client. The producer uses
// options to turn off the SDK's retries and to observe each request. Without the options,
// more failed events end in doubt, because the producer cannot prove that a request was not
// sent.
//
// The context of a request with one event has the values of the caller's context. The
// context of a request with several events has no values of callers.
type Client interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// NewClient returns an *sqs.Client for a producer. The client differs from a client of
// sqs.NewFromConfig in three ways:
//
//   - It keeps each connection to SQS until the connection was idle for the SDK's timeout
//     of 90 seconds. It therefore has a connection for each concurrent request, whatever
//     Delivery.InFlight is. The SDK's client keeps ten idle connections and closes the
//     others. With more concurrent requests, most requests then start with a TLS handshake.
//   - It sends the head and the body of a request in one write. The SDK's client needs two
//     writes. A local emulator may answer before the second write. The SDK's client then
//     loses the connection and sometimes the answer, and the event is sent again.
//   - It encodes sends and decodes their answers with less processor time. Requests, answers
//     and errors have the same values. An option that sets Options.Protocol turns this off.
//     A producer also sends without the SDK's middleware, unless an option could make a
//     difference (docs/guide/speed.md).
//
// NewClient changes only an HTTP client of the SDK's own type. It leaves any other HTTP
// client of cfg unchanged. The options are applied after the settings of the transport.
//
// Other code may use the client too: the client's retries and its check of digests are on.
// A producer turns both off for its own requests and checks each message itself.
func NewClient(cfg aws.Config, options ...func(*sqs.Options)) *sqs.Client {
	own := func(o *sqs.Options) {
		wire.Use(o)
		client, ok := o.HTTPClient.(*awshttp.BuildableClient)
		if !ok {
			return
		}
		o.HTTPClient = client.WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, math.MaxInt // limited only by the number of concurrent requests
			t.WriteBufferSize = max(t.WriteBufferSize, writeBuffer)
		})
	}
	whole := func(o *sqs.Options) {
		if client, ok := o.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = wholeRequests{client}
		}
	}
	return sqs.NewFromConfig(cfg, append(append([]func(*sqs.Options){own}, options...), whole)...)
}

// writeBuffer is the write buffer of a connection in bytes, enough for ten events of
// the usual size.
const writeBuffer = 64 << 10

// wholeRequests copies each request body to memory before the request. The SDK closes the
// original body when the answer arrives, and a transport still reading that body would
// report a failed write.
type wholeRequests struct{ next aws.HTTPClient }

func (c wholeRequests) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.ContentLength > 0 {
		body := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return nil, fmt.Errorf("sqsfifo: read the body of a request: %w", err)
		}
		// The transport can see that this body is in memory. It therefore sends the body
		// in one write with the head.
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.next.Do(r)
}

// DoInMemory sends a request whose body is in memory already (see package sqscall).
func (c wholeRequests) DoInMemory(r *http.Request) (*http.Response, error) { return c.next.Do(r) }

func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
