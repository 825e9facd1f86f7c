// Package wire encodes the requests SendMessage and SendMessageBatch and decodes their
// answers with less processor time and memory than the SDK needs. Everything else is the
// SDK's: its middleware, signer, retries, errors and interceptors.
package wire

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// protocol is the protocol of the SDK with a codec of its own for two operations. It calls
// the SDK's protocol for all other operations, for input that it cannot encode, and for each
// answer that is not a plain success.
type protocol struct{ smithyhttp.ClientProtocol }

// Use is an option of an SQS client. It sets a protocol that is equal to the client's and
// needs less processor time for sends. Use does nothing if the client's protocol is not the
// one that the SDK uses for SQS (AWS JSON 1.0).
//
// The requests have the same JSON values as the SDK's, in the same order. A few characters
// have another escape: U+0008, U+000C, U+007F, U+2028 and U+2029. The answers and errors are
// equal to the SDK's.
func Use(o *sqs.Options) {
	if sdk, ok := o.Protocol.(*awsjson.Protocol); ok && sdk.ID().Name == "awsJson1_0" {
		o.Protocol = protocol{sdk}
	}
}

func (p protocol) SerializeRequest(ctx context.Context, schema *smithy.OperationSchema, in smithy.Serializable, r *smithyhttp.Request) error {
	var text bytes.Buffer
	if !Encode(&text, in) {
		return p.ClientProtocol.SerializeRequest(ctx, schema, in, r)
	}
	withBody, err := r.SetStream(bytes.NewReader(text.Bytes()))
	if err != nil {
		return err
	}
	*r = *withBody
	r.Method = http.MethodPost
	if r.URL.Path == "" {
		r.URL.Path = "/"
	}
	r.Header.Set("X-Amz-Target", "AmazonSQS."+schema.ID().Name)
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amzn-Query-Mode", "true")
	return nil
}

func (p protocol) DeserializeResponse(ctx context.Context, schema *smithy.OperationSchema, types *smithy.TypeRegistry, r *smithyhttp.Response, out smithy.Deserializable) error {
	if Read(r.Response, out) {
		return nil
	}
	return p.ClientProtocol.DeserializeResponse(ctx, schema, types, r, out)
}

// texts has the buffers for requests and answers. Ten messages of 1 KiB take about 16 KiB,
// their answer less than 4 KiB.
var texts = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Buffer returns an empty buffer for a request or an answer. See [Keep].
func Buffer() *bytes.Buffer { return texts.Get().(*bytes.Buffer) }

// maxKept is the largest buffer in bytes that is kept.
const maxKept = 64 << 10

// Keep takes a buffer back. Nothing may read its bytes any more.
func Keep(text *bytes.Buffer) {
	if text.Cap() <= maxKept {
		text.Reset()
		texts.Put(text)
	}
}

// Read reads an answer to a send and sets the members of the output. It reports false if the
// answer is not a plain success. The output and the bytes of the answer's body are then
// unchanged.
func Read(r *http.Response, out smithy.Deserializable) bool {
	switch out.(type) {
	case *sqs.SendMessageOutput, *sqs.SendMessageBatchOutput:
	default:
		return false
	}
	if r.StatusCode != http.StatusOK {
		return false
	}
	text := Buffer()
	defer Keep(text)
	_, err := text.ReadFrom(r.Body)
	if err == nil && decode(text.String(), out) {
		return true
	}
	r.Body = Body{bytes.NewReader(bytes.Clone(text.Bytes())), err, r.Body}
	return false
}

// Body is the body of an answer that was already read. Reading it gives the same bytes, and
// then the same error.
type Body struct {
	*bytes.Reader
	Err error // nil for io.EOF
	io.Closer
}

func (b Body) Read(to []byte) (int, error) {
	n, err := b.Reader.Read(to)
	if err == io.EOF && b.Err != nil {
		err = b.Err
	}
	return n, err
}
