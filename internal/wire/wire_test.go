package wire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/wire"
)

// recorder is an HTTP client that keeps the last request and gives a fixed answer.
type recorder struct {
	request *http.Request
	body    []byte
	status  int
	header  http.Header
	answer  io.Reader
}

func (r *recorder) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	r.request, r.body = req, body
	return &http.Response{StatusCode: r.status, Header: r.header.Clone(), Body: io.NopCloser(r.answer), Request: req}, err
}

// side is a client with the recorder that it sends to.
type side struct {
	*sqs.Client
	*recorder
}

// sides returns a client of the SDK and one with the protocol of this package.
func sides() (sdk, own side) {
	create := func(options ...func(*sqs.Options)) side {
		r := &recorder{status: http.StatusOK, answer: strings.NewReader("{}")}
		return side{sqs.New(sqs.Options{
			Region: "us-west-2", HTTPClient: r, Retryer: aws.NopRetryer{},
			Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET", SessionToken: "TOKEN"}, nil
			}),
		}, options...), r}
	}
	return create(), create(wire.Use)
}

var pieces = []string{
	"", "a", `{"a":1}`, `"`, `\`, "/", "<&>", "\n", "\r", "\t", "ä", "€", "𝄞", "\U0010FFFF", "\uFFFD", "plain text of some length",
	// SQS refuses the first two, and the SDK escapes all of them in another way.
	"\b", "\f", "\x7f", "\u2028", "\u2029",
	"\x00", "\x1f", "\xff", "\xed\xa0\x80", "\xc3",
}

// otherEscapes replaces the escapes that the SDK writes in another way.
var otherEscapes = strings.NewReplacer(`\u0008`, `\b`, `\u000c`, `\f`, `\u007f`, "\x7f", `\u2028`, "\u2028", `\u2029`, "\u2029")

func text(r *rand.Rand) *string {
	var b strings.Builder
	for range r.IntN(12) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return aws.String(b.String())
}

func optional(r *rand.Rand) *string {
	if r.IntN(3) == 0 {
		return nil
	}
	return text(r)
}

func attributes(r *rand.Rand, twoKeys bool) map[string]types.MessageAttributeValue {
	if r.IntN(2) == 0 {
		return nil
	}
	m := map[string]types.MessageAttributeValue{}
	names := []string{"a\n", "b\"€"}
	if !twoKeys {
		names = names[:1]
	}
	for _, name := range names[:r.IntN(len(names)+1)] {
		v := types.MessageAttributeValue{DataType: text(r)}
		switch r.IntN(8) {
		case 0:
			v.StringListValues = []string{"a", "b"}
		case 1:
			v.BinaryListValues = [][]byte{{1}, {2}}
		case 2, 3:
			v.BinaryValue = []byte(*text(r))
		default:
			v.StringValue = text(r)
		}
		m[name] = v
	}
	return m
}

func systemAttributes(r *rand.Rand) map[string]types.MessageSystemAttributeValue {
	if r.IntN(3) > 0 {
		return nil
	}
	return map[string]types.MessageSystemAttributeValue{"AWSTraceHeader": {DataType: aws.String("String"), StringValue: text(r)}}
}

// The requests have the same head and the same JSON values in the same order as the SDK's.
// Their bytes are equal except for five escapes, unless a map has two keys, whose order is
// random in Go.
func TestRequests(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	n := 20_000
	if testing.Short() {
		n = 2000
	}
	sdk, own := sides()
	for i := range n {
		twoKeys := i%4 == 0
		attributes := func() map[string]types.MessageAttributeValue { return attributes(r, twoKeys) }
		single := &sqs.SendMessageInput{
			QueueUrl: aws.String("https://sqs.us-west-2.amazonaws.com/123456789012/q.fifo" + *text(r)), DelaySeconds: int32(r.IntN(3)), MessageBody: text(r),
			MessageAttributes: attributes(), MessageDeduplicationId: optional(r), MessageGroupId: optional(r), MessageSystemAttributes: systemAttributes(r),
		}
		batch := &sqs.SendMessageBatchInput{QueueUrl: single.QueueUrl, Entries: []types.SendMessageBatchRequestEntry{}}
		for i := range r.IntN(11) {
			batch.Entries = append(batch.Entries, types.SendMessageBatchRequestEntry{
				Id: aws.String(fmt.Sprint(i)), DelaySeconds: int32(r.IntN(3)), MessageBody: text(r), MessageAttributes: attributes(),
				MessageDeduplicationId: optional(r), MessageGroupId: optional(r), MessageSystemAttributes: systemAttributes(r),
			})
		}
		for _, s := range []side{sdk, own} {
			s.answer, s.status = strings.NewReader(`{"__type":"com.amazonaws.sqs#QueueDoesNotExist"}`), http.StatusBadRequest
		}
		var send func(side) error
		if r.IntN(2) == 0 {
			send = func(s side) error { _, err := s.SendMessage(t.Context(), single); return err }
		} else {
			send = func(s side) error { _, err := s.SendMessageBatch(t.Context(), batch); return err }
		}
		require.Error(t, send(sdk))
		require.Error(t, send(own))

		require.Equal(t, sdk.request.Method, own.request.Method)
		require.Equal(t, sdk.request.URL, own.request.URL)
		// The signature covers the bytes, and the other two are new for each call.
		for _, name := range []string{"Authorization", "X-Amz-Date", "Amz-Sdk-Invocation-Id"} {
			require.NotEmpty(t, own.request.Header.Get(name))
			sdk.request.Header.Del(name)
			own.request.Header.Del(name)
		}
		sdk.request.Header.Del("Content-Length")
		own.request.Header.Del("Content-Length")
		require.Equal(t, sdk.request.Header, own.request.Header)
		require.EqualValues(t, len(own.body), own.request.ContentLength)
		require.JSONEq(t, string(sdk.body), string(own.body))
		if !twoKeys && string(sdk.body) != string(own.body) {
			require.Equal(t, otherEscapes.Replace(string(sdk.body)), string(own.body))
		}
	}
}

const (
	entry   = `{"Id":"0","MD5OfMessageBody":"d41d8cd98f00b204e9800998ecf8427e","MessageId":"m","SequenceNumber":"18849496460467696128"}`
	success = `{"Successful":[` + entry + `,{"Id":"1","MessageId":"n","MD5OfMessageBody":"x","MD5OfMessageAttributes":"y","MD5OfMessageSystemAttributes":"z","SequenceNumber":"1"}],"Failed":[]}`
)

var answers = []string{
	success,
	`{"Successful":[` + entry + `]}`,
	`{"Failed":[],"Successful":[` + entry + `]}`,
	` { "Successful" : [ ` + entry + ` ] , "Failed" : [ ] } `,
	`{"Successful":[],"Failed":[{"Id":"0","Code":"InternalError","SenderFault":false,"Message":"m"}]}`,
	`{"Successful":[` + entry + `],"Failed":[{"Id":"1","Code":"InternalError","SenderFault":false}]}`,
	`{"Successful":[` + entry + `],"Successful":[]}`,
	`{"Failed":[],"Failed":[],"Successful":[` + entry + `]}`,
	`{"Failed":[]}`, `{"Successful":null}`, `{}`, ``, `null`, `[]`, `"text"`, `<html>`,
	`{"Successful":[` + strings.Repeat(entry+",", 10) + entry + `]}`,
	`{"Successful":[` + strings.Repeat(entry+",", 9) + entry + `]}`,
	`{"Successful":[` + entry + `]} {}`, `{"Successful":[` + entry + `]}x`,
	`{"Successful":[{}]}`, `{"Successful":[{"Id":null}]}`, `{"Successful":[{"Id":1}]}`, `{"Successful":[{"Id":"0","Id":"1"}]}`,
	`{"Successful":[{"Id":"ä\u0041\n"}]}`, `{"Successful":[{"Id":"é"}]}`, `{"Successful":[{"id":"0"}]}`, `{"Successful":[{"Id":"0","New":"x"}]}`,
	`{"Successful":[{"Id":"0","New":{"a":[1,2]}}],"New":[]}`, "{\"Successful\":[{\"Id\":\"\x01\"}]}",
	entry,
	`{"MD5OfMessageBody":"d41d8cd98f00b204e9800998ecf8427e","MessageId":"m","SequenceNumber":"1"}`,
	`{"MD5OfMessageAttributes":"a","MD5OfMessageBody":"b","MD5OfMessageSystemAttributes":"c","MessageId":"m","SequenceNumber":"1"}`,
	`{"MessageId":"m","MessageId":"n"}`, `{"MessageId":"m",}`, `{"MessageId":"m","Extra":1}`,
	`{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`,
}

var statuses = []int{200, 200, 200, 201, 204, 400, 403, 404, 413, 429, 500, 503}

// failing gives some bytes and then an error.
type failing struct{ io.Reader }

var errCut = errors.New("connection reset")

func (f failing) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == io.EOF {
		err = errCut
	}
	return n, err
}

// Each answer gives the same output, or an error of the same type with the same text, as the
// SDK's protocol: successes, failures, foreign texts, texts that end early or are damaged in
// one byte, and connections that break.
func TestAnswers(t *testing.T) {
	sdk, own := sides()
	compare := func(text string, status int, cut bool, header http.Header) {
		for _, s := range []side{sdk, own} {
			s.status, s.header, s.answer = status, header, strings.NewReader(text)
			if cut {
				s.answer = failing{s.answer}
			}
		}
		for _, send := range []func(side) (any, error){
			func(s side) (any, error) {
				out, err := s.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String("q"), MessageBody: aws.String("b")}, unchecked)
				if out != nil {
					out.ResultMetadata = middleware.Metadata{}
				}
				return out, err
			},
			func(s side) (any, error) {
				out, err := s.SendMessageBatch(t.Context(), &sqs.SendMessageBatchInput{QueueUrl: aws.String("q"), Entries: []types.SendMessageBatchRequestEntry{{Id: aws.String("0"), MessageBody: aws.String("b")}}}, unchecked)
				if out != nil {
					out.ResultMetadata = middleware.Metadata{}
				}
				return out, err
			},
		} {
			want, wantErr := send(sdk)
			got, gotErr := send(own)
			require.Equal(t, want, got, "%d %q", status, text)
			require.Equal(t, chain(wantErr), chain(gotErr), "%d %q", status, text)
			for _, s := range []side{sdk, own} {
				s.answer = strings.NewReader(text)
				if cut {
					s.answer = failing{s.answer}
				}
			}
		}
	}
	header := http.Header{"X-Amzn-Requestid": {"r"}}
	for _, text := range answers {
		for _, status := range statuses {
			compare(text, status, false, header)
		}
		compare(text, 400, false, http.Header{"X-Amzn-Query-Error": {"AWS.SimpleQueueService.NonExistentQueue;Sender"}, "X-Amzn-Errortype": {"QueueDoesNotExist"}})
		compare(text, 200, true, header)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range len(success) {
		compare(success[:i], 200, false, header)
		compare(success[:i], 200, true, header)
		damaged := []byte(success)
		damaged[i] = `{}[]",: x\1`[r.IntN(11)]
		compare(string(damaged), 200, false, header)
	}
}

// unchecked turns off the SDK's check of digests, as the producer does.
func unchecked(o *sqs.Options) { o.DisableMessageChecksumValidation = true }

// chain returns the types and the text of an error and of all errors that it wraps.
func chain(err error) []string {
	if err == nil {
		return nil
	}
	all := []string{err.Error()}
	for ; err != nil; err = errors.Unwrap(err) {
		all = append(all, reflect.TypeOf(err).String())
	}
	return all
}

// A usual request and a usual answer do not reach the SDK's codec, and other operations do.
func TestWhatIsOurs(t *testing.T) {
	input := &sqs.SendMessageBatchInput{QueueUrl: aws.String("q"), Entries: []types.SendMessageBatchRequestEntry{{
		Id: aws.String("0"), MessageBody: aws.String("\x7f"), MessageGroupId: aws.String("g"),
		MessageAttributes: map[string]types.MessageAttributeValue{"a": {DataType: aws.String("Binary"), BinaryValue: []byte{1}}},
	}}}
	_, own := sides()
	own.answer = strings.NewReader(success)
	out, err := own.SendMessageBatch(t.Context(), input, unchecked)
	require.NoError(t, err)
	require.Contains(t, string(own.body), "\x7f", "the SDK escapes this character")
	require.Equal(t, 10, cap(out.Successful), "the SDK's slice grows")

	attributes, err := own.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String("q")})
	require.NoError(t, err)
	require.Empty(t, attributes.Attributes)
}

// Texts of an answer stay unchanged while later answers are read.
func TestAnswersAreCopies(t *testing.T) {
	_, own := sides()
	var outs []*sqs.SendMessageOutput
	for i := range 100 {
		own.answer = strings.NewReader(fmt.Sprintf(`{"MessageId":"%d","MD5OfMessageBody":"d","SequenceNumber":"%d"}`, i, i))
		out, err := own.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String("q"), MessageBody: aws.String("b")}, unchecked)
		require.NoError(t, err)
		outs = append(outs, out)
	}
	for i, out := range outs {
		require.Equal(t, fmt.Sprint(i), *out.MessageId)
		require.Equal(t, fmt.Sprint(i), *out.SequenceNumber)
	}
}

// The SDK's stack of a send. If a new version of the SDK changes this list, look at what its
// new steps do with requests and answers, and whether package wire has to know it.
func TestStack(t *testing.T) {
	_, own := sides()
	var list []string
	_, err := own.SendMessageBatch(context.Background(), &sqs.SendMessageBatchInput{QueueUrl: aws.String("q"), Entries: []types.SendMessageBatchRequestEntry{}}, func(o *sqs.Options) {
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error { list = s.List(); return nil })
	})
	require.NoError(t, err)
	require.Equal(t, strings.Fields(stack), strings.Fields(strings.Join(list, " ")))
}

const stack = `SendMessageBatch
Initialize stack step SQSValidateMessageChecksum OperationInputValidation
Serialize stack step setOperationInput ResolveEndpoint OperationSerializer
Build stack step ClientRequestID UserAgent RecursionDetection
Finalize stack step InterceptBeforeRetryLoop Retry InterceptAttempt ResolveAuthScheme GetIdentity ResolveEndpointV2 disableHTTPS ComputePayloadHash setLegacyContextSigningOptions Signing
Deserialize stack step AddRawResponseToMetadata ResponseErrorWrapper RequestIDRetriever OperationDeserializer RecordResponseTiming RequestResponseLogger`
