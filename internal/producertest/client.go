package producertest

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"net"
	"net/http"
	"net/http/httptrace"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// InstantClient stores nothing and reports success.
type InstantClient struct{ *sqstest.Queue }

// SendMessageBatch returns a result for each entry.
func (InstantClient) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{Successful: make([]types.SendMessageBatchResultEntry, len(in.Entries))}
	for i, e := range in.Entries {
		out.Successful[i] = types.SendMessageBatchResultEntry{Id: e.Id, MessageId: e.Id, SequenceNumber: e.Id, MD5OfMessageBody: md5Of(e.MessageBody)}
	}
	return out, nil
}

func md5Of(body *string) *string {
	sum := md5.Sum([]byte(*body))
	return aws.String(hex.EncodeToString(sum[:]))
}

// Unreachable is an HTTP client that cannot connect while Fault returns an error.
// Otherwise Next does the request.
type Unreachable struct {
	Next  sqs.HTTPClient
	Fault func() error
}

// Do returns the error of Fault, or the answer of Next.
func (c Unreachable) Do(r *http.Request) (*http.Response, error) {
	err := c.Fault()
	if err == nil {
		return c.Next.Do(r)
	}
	if t := httptrace.ContextClientTrace(r.Context()); t != nil && t.GetConn != nil {
		t.GetConn(r.URL.Host)
	}
	return nil, err
}

// ErrRefused is the error of a connection that is refused.
var ErrRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
