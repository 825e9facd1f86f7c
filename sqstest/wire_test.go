package sqstest_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// post sends a request in AWS's wire format.
func post(t testing.TB, h http.Handler, operation, body string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+operation)
	return do(h, r)
}

func do(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func text(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(b)
}

func newQueue(t testing.TB, c sqstest.Config) *sqstest.Queue {
	t.Helper()
	q, err := sqstest.NewQueue(c)
	require.NoError(t, err)
	return q
}

// TestWire compares the lengths of the fake's answers with the recorded lengths of
// AWS's answers. Equal lengths show that the answers have the same members and no
// spaces.
func TestWire(t *testing.T) {
	t.Run("F-001 a duplicate has the shape and length of a fresh send", func(t *testing.T) {
		s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
		send := `{"QueueUrl":"events.fifo","MessageBody":"a","MessageGroupId":"g"}`
		first, again := post(t, s, "SendMessage", send), post(t, s, "SendMessage", send)
		assert.EqualValues(t, 146, first.ContentLength)
		fresh := text(t, first)
		assert.Regexp(t, `^\{"MD5OfMessageBody":"0cc175b9c0f1b6a831c399e269772661","MessageId":"[0-9a-f-]{36}","SequenceNumber":"\d{20}"\}$`, fresh)
		assert.Equal(t, fresh, text(t, again))
		assert.Equal(t, headerNames(first), headerNames(again))
		assert.Equal(t, first.StatusCode, again.StatusCode)
	})
	t.Run("F-155 a lone surrogate is refused, in bodies and in attributes", func(t *testing.T) {
		q := newQueue(t, sqstest.Config{})
		s := sqstest.NewServer(q)
		for _, body := range []string{`\ud800x`, `x\uDBFF`, `\udc00\ud800`, `\ud83d\\ude00`} {
			r := post(t, s, "SendMessage", `{"QueueUrl":"events.fifo","MessageGroupId":"g","MessageBody":"`+body+`"}`)
			assert.Equal(t, 400, r.StatusCode, body)
			assert.Contains(t, text(t, r), "InvalidMessageContents", body)
			r = post(t, s, "SendMessage", `{"QueueUrl":"events.fifo","MessageGroupId":"g","MessageBody":"a","MessageAttributes":{"k":{"DataType":"String","StringValue":"`+body+`"}}}`)
			assert.Equal(t, 400, r.StatusCode, body)
			r = post(t, s, "SendMessageBatch", `{"QueueUrl":"events.fifo","Entries":[{"Id":"1","MessageBody":"`+body+`","MessageGroupId":"g"}]}`)
			assert.NotContains(t, text(t, r), "Successful", body)
		}
		assert.Empty(t, q.Messages())
		for _, body := range []string{`\ud83d\ude00`, `\\ud800`, `\n\ufffd`} {
			r := post(t, s, "SendMessage", `{"QueueUrl":"events.fifo","MessageGroupId":"g","MessageBody":"`+body+`"}`)
			assert.Equal(t, 200, r.StatusCode, body)
		}
		assert.Equal(t, "\U0001f600", q.Messages()[0].Body)
	})
	t.Run("F-060 a batch without failures", func(t *testing.T) {
		s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
		r := post(t, s, "SendMessageBatch", `{"QueueUrl":"events.fifo","Entries":[{"Id":"1","MessageBody":"a","MessageGroupId":"g"},{"Id":"2","MessageBody":"b","MessageGroupId":"g"}]}`)
		assert.EqualValues(t, 328, r.ContentLength)
		assert.NotContains(t, text(t, r), "Failed")

		r = post(t, s, "SendMessageBatch", `{"QueueUrl":"events.fifo","Entries":[{"Id":"1","MessageBody":"\u0001","MessageGroupId":"g"}]}`)
		assert.NotContains(t, text(t, r), "Successful")
	})
	t.Run("F-097 a visibility timeout of zero does not block", func(t *testing.T) {
		s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
		for _, body := range []string{"a", "b"} {
			post(t, s, "SendMessage", `{"QueueUrl":"events.fifo","MessageBody":"`+body+`","MessageGroupId":"g"}`)
		}
		for range 3 {
			r := post(t, s, "ReceiveMessage", `{"QueueUrl":"events.fifo","VisibilityTimeout":0,"MaxNumberOfMessages":10}`)
			var got struct{ Messages []struct{ Body string } }
			require.NoError(t, json.Unmarshal([]byte(text(t, r)), &got))
			require.Len(t, got.Messages, 2)
			assert.Equal(t, "a", got.Messages[0].Body)
		}
	})
	t.Run("F-102 zero messages are none too many", func(t *testing.T) {
		s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
		r := post(t, s, "ReceiveMessage", `{"QueueUrl":"events.fifo","MaxNumberOfMessages":0}`)
		assert.Contains(t, text(t, r), "Value 0 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.")
	})
	t.Run("F-130 headers", func(t *testing.T) {
		s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
		ok := post(t, s, "ReceiveMessage", `{"QueueUrl":"events.fifo"}`)
		assert.Equal(t, http.StatusOK, ok.StatusCode)
		assert.Equal(t, "application/x-amz-json-1.0", ok.Header.Get("Content-Type"))
		assert.Regexp(t, `^[0-9a-f-]{36}$`, ok.Header.Get("x-amzn-requestid"))
		assert.Empty(t, ok.Header.Get("x-amzn-query-error"))

		refused := post(t, s, "ReceiveMessage", `{"QueueUrl":"other.fifo"}`)
		assert.Equal(t, http.StatusBadRequest, refused.StatusCode)
		assert.Equal(t, "AWS.SimpleQueueService.NonExistentQueue;Sender", refused.Header.Get("x-amzn-query-error"))
		assert.Equal(t, "application/x-amz-json-1.0", refused.Header.Get("Content-Type"))
		assert.NotEmpty(t, refused.Header.Get("x-amzn-requestid"))
	})
	t.Run("F-131 error bodies", func(t *testing.T) {
		s := sqstest.NewServer(newQueue(t, sqstest.Config{DisableContentBasedDeduplication: true}))
		for _, tc := range []struct {
			operation, request string
			length             int64
			want               string
		}{
			{
				"SendMessage", `{"QueueUrl":"events.fifo","MessageBody":"a","MessageGroupId":"g"}`, 189,
				`{"__type":"com.amazon.coral.service#InvalidParameterValueException","message":"The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly"}`,
			},
			{
				"SendMessage", `{"QueueUrl":"events.fifo","MessageBody":"a"}`, 138,
				`{"__type":"com.amazon.coral.service#MissingRequiredParameterException","message":"The request must contain the parameter MessageGroupId."}`,
			},
			{
				"SendMessage", `{"QueueUrl":"events.fifo","MessageBody":"a","MessageGroupId":"g","MessageDeduplicationId":"1","DelaySeconds":1}`, 204,
				`{"__type":"com.amazon.coral.service#InvalidParameterValueException","message":"Value 1 for parameter DelaySeconds is invalid. Reason: The request include parameter that is not valid for this queue type."}`,
			},
			{
				"SendMessage", `{"QueueUrl":"other.fifo"}`, 96,
				`{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`,
			},
			{
				"SendMessageBatch", `{"QueueUrl":"events.fifo","Entries":[{"Id":"same"},{"Id":"same"}]}`, 85,
				`{"__type":"com.amazonaws.sqs#BatchEntryIdsNotDistinct","message":"Id same repeated."}`,
			},
		} {
			r := post(t, s, tc.operation, tc.request)
			assert.Equal(t, tc.length, r.ContentLength)
			assert.Equal(t, tc.want, text(t, r))
		}
	})
	t.Run("F-132 void operations and empty receives", func(t *testing.T) {
		s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
		assert.Equal(t, "{}", text(t, post(t, s, "ReceiveMessage", `{"QueueUrl":"events.fifo"}`)))
		post(t, s, "SendMessage", `{"QueueUrl":"events.fifo","MessageBody":"a","MessageGroupId":"g"}`)
		received := text(t, post(t, s, "ReceiveMessage", `{"QueueUrl":"events.fifo"}`))
		handle := regexp.MustCompile(`"ReceiptHandle":"([^"]+)"`).FindStringSubmatch(received)[1]
		for _, operation := range []string{"ChangeMessageVisibility", "DeleteMessage"} {
			r := post(t, s, operation, `{"QueueUrl":"events.fifo","VisibilityTimeout":60,"ReceiptHandle":"`+handle+`"}`)
			assert.Equal(t, http.StatusOK, r.StatusCode)
			assert.EqualValues(t, 0, r.ContentLength)
			assert.Empty(t, text(t, r))
		}
	})
	t.Run("a body comes back as it was, without escapes that HTML wants", func(t *testing.T) {
		s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
		post(t, s, "SendMessage", `{"QueueUrl":"events.fifo","MessageBody":"<a href=\"x\">&é🙂</a>","MessageGroupId":"g"}`)
		assert.Contains(t, text(t, post(t, s, "ReceiveMessage", `{"QueueUrl":"events.fifo"}`)), `"Body":"<a href=\"x\">&é🙂</a>"`)
	})
	t.Run("F-133 the queue's path is as good as the root", func(t *testing.T) {
		s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
		for path, want := range map[string]int{"/": 200, "/000000000000/events.fifo": 200, "/elsewhere": 400, "/000000000000/a/b": 400} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(`{"QueueUrl":"events.fifo"}`))
			r.Header.Set("Content-Type", "application/x-amz-json-1.0; charset=utf-8")
			r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
			assert.Equal(t, want, do(s, r).StatusCode, path)
		}
	})
}

func headerNames(r *http.Response) []string { return slices.Sorted(maps.Keys(r.Header)) }

func TestHostileRequests(t *testing.T) {
	const unknown = "com.amazon.coral.service#UnknownOperationException"
	const serialization = "com.amazon.coral.service#SerializationException"
	const missing = "com.amazon.coral.service#MissingRequiredParameterException"
	s := sqstest.NewServer(newQueue(t, sqstest.Config{}), nil)
	for _, tc := range []struct {
		name, method, content, target, body string
		status                              int
		shape                               string
	}{
		{"get", "GET", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", "", 400, unknown},
		{"no content type", "POST", "", "AmazonSQS.SendMessage", "{}", 400, unknown},
		{"unknown operation", "POST", "application/x-amz-json-1.0", "AmazonSQS.StealMessage", "{}", 400, unknown},
		{"another service", "POST", "application/x-amz-json-1.0", "DynamoDB_20120810.PutItem", "{}", 400, unknown},
		{"no target", "POST", "application/x-amz-json-1.0", "", "{}", 400, unknown},
		{"no JSON", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", "{", 400, serialization},
		{"empty", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", "", 400, serialization},
		{"wrong type", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", `{"QueueUrl":[]}`, 400, serialization},
		{"two values", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", `{}{}`, 400, serialization},
		{"bad UTF-8", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", "{\"QueueUrl\":\"\xff\"}", 400, serialization},
		{"deep", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", strings.Repeat("[", 100_000), 400, serialization},
		{"too long", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", strings.Repeat(" ", 8<<20+1), 413, "com.amazon.coral.service#RequestEntityTooLargeException"},
		{"null", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", "null", 400, missing},
		{"no queue", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessageBatch", "{}", 400, missing},
		{"no queue name", "POST", "application/x-amz-json-1.0", "AmazonSQS.GetQueueUrl", "{}", 400, missing},
		{"no body", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", `{"QueueUrl":"events.fifo"}`, 400, missing},
		{"no handle", "POST", "application/x-amz-json-1.0", "AmazonSQS.DeleteMessage", `{"QueueUrl":"events.fifo"}`, 400, missing},
		{"no timeout", "POST", "application/x-amz-json-1.0", "AmazonSQS.ChangeMessageVisibility", `{"QueueUrl":"events.fifo","ReceiptHandle":"x"}`, 400, missing},
		{"null entries", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessageBatch", `{"QueueUrl":"events.fifo","Entries":[null]}`, 400, "com.amazonaws.sqs#InvalidBatchEntryId"},
		{"no entries to delete", "POST", "application/x-amz-json-1.0", "AmazonSQS.DeleteMessageBatch", `{"QueueUrl":"events.fifo"}`, 400, "com.amazonaws.sqs#EmptyBatchRequest"},
		{"bad URL", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", `{"QueueUrl":"http://%zz/"}`, 400, "com.amazonaws.sqs#QueueDoesNotExist"},
		{"another account", "POST", "application/x-amz-json-1.0", "AmazonSQS.SendMessage", `{"QueueUrl":"https://sqs.test/111111111111/events.fifo"}`, 400, "com.amazonaws.sqs#QueueDoesNotExist"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := httptest.NewRequest(tc.method, "/", strings.NewReader(tc.body))
			r.Header.Set("Content-Type", tc.content)
			r.Header.Set("X-Amz-Target", tc.target)
			got := do(s, r)
			assert.Equal(t, tc.status, got.StatusCode)
			var e struct {
				Type    string `json:"__type"`
				Message string `json:"message"`
			}
			require.NoError(t, json.Unmarshal([]byte(text(t, got)), &e))
			assert.Equal(t, tc.shape, e.Type)
			assert.NotEmpty(t, e.Message)
			for _, ours := range []string{"json:", "Go ", "sqs.", "struct", "unmarshal"} {
				assert.NotContains(t, e.Message, ours, "no client knows our types")
			}
		})
	}
}

// A request in the older query protocol is refused in XML, because clients of that
// protocol read only XML.
func TestQueryProtocolIsRefusedInXML(t *testing.T) {
	s := sqstest.NewServer(newQueue(t, sqstest.Config{}))
	post := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("Action=SendMessage&MessageBody=a"))
	post.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	for _, r := range []*http.Request{post, httptest.NewRequest(http.MethodGet, "/?Action=ListQueues&Version=2012-11-05", nil)} {
		got := do(s, r)
		assert.Equal(t, 400, got.StatusCode)
		assert.Equal(t, "text/xml", got.Header.Get("Content-Type"))
		var e struct {
			XMLName xml.Name `xml:"http://queue.amazonaws.com/doc/2012-11-05/ ErrorResponse"`
			Error   struct{ Type, Code, Message string }
			Request string `xml:"RequestId"`
		}
		require.NoError(t, xml.Unmarshal([]byte(text(t, got)), &e))
		assert.Equal(t, "Sender", e.Error.Type)
		assert.Equal(t, "AWS.SimpleQueueService.UnsupportedOperation", e.Error.Code)
		assert.Contains(t, e.Error.Message, "AWS JSON 1.0")
		assert.Equal(t, got.Header.Get("X-Amzn-Requestid"), e.Request)
	}
}

func TestHealth(t *testing.T) {
	s := sqstest.NewServer()
	got := do(s, httptest.NewRequest(http.MethodGet, "/", nil))
	assert.Equal(t, 200, got.StatusCode)
	assert.JSONEq(t, `{"status":"ok"}`, text(t, got))
	assert.Equal(t, 200, do(s, httptest.NewRequest(http.MethodHead, "/", nil)).StatusCode)
	assert.Equal(t, 400, do(s, httptest.NewRequest(http.MethodGet, "/000000000000/events.fifo", nil)).StatusCode)
}

func TestSlowBodies(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(fmt.Errorf("read tcp: %w", os.ErrDeadlineExceeded)))
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
	got := do(sqstest.NewServer(), r)
	assert.Equal(t, 408, got.StatusCode)
	assert.Equal(t, "RequestTimeout;Sender", got.Header.Get("X-Amzn-Query-Error"))
	assert.Equal(t, "close", got.Header.Get("Connection"))
}

// A request body that ends too early is answered as an error of the sender.
func TestRequestCutOff(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", iotest.ErrReader(io.ErrUnexpectedEOF))
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS.SendMessage")
	assert.Equal(t, http.StatusBadRequest, do(sqstest.NewServer(newQueue(t, sqstest.Config{})), r).StatusCode)
}

// For any request, the server answers with JSON and never with a server error. The
// queue then holds only valid messages, and every listed queue accepts calls.
func FuzzServer(f *testing.F) {
	for operation, bodies := range map[string][]string{
		"SendMessage": {
			`{"QueueUrl":"events.fifo","MessageBody":"a","MessageGroupId":"g","MessageAttributes":{"k":{"DataType":"Binary","BinaryValue":"AAE="},"n":{"DataType":"Number","StringValue":"1e5"}}}`,
			`{"QueueUrl":"https://h/000000000000/events.fifo","MessageBody":"\ud800","MessageGroupId":"g","MessageDeduplicationId":"","DelaySeconds":-1}`,
			`{"QueueUrl":"standard","MessageBody":"a","DelaySeconds":900}`,
		},
		"SendMessageBatch":             {`{"QueueUrl":"events.fifo","Entries":[{"Id":"1","MessageBody":"a","MessageGroupId":"g","DelaySeconds":0},null]}`},
		"ReceiveMessage":               {`{"QueueUrl":"events.fifo","MaxNumberOfMessages":10,"VisibilityTimeout":0,"MessageAttributeNames":["All"],"AttributeNames":["All"],"ReceiveRequestAttemptId":"a"}`},
		"DeleteMessage":                {`{"QueueUrl":"events.fifo","ReceiptHandle":"x"}`},
		"DeleteMessageBatch":           {`{"QueueUrl":"events.fifo","Entries":[{"Id":"1","ReceiptHandle":"x"},{}]}`},
		"ChangeMessageVisibility":      {`{"QueueUrl":"events.fifo","ReceiptHandle":"x","VisibilityTimeout":1e99}`},
		"ChangeMessageVisibilityBatch": {`{"QueueUrl":"events.fifo","Entries":[{"Id":"1","ReceiptHandle":"x","VisibilityTimeout":0},{}]}`},
		"GetQueueAttributes":           {`{"QueueUrl":"events.fifo","AttributeNames":["All","?"]}`},
		"SetQueueAttributes": {
			`{"QueueUrl":"events.fifo","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dead.fifo\",\"maxReceiveCount\":\"1\"}"}}`,
			`{"QueueUrl":"events.fifo","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":1,\"maxReceiveCount\":1e400}","RedriveAllowPolicy":"null"}}`,
			`{"QueueUrl":"standard","Attributes":{"DelaySeconds":"9999999999999999999999","Policy":"{}"}}`,
		},
		"GetQueueUrl":                {`{"QueueName":"events.fifo","QueueOwnerAWSAccountId":"1"}`},
		"CreateQueue":                {`{"QueueName":"a.fifo","Attributes":{"FifoQueue":"True","DeduplicationScope":"messageGroup"},"tags":{"a":"b"}}`, `{"QueueName":"../x"}`},
		"DeleteQueue":                {`{"QueueUrl":"events.fifo"}`},
		"PurgeQueue":                 {`{"QueueUrl":"events.fifo"}`},
		"ListQueues":                 {`{"MaxResults":1,"NextToken":"ZXZlbnRz"}`, `{"MaxResults":-1}`},
		"ListDeadLetterSourceQueues": {`{"QueueUrl":"dead.fifo","NextToken":"?"}`},
		"TagQueue":                   {`{"QueueUrl":"events.fifo","Tags":{"":null}}`},
		"UntagQueue":                 {`{"QueueUrl":"events.fifo","TagKeys":[null]}`},
		"ListQueueTags":              {`{"QueueUrl":"events.fifo"}`},
		"StartMessageMoveTask":       {`{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:dead.fifo","MaxNumberOfMessagesPerSecond":1}`},
		"ListMessageMoveTasks":       {`{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:dead.fifo","MaxResults":10}`},
		"CancelMessageMoveTask":      {`{"TaskHandle":"e30="}`},
		"Nothing":                    {"", "null", "[]"},
	} {
		for _, body := range bodies {
			f.Add(operation, body)
		}
	}
	f.Fuzz(func(t *testing.T, operation, body string) {
		// In a bubble, a long poll takes no real time.
		synctest.Test(t, func(t *testing.T) {
			dead := newQueue(t, sqstest.Config{Name: "dead.fifo"})
			q := newQueue(t, sqstest.Config{DeadLetterQueue: dead, MaxReceiveCount: 1})
			s := sqstest.NewServer(q, dead, newQueue(t, sqstest.Config{Name: "standard", Standard: true}))
			answer := func(operation, body string) string {
				r := post(t, s, operation, body)
				assert.True(t, r.StatusCode == 200 || r.StatusCode >= 400 && r.StatusCode < 500, "status %d", r.StatusCode)
				answer := text(t, r)
				assert.True(t, answer == "" || json.Valid([]byte(answer)), answer)
				return answer
			}
			for range 2 {
				answer(operation, body)
			}
			for _, m := range q.Messages() {
				assert.NotEmpty(t, m.Body)
				assert.NotEmpty(t, m.GroupID)
			}
			var listed struct {
				QueueURLs []string `json:"QueueUrls"`
			}
			require.NoError(t, json.Unmarshal([]byte(answer("ListQueues", "{}")), &listed))
			for _, u := range listed.QueueURLs {
				asked, err := json.Marshal(map[string]any{"QueueUrl": u, "AttributeNames": []string{"All"}})
				require.NoError(t, err)
				assert.Contains(t, answer("GetQueueAttributes", string(asked)), "QueueArn", u)
			}
		})
	})
}

// ARNs in an answer have the region of the request's signature. In a request, an ARN may
// have any region: only its name selects the queue.
func TestRegionOfTheCredentialScope(t *testing.T) {
	dead := newQueue(t, sqstest.Config{Name: "dead.fifo"})
	s := sqstest.NewServer(newQueue(t, sqstest.Config{}), dead)
	client := s.Client(func(o *sqs.Options) { o.Region = "eu-central-1" })
	out, err := client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: aws.String("dead.fifo"), AttributeNames: []types.QueueAttributeName{"QueueArn"}})
	require.NoError(t, err)
	arn := out.Attributes["QueueArn"]
	assert.Equal(t, "arn:aws:sqs:eu-central-1:000000000000:dead.fifo", arn)
	assert.Equal(t, "arn:aws:sqs:us-east-1:000000000000:dead.fifo", dead.ARN())

	_, err = client.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: aws.String("events.fifo"), Attributes: map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"1"}`, arn), "VisibilityTimeout": "0",
	}})
	require.NoError(t, err)
	_, err = client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String("events.fifo"), MessageBody: aws.String("1"), MessageGroupId: aws.String("g")})
	require.NoError(t, err)
	for range 2 {
		_, err = client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("events.fifo")})
		require.NoError(t, err)
	}
	got, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("dead.fifo"), MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
	require.NoError(t, err)
	require.Len(t, got.Messages, 1)
	assert.Equal(t, "arn:aws:sqs:eu-central-1:000000000000:events.fifo", got.Messages[0].Attributes["DeadLetterQueueSourceArn"])
	_, err = client.StartMessageMoveTask(t.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(arn)})
	require.NoError(t, err)
	tasks, err := client.ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String(arn)})
	require.NoError(t, err)
	assert.Equal(t, arn, *tasks.Results[0].SourceArn)

	for _, authorization := range []string{"", "Credential=a/b", "Credential=k/20260101/<b>/sqs/aws4_request", "Credential=k/d//sqs/aws4_request, x"} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"QueueUrl":"dead.fifo","AttributeNames":["QueueArn"]}`))
		r.Header.Set("Content-Type", "application/x-amz-json-1.0")
		r.Header.Set("X-Amz-Target", "AmazonSQS.GetQueueAttributes")
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		assert.Contains(t, w.Body.String(), "arn:aws:sqs:us-east-1:", authorization)
	}
}
