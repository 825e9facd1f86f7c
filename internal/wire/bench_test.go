package wire_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/require"
)

// A batch of ten messages of 1 KiB without a network: the SDK's protocol and ours.
func BenchmarkSendMessageBatch(b *testing.B) {
	sdk, own := sides()
	var answer strings.Builder
	in := &sqs.SendMessageBatchInput{QueueUrl: aws.String("https://sqs.us-west-2.amazonaws.com/123456789012/q.fifo")}
	body := `{"payload":{"text":"` + strings.Repeat(`value","key":"`, 70) + `"}}`
	for i := range 10 {
		in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: aws.String("0"), MessageBody: aws.String(body), MessageGroupId: aws.String("g")})
		if i > 0 {
			answer.WriteByte(',')
		}
		answer.WriteString(entry)
	}
	text := `{"Successful":[` + answer.String() + `],"Failed":[]}`
	for name, s := range map[string]side{"sdk": sdk, "own": own} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.answer = strings.NewReader(text)
				_, err := s.SendMessageBatch(b.Context(), in, unchecked)
				require.NoError(b, err)
			}
		})
	}
}
