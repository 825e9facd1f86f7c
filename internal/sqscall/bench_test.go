package sqscall_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// BenchmarkSend sends a batch of ten messages through a Caller, the type of this package,
// and for comparison directly through the SDK's client without retries and checks.
func BenchmarkSend(b *testing.B) {
	es := entries(10)
	for i := range es {
		es[i].Attributes = nil
	}
	answer := []byte(batchSuccess(es).String())
	client := sdkClient("http://localhost", stubHTTP(func(*http.Request) (*http.Response, error) {
		return response(http.StatusOK, answer), nil
	}))
	b.Run("caller", func(b *testing.B) {
		c := sqscall.New(client, queueURL)
		answers := make([]attempt.Answer, len(es))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := c.Send(b.Context(), es, answers); err != nil || answers[9].Fate != attempt.FateStored {
				b.Fatal(err, answers)
			}
		}
	})
	b.Run("sdk", func(b *testing.B) {
		plain := func(o *sqs.Options) {
			o.Retryer = aws.NopRetryer{}
			o.DisableMessageChecksumValidation = true
		}
		ids := make([]string, len(es))
		for i := range ids {
			ids[i] = strconv.Itoa(i)
		}
		b.ReportAllocs()
		for b.Loop() {
			request := make([]types.SendMessageBatchRequestEntry, len(es))
			for i, e := range es {
				request[i] = types.SendMessageBatchRequestEntry{
					Id: &ids[i], MessageBody: e.Body, MessageGroupId: e.Group, MessageDeduplicationId: e.DeduplicationID,
				}
			}
			out, err := client.SendMessageBatch(b.Context(), &sqs.SendMessageBatchInput{QueueUrl: aws.String(queueURL), Entries: request}, plain)
			if err != nil || len(out.Successful) != len(es) {
				b.Fatal(err)
			}
		}
	})
}
