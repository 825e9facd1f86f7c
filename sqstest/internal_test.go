package sqstest

import (
	"math/big"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/schemas"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/traits"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
)

// Each millisecond has 256,000 sequence numbers (F-008). If a millisecond has more sends,
// they get numbers of the next millisecond. The sends of the next millisecond then continue
// after these numbers.
func TestSequenceNumbersCarryOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := NewQueue(Config{})
		require.NoError(t, err)
		send := func(body string) string {
			out, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: aws.String(q.URL()), MessageGroupId: aws.String("g"), MessageBody: aws.String(body),
			})
			require.NoError(t, err)
			return *out.SequenceNumber
		}
		next := uint64(time.Now().UnixMilli()+1) * sequencesPerMilli
		q.lastSeq = next - 2
		assert.Equal(t, formatSequence(next-1), send("the last of this millisecond"))
		assert.Equal(t, formatSequence(next), send("one more"))
		time.Sleep(time.Millisecond)
		assert.Equal(t, formatSequence(next+1), send("the first of the next"))
	})
}

// A receive does not read blocked groups: delivery.ready omits a group with its first
// message in flight. The queue forgets a group without messages.
func TestBlockedAndEmptyGroupsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := NewQueue(Config{})
		require.NoError(t, err)
		url := aws.String(q.URL())
		for _, group := range strings.Split("abcdefghij", "") {
			_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageGroupId: &group, MessageBody: &group})
			require.NoError(t, err)
		}
		assert.Len(t, q.ready.list, 10)
		out, err := q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10})
		require.NoError(t, err)
		require.Len(t, out.Messages, 10)
		assert.Zero(t, q.ready.Len())
		assert.Len(t, q.groups, 10)
		for _, m := range out.Messages {
			_, err := q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: m.ReceiptHandle})
			require.NoError(t, err)
		}
		assert.Empty(t, q.groups)
		assert.Zero(t, q.hidden.Len())
	})
}

// F-105: at the limit of messages in flight, a receive returns no messages. The test uses a
// small limit.
func TestInFlightLimit(t *testing.T) {
	t.Run("F-105 at the limit a receive is empty and no error", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			q, err := NewQueue(Config{})
			require.NoError(t, err)
			assert.Equal(t, 120_000, q.inFlightLimit)
			q.inFlightLimit = 3
			url := aws.String(q.URL())
			for _, body := range strings.Split("abcd", "") {
				_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: url, MessageGroupId: &body, MessageBody: &body})
				require.NoError(t, err)
			}
			in := &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: 10}
			first, err := q.ReceiveMessage(t.Context(), in)
			require.NoError(t, err)
			require.Len(t, first.Messages, 3)
			second, err := q.ReceiveMessage(t.Context(), in)
			require.NoError(t, err)
			assert.Empty(t, second.Messages)
			_, err = q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: url, ReceiptHandle: first.Messages[0].ReceiptHandle})
			require.NoError(t, err)
			third, err := q.ReceiveMessage(t.Context(), in)
			require.NoError(t, err)
			assert.Len(t, third.Messages, 1)
		})
	})
}

// The fake's errors have the status, code and name of the errors in AWS's service
// model, which the SDK contains.
func TestErrorsAgreeWithTheServiceModel(t *testing.T) {
	for _, tc := range []struct {
		class  *errorClass
		schema *smithy.Schema
	}{
		{queueDoesNotExist, schemas.QueueDoesNotExist},
		{invalidMessageContents, schemas.InvalidMessageContents},
		{receiptHandleIsInvalid, schemas.ReceiptHandleIsInvalid},
		{invalidAttributeName, schemas.InvalidAttributeName},
		{unsupportedOperation, schemas.UnsupportedOperation},
		{requestThrottled, schemas.RequestThrottled},
		{emptyBatchRequest, schemas.EmptyBatchRequest},
		{tooManyEntries, schemas.TooManyEntriesInBatchRequest},
		{entryIDsNotDistinct, schemas.BatchEntryIdsNotDistinct},
		{invalidEntryID, schemas.InvalidBatchEntryId},
		{batchTooLong, schemas.BatchRequestTooLong},
		{invalidAttributeValue, schemas.InvalidAttributeValue},
		{queueNameExists, schemas.QueueNameExists},
		{queueDeletedRecently, schemas.QueueDeletedRecently},
		{purgeInProgress, schemas.PurgeQueueInProgress},
		{resourceNotFound, schemas.ResourceNotFoundException},
	} {
		name := tc.schema.ID().Name
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, serviceShape+name, tc.class.shape)

			status, code := 400, name // the defaults, if the schema sets no values
			if h, ok := smithy.SchemaTrait[*traits.HTTPError](tc.schema); ok {
				status = h.Code
			}
			if q, ok := smithy.SchemaTrait[*traits.AWSQueryError](tc.schema); ok {
				code = q.ErrorCode
			}
			assert.Equal(t, status, tc.class.status)
			assert.Equal(t, code, tc.class.query)

			err := tc.class.because("why").unwrapped()
			assert.Equal(t, "*types."+name, reflect.TypeOf(err).String())
			var api smithy.APIError
			require.ErrorAs(t, err, &api)
			assert.Equal(t, code, api.ErrorCode())
			assert.Equal(t, "why", api.ErrorMessage())
		})
	}
}

// F-085 to F-087: the digests of attributes are equal to the digests in recorded answers
// of AWS.
func TestDigestVectors(t *testing.T) {
	text := func(dataType, value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: &dataType, StringValue: &value}
	}
	for _, tc := range []struct {
		name       string
		attributes map[string]types.MessageAttributeValue
		want       string
	}{
		{"F-086 String", map[string]types.MessageAttributeValue{"tag": text("String", "one")}, "0c5a8880fe44ffd58b3f7117d182b347"},
		{"F-086 custom String", map[string]types.MessageAttributeValue{"longname": text("String.custom", "é🙂")}, "4db851db483784dcb2a7076005c3a509"},
		{"F-086 custom Binary", map[string]types.MessageAttributeValue{
			"bin": {DataType: aws.String("Binary.custom"), BinaryValue: []byte{0x00, 0x01, 0xfe, 0xff, 0x10}},
		}, "0cc390915bb7a6a60beacb42d8ddb935"},
		{"F-086 short", map[string]types.MessageAttributeValue{"k": text("String", "x")}, "a45daa70926828a2f0a1db3418e6feb4"},
	} {
		assert.Equal(t, tc.want, *digest.Attributes(tc.attributes), tc.name)
	}
	t.Run("F-085 MD5 of the body", func(t *testing.T) {
		assert.Equal(t, "5d41402abc4b2a76b9719d911017c592", digest.Body("hello"))
	})

	var names []string
	sorted := map[string]types.MessageAttributeValue{}
	for _, name := range strings.Split("z a m B", " ") {
		names = append(names, name)
		sorted[name] = text("String", name)
	}
	for range 20 {
		assert.Equal(t, *digest.Attributes(sorted), *digest.Attributes(cloneAttributes(sorted)), "sorted by name, not by map order: %v", names)
	}

	t.Run("F-087 system attributes apart, and absent without any", func(t *testing.T) {
		assert.Nil(t, digest.Attributes(nil))
		traceHeader := map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {
			DataType:    aws.String("String"),
			StringValue: aws.String("Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"),
		}}
		assert.Equal(t, "5ae4d5d7636402d80f4eb6d213245a88", *digest.SystemAttributes(traceHeader), "the X-Ray sample")
	})
}

// AttributesMD5 returns the digest of attributes for the external tests.
func AttributesMD5(attributes map[string]types.MessageAttributeValue) string {
	return aws.ToString(digest.Attributes(attributes))
}

// A number attribute reaches the receiver with the same value, but in a normal form:
// 000123.4500 becomes 123.45. Normalising 123.45 again gives 123.45.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"000123.4500", "-0", "1e126", "1e-128", "+.5", "5.", "12e", "e5", "1.2.3", "99999999999999999999999999999999999999", "1e2147483648"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, ok := parseNumber(s)
		if !ok {
			return
		}
		out := n.String()
		again, ok := parseNumber(out)
		require.True(t, ok, out)
		assert.Equal(t, out, again.String())
		before, okBefore := new(big.Rat).SetString(s)
		after, okAfter := new(big.Rat).SetString(out)
		require.True(t, okAfter, out)
		if okBefore { // false for some valid numbers, such as "5.e1", that big.Rat refuses
			assert.Zero(t, before.Cmp(after), "%q became %q", s, out)
		}
	})
}
