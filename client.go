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

// Client is the subset of *sqs.Client that a producer calls. *sqs.Client implements
// it, and so does the fake queue of package sqstest. Its methods are called from
// several goroutines at once. One that wraps an *sqs.Client must pass the options
// on: with them the producer turns the SDK's retries off and follows each request.
//
// The context of a request with one event has the values of the caller's context.
// That of a request with several events has none of them.
type Client interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

// NewClient returns an *sqs.Client whose transport keeps as many connections as
// a producer with the given Delivery.InFlight uses. The SDK's own keeps ten to a
// host and closes what is beyond, so that with more requests under way most of them
// begin with a TLS handshake.
//
// It also sends the head and the body of a request in one write where the SDK's takes
// two. An answer that comes while the SDK's client is still busy with the second, as that
// of an emulator on the same machine may, costs it the connection and sometimes the
// answer, so that the event is sent again.
//
// An HTTP client of cfg that is not the SDK's own is left as it is; the options
// come last. The client is an ordinary one and may be used for everything else:
// its retries are on, a producer turns them off for its own calls, as well as the
// SDK's check of digests, in whose place it checks each message.
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

// writeBuffer is what a connection gathers for one write: ten events of the usual size.
const writeBuffer = 64 << 10

// wholeRequests is an HTTP client whose requests have their bodies in memory. The
// transport knows such bodies: it writes the head together with them, and closing one
// never fails. That of the SDK is neither, and it is closed as soon as the answer is
// there: when the transport then comes to the end of it, it takes the write for failed.
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

// isNil reports whether an interface holds nothing, or a nil pointer.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}
