package sqsfifo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Client is the subset of *sqs.Client that a producer calls. *sqs.Client and the fake
// queue of package sqstest implement Client. Methods must be safe for concurrent use. A
// wrapper of an *sqs.Client must pass the options through: the producer uses options to
// turn off the SDK's retries and to observe each request. If a wrapper drops the options,
// more failed events end in doubt, because the producer cannot prove that a request was
// not sent.
//
// In a request with one event, the context has the values of the caller's context. In a
// request with several events, the context has no values of callers.
type Client interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// NewClient returns an *sqs.Client for a producer with the given Delivery.InFlight. It
// differs from a client of sqs.NewFromConfig in two ways.
//
// The transport keeps at least inFlight idle connections. The SDK's transport keeps ten idle
// connections to a host and closes the others, so with more concurrent requests most
// requests start with a TLS handshake.
//
// The client sends the head and the body of a request in one write. The SDK's client
// needs two writes. A server on the same machine, for example an emulator, may answer
// before the second write; the SDK's client then loses the connection and sometimes the
// answer, and the event is sent again.
//
// NewClient changes only an HTTP client of the SDK's own type, and leaves any other HTTP
// client of cfg unchanged. The options are applied after the settings of the transport.
// The returned client may also serve other code: its retries and its check of digests are
// on. A producer turns both off for its own requests and checks each message itself.
func NewClient(cfg aws.Config, inFlight int, options ...func(*sqs.Options)) *sqs.Client {
	own := func(o *sqs.Options) {
		client, ok := o.HTTPClient.(*awshttp.BuildableClient)
		if !ok {
			return
		}
		o.HTTPClient = client.WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = max(t.MaxIdleConnsPerHost, inFlight)
			t.WriteBufferSize = max(t.WriteBufferSize, writeBuffer)
			if t.MaxIdleConns > 0 {
				t.MaxIdleConns = max(t.MaxIdleConns, inFlight)
			}
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

// wholeRequests is an HTTP client that copies each request body to memory. Without the
// copy, the SDK closes the body as soon as the answer arrives; a transport that is
// still reading the body then reports a failed write. Closing a copy never fails. The
// transport also writes the head of a request and a copied body together.
type wholeRequests struct{ next aws.HTTPClient }

func (c wholeRequests) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.ContentLength > 0 {
		body := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return nil, fmt.Errorf("sqsfifo: read the body of a request: %w", err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return c.next.Do(r)
}

// isNil reports whether v is nil or a nil pointer.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
