package memory

import (
	"context"
	"crypto/md5" // #nosec G501 -- SQS answers with MD5 sums
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// client answers each send immediately, with an answer in the form of SQS, and stores no
// messages.
type client struct{ sent atomic.Int64 }

func (c *client) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	id, sequence := c.next()
	return &sqs.SendMessageOutput{MessageId: id, SequenceNumber: sequence, MD5OfMessageBody: digest(in.MessageBody)}, nil
}

func (c *client) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		id, sequence := c.next()
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{
			Id: e.Id, MessageId: id, SequenceNumber: sequence, MD5OfMessageBody: digest(e.MessageBody),
		})
	}
	return out, nil
}

func (c *client) next() (id, sequence *string) {
	n := c.sent.Add(1)
	text := strconv.FormatInt(n, 10)
	return aws.String("f8d3a1c0-0000-4000-8000-" + strings.Repeat("0", 12-len(text)) + text),
		aws.String("18889000000000" + strings.Repeat("0", 6-min(6, len(text))) + text)
}

func digest(body *string) *string {
	sum := md5.Sum([]byte(*body)) // #nosec G401
	return aws.String(hex.EncodeToString(sum[:]))
}

func (c *client) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{
		"FifoQueue": "true", "ContentBasedDeduplication": "true", "DeduplicationScope": "queue", "MaximumMessageSize": "1048576",
	}}, nil
}

// silentClient is a client whose sends block until their context ends.
type silentClient struct{ client }

func (*silentClient) SendMessage(ctx context.Context, _ *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*silentClient) SendMessageBatch(ctx context.Context, _ *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// errorBytes is the size, per event, of an error from failingClient.
const errorBytes = 10_000

// failingClient answers each request with status 502, so each event stays in doubt. Its
// errors contain the response, like errors of the SDK.
type failingClient struct{ client }

func (*failingClient) SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return nil, badGateway(1)
}

func (*failingClient) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return nil, badGateway(len(in.Entries))
}

func badGateway(events int) error {
	response := &http.Response{StatusCode: http.StatusBadGateway, Header: http.Header{"X-Proxy": {strings.Repeat("x", events*errorBytes)}}}
	return &smithy.OperationError{ServiceID: "SQS", OperationName: "SendMessageBatch", Err: &awshttp.ResponseError{
		RequestID:     "f8d3a1c0",
		ResponseError: &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: response}, Err: io.ErrUnexpectedEOF},
	}}
}
