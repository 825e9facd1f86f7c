package sqscall_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

func answering(t testing.TB, status int, body string, headers ...string) *sqscall.Caller {
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

const (
	otherMD5  = "900150983cd24fb0d6963f7d28e17f72"
	html      = "<html><body><h1>Forbidden</h1></body></html>"
	coral     = "com.amazon.coral.service#"
	inService = "com.amazonaws.sqs#"
)

// A single message counts as stored only if the answer proves it: status 200, a message
// ID, a sequence number, and the digest of the message's body and attributes.
func TestProofOfOne(t *testing.T) {
	whole := success(entries(1)[0])
	for _, test := range []struct {
		name   string
		status int
		body   string
		want   want
	}{
		{"whole", 200, whole.String(), stored},
		{"unknown fields", 200, whole.with("Extra", object{"a": []int{1}}).String(), stored},
		{"a digest of attributes that were not sent", 200, whole.with("MD5OfMessageAttributes", otherMD5).String(), stored},
		{"a digest in upper case", 200, whole.with("MD5OfMessageBody", strings.ToUpper(whole["MD5OfMessageBody"].(string))).String(), stored},
		{"no message ID", 200, whole.with("MessageId", nil).String(), doubt},
		{"empty message ID", 200, whole.with("MessageId", "").String(), doubt},
		{"no sequence number", 200, whole.with("SequenceNumber", nil).String(), doubt},
		{"empty sequence number", 200, whole.with("SequenceNumber", "").String(), doubt},
		{"no digest", 200, whole.with("MD5OfMessageBody", nil).String(), doubt},
		{"empty digest", 200, whole.with("MD5OfMessageBody", "").String(), doubt},
		{"a text in place of a digest", 200, whole.with("MD5OfMessageBody", "a1b2").String(), doubt},
		{"a damaged digest", 200, whole.with("MD5OfMessageBody", "x"+otherMD5[1:]).String(), doubt},
		{"a digest and more", 200, whole.with("MD5OfMessageBody", otherMD5+"00").String(), doubt},
		{"another digest", 200, whole.with("MD5OfMessageBody", otherMD5).String(), altered},
		{"another digest and no IDs", 200, object{"MD5OfMessageBody": otherMD5}.String(), altered},
		{"empty body", 200, "", doubt},
		{"empty object", 200, "{}", doubt},
		{"null", 200, "null", doubt},
		{"something of a proxy", 200, `{"status":"ok"}`, doubt},
		{"HTML", 200, html, doubt},
		{"a number", 200, "17", doubt},
		{"a list", 200, "[" + whole.String() + "]", doubt},
		{"a wrong type", 200, whole.with("MessageId", 17).String(), doubt},
		{"an error", 200, `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"m"}`, doubt},
		{"201", 201, whole.String(), doubt},
		{"202", 202, whole.String(), doubt},
		{"202 and another digest", 202, whole.with("MD5OfMessageBody", otherMD5).String(), doubt},
		{"204", 204, "", doubt},
		{"206", 206, whole.String(), doubt},
	} {
		t.Run(test.name, func(t *testing.T) {
			answers, _, err := send(t, answering(t, test.status, test.body), 1)
			assert.Equal(t, test.want, got(answers[0]))
			if test.status != 200 {
				require.ErrorIs(t, err, sqscall.ErrUnproven)
				assert.ErrorContains(t, err, fmt.Sprintf("HTTP status %d", test.status))
			}
			switch test.want {
			case altered:
				assert.Equal(t, "MessageBody", answers[0].Field)
				assert.Equal(t, otherMD5, answers[0].Got)
				require.ErrorIs(t, answers[0].Err, sqscall.ErrAltered)
			case stored:
				assert.Equal(t, whole["MessageId"], answers[0].MessageID)
				assert.Equal(t, whole["SequenceNumber"], answers[0].Sequence)
			}
		})
	}
}

func TestProofInABatch(t *testing.T) {
	es := entries(4)
	whole := batchSuccess(es)
	list := func() []object { return append([]object(nil), whole["Successful"].([]object)...) }
	change := func(i int, field string, value any) object {
		l := list()
		l[i] = l[i].with(field, value)
		return object{"Successful": l}
	}
	failed := func(i int, code string, senderFault bool, rest ...object) object {
		l := list()
		return object{"Successful": append(append([]object{}, l[:i]...), append(l[i+1:], rest...)...), "Failed": []object{
			{"Id": fmt.Sprint(i), "Code": code, "SenderFault": senderFault, "Message": "why"},
		}}
	}
	all := func(w want) []want { return []want{w, w, w, w} }
	but := func(i int, w want) []want {
		ws := all(stored)
		ws[i] = w
		return ws
	}
	swapped := list()
	swapped[0], swapped[1] = swapped[0].with("Id", "1"), swapped[1].with("Id", "0")
	swappedAttributes := list()
	swappedAttributes[1] = swappedAttributes[1].with("MD5OfMessageAttributes", *digest.Attributes(es[3].Attributes))
	mixedFailure := append([]object{}, list()[0].with("Id", "1"), list()[2], list()[3])
	for _, test := range []struct {
		name string
		body object
		want []want
	}{
		{"whole", whole, all(stored)},
		{"only an ID", change(0, "", nil).with("Successful", append([]object{{"Id": "0"}}, list()[1:]...)), but(0, doubt)},
		{"no message ID", change(2, "MessageId", nil), but(2, doubt)},
		{"no sequence number", change(2, "SequenceNumber", nil), but(2, doubt)},
		{"no digest", change(2, "MD5OfMessageBody", nil), but(2, doubt)},
		{"no digest of the attributes", change(1, "MD5OfMessageAttributes", nil), but(1, doubt)},
		{"another digest", change(2, "MD5OfMessageBody", otherMD5), but(2, altered)},
		{"another digest of the attributes", change(1, "MD5OfMessageAttributes", otherMD5), but(1, altered)},
		{"a digest of attributes that were not sent", change(0, "MD5OfMessageAttributes", otherMD5), all(stored)},
		{"one is not mentioned", object{"Successful": list()[:3]}, but(3, doubt)},
		{"none is mentioned", object{}, all(doubt)},
		{"one is mentioned twice", object{"Successful": append(list(), list()[2])}, but(2, doubt)},
		{"one is in both lists", failed(1, "InvalidMessageContents", true, list()[1]), but(1, doubt)},
		{"one is in both lists, a throttle", failed(1, "RequestThrottled", true, list()[1]), but(1, doubt)},
		{"unknown IDs", object{"Successful": append(list(), list()[0].with("Id", "4"), list()[0].with("Id", "x"), list()[0].with("Id", "00"), list()[0].with("Id", nil), list()[0].with("Id", "/"))}, all(stored)},
		{"swapped IDs", object{"Successful": swapped}, []want{mixed, mixed, stored, stored}},
		{"a digest of another's attributes", object{"Successful": swappedAttributes}, but(1, mixed)},
		{"swapped between the lists", object{"Successful": mixedFailure, "Failed": []object{{"Id": "0", "Code": "InvalidMessageContents", "SenderFault": true}}}, []want{mixed, mixed, stored, stored}},
		{"a fault of the sender", failed(1, "InvalidMessageContents", true), but(1, refused)},
		{"a fault of the sender with an unknown code", failed(1, "Whatever", true), but(1, refused)},
		{"a fault of the sender with a code of the service", failed(1, "InternalError", true), but(1, doubt)},
		{"a fault of the sender, service unavailable", failed(1, "ServiceUnavailable", true), but(1, doubt)},
		{"a fault of the sender without a code", failed(1, "", true), but(1, doubt)},
		{"a fault of the service", failed(1, "InternalError", false), but(1, doubt)},
		{"a fault of the service with a code of the sender", failed(1, "InvalidMessageContents", false), but(1, doubt)},
		{"a throttle", failed(1, "RequestThrottled", false), but(1, throttled)},
		{"a throttle as a fault of the sender", failed(1, "ThrottlingException", true), but(1, throttled)},
		{"null lists", object{"Successful": nil, "Failed": nil}, all(doubt)},
	} {
		t.Run(test.name, func(t *testing.T) {
			answers, _, err := send(t, answering(t, 200, test.body.String()), 4)
			assert.Equal(t, test.want, gotAll(answers))
			assert.NoError(t, err, "SQS answered entry by entry")
			for _, a := range answers {
				switch got(a) {
				case mixed:
					assert.ErrorIs(t, a.Err, sqscall.ErrMixedUp)
				case altered:
					assert.Equal(t, otherMD5, a.Got)
					field := "MessageBody"
					if strings.Contains(test.name, "attributes") {
						field = "MessageAttributes"
					}
					assert.Equal(t, field, a.Field)
				case refused, throttled:
					assert.Equal(t, strings.Contains(test.name, "unknown code"), a.Code == "")
				}
			}
		})
	}
	for _, status := range []int{201, 202, 206} {
		answers, _, err := send(t, answering(t, status, failed(1, "InvalidMessageContents", true).String()), 4)
		assert.Equal(t, all(doubt), gotAll(answers), status)
		assert.ErrorIs(t, err, sqscall.ErrUnproven)
	}
}

// A batch has two equal messages, so the digest of each answer matches both entries. Both
// entries count as stored, and not as mixed up (ErrMixedUp).
func TestEqualBodiesAreNotMixedUp(t *testing.T) {
	es := entries(2)
	es[1] = es[0]
	answers := make([]attempt.Answer, 2)
	load, err := answering(t, 200, batchSuccess(es).String()).Send(t.Context(), es, answers)
	check(t, es, answers, load, err)
	assert.Equal(t, []want{stored, stored}, gotAll(answers))
}

// If the request fails as a whole, the error type in the body of the answer decides whether
// SQS refused all entries.
func TestProofOfRefusal(t *testing.T) {
	is := func(name string) string {
		return object{"__type": name, "message": "why"}.String()
	}
	type wants struct{ one, batch want }
	both := func(w want) wants { return wants{w, w} }
	for _, test := range []struct {
		name    string
		status  int
		body    string
		headers []string
		want    wants
		code    string
	}{
		{"no queue", 400, is(inService + "QueueDoesNotExist"), []string{"x-amzn-query-error", "AWS.SimpleQueueService.NonExistentQueue;Sender"}, both(again), "AWS.SimpleQueueService.NonExistentQueue"},
		{"no queue, without the header", 400, is(inService + "QueueDoesNotExist"), nil, both(again), "QueueDoesNotExist"},
		{"without a namespace", 400, is("QueueDoesNotExist"), nil, both(again), "QueueDoesNotExist"},
		{"with a suffix", 400, is("QueueDoesNotExist:http://internal.amazon.com/"), nil, both(again), "QueueDoesNotExist"},
		{"an invalid parameter", 400, is(coral + "InvalidParameterValueException"), []string{"x-amzn-query-error", "InvalidParameterValue;Sender"}, wants{refused, apart}, "InvalidParameterValue"},
		{"a missing parameter", 400, is(coral + "MissingRequiredParameterException"), []string{"x-amzn-query-error", "MissingParameter;Sender"}, wants{refused, apart}, "MissingParameter"},
		{"too long", 400, is(inService + "BatchRequestTooLong"), []string{"x-amzn-query-error", "AWS.SimpleQueueService.BatchRequestTooLong;Sender"}, wants{refused, apart}, "AWS.SimpleQueueService.BatchRequestTooLong"},
		{"invalid contents", 400, is(inService + "InvalidMessageContents"), nil, wants{refused, apart}, "InvalidMessageContents"},
		{"unsupported", 400, is(inService + "UnsupportedOperation"), nil, wants{refused, apart}, "UnsupportedOperation"},
		{"no access", 403, is(coral + "AccessDeniedException"), []string{"x-amzn-query-error", "AccessDenied;Sender"}, both(again), "AccessDenied"},
		{"an expired token", 403, is(coral + "ExpiredTokenException"), nil, both(again), "ExpiredTokenException"},
		{"a key without access", 400, is(inService + "KmsAccessDenied"), []string{"x-amzn-query-error", "KMS.AccessDeniedException;Sender"}, both(again), "KMS.AccessDeniedException"},
		{"a throttle", 403, is(inService + "RequestThrottled"), []string{"x-amzn-query-error", "RequestThrottled;Sender"}, both(throttled), "RequestThrottled"},
		{"a throttled key", 400, is(inService + "KmsThrottled"), []string{"x-amzn-query-error", "KMS.ThrottlingException;Sender"}, both(throttled), "KMS.ThrottlingException"},
		{"a throttle with 429", 429, is("ThrottlingException"), nil, both(throttled), "ThrottlingException"},
		{"a throttle with 503", 503, is("ThrottlingException"), nil, both(throttled), "ThrottlingException"},
		{"a throttle with 302", 302, is("ThrottlingException"), nil, both(doubtSlow), "ThrottlingException"},
		{"a wrong signature", 403, is(coral + "InvalidSignatureException"), nil, both(again), "InvalidSignatureException"},
		{"a request from the future", 403, is("RequestInTheFuture"), nil, both(again), "RequestInTheFuture"},
		{"a header that the table does not know", 400, is(inService + "QueueDoesNotExist"), []string{"x-amzn-query-error", "NewName;Sender"}, both(again), "QueueDoesNotExist"},
		{"a header that contradicts the body", 400, is(inService + "QueueDoesNotExist"), []string{"x-amzn-query-error", "InternalError;Receiver"}, both(doubt), "InternalError"},
		{"a body that contradicts the header", 400, is("InternalError"), []string{"x-amzn-errortype", "AccessDenied"}, both(doubt), "AccessDenied"},

		{"only headers", 403, "", []string{"x-amzn-errortype", "AccessDenied", "x-amzn-query-error", "AccessDenied;Sender"}, both(doubt), ""},
		{"headers and an empty object", 403, "{}", []string{"x-amzn-errortype", "AccessDenied"}, both(doubt), ""},
		{"headers and HTML", 403, html, []string{"x-amzn-errortype", "AccessDenied"}, both(doubt), ""},
		{"only a code field", 403, `{"code":"AccessDenied","message":"Forbidden"}`, nil, both(doubt), ""},
		{"the name in other case", 400, `{"__TYPE":"QueueDoesNotExist"}`, nil, both(doubt), ""},
		{"a type that is not a string", 400, `{"__type":["QueueDoesNotExist"]}`, nil, both(doubt), ""},
		{"a body with more after it", 400, is("QueueDoesNotExist") + "<!-- proxy -->", nil, both(doubt), ""},
		{"a body that is cut", 400, strings.TrimSuffix(is("QueueDoesNotExist"), "}"), nil, both(doubt), ""},
		{"a long body", 400, object{"__type": "QueueDoesNotExist", "message": strings.Repeat("m", 70<<10)}.String(), nil, both(doubt), ""},
		{"an unknown code", 400, is("Whatever"), nil, both(doubt), ""},
		{"a timeout of SQS", 408, is("RequestTimeout"), nil, both(doubt), "RequestTimeout"},
		{"a failure of the service as 400", 400, is("InternalFailure"), nil, both(doubt), "InternalFailure"},
		{"a refusal with 500", 500, is("AccessDenied"), nil, both(doubt), "AccessDenied"},
		{"a refusal with 302", 302, is("AccessDenied"), nil, both(doubt), "AccessDenied"},
		{"a refusal with 600", 600, is("AccessDenied"), nil, both(doubt), "AccessDenied"},
		{"a failure", 500, is(coral + "InternalFailure"), nil, both(doubt), "InternalFailure"},
		{"unavailable", 503, is("ServiceUnavailable"), nil, both(doubt), "ServiceUnavailable"},
		{"a throttle without a body", 429, "", nil, both(doubtSlow), ""},
		{"a throttle in HTML", 429, html, nil, both(doubtSlow), ""},
		{"a throttle only in a header", 400, "", []string{"x-amzn-errortype", "RequestThrottled"}, both(doubtSlow), ""},
		{"garbage that claims to be gzip", 400, is("QueueDoesNotExist"), []string{"Content-Encoding", "gzip"}, both(doubt), ""},
		{"a success that claims to be gzip", 200, success(entries(1)[0]).String(), []string{"Content-Encoding", "gzip"}, both(doubt), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := answering(t, test.status, test.body, test.headers...)
			one, _, err := send(t, c, 1)
			require.Error(t, err)
			assert.Equal(t, test.want.one, got(one[0]))
			assert.Equal(t, test.code, one[0].Code)
			batch, _, err := send(t, c, 3)
			require.Error(t, err)
			assert.Equal(t, []want{test.want.batch, test.want.batch, test.want.batch}, gotAll(batch))
		})
	}
	for _, status := range []int{301, 302, 304, 307, 308, 400, 401, 403, 404, 407, 408, 413, 414, 421, 500, 502, 503, 504, 599, 999} {
		for name, body := range map[string]string{"HTML": html, "nothing": "", "an empty object": "{}", "a message": `{"message":"Forbidden"}`} {
			t.Run(fmt.Sprint(status, " with ", name), func(t *testing.T) {
				if status == 304 {
					body = ""
				}
				answers, _, _ := send(t, answering(t, status, body, "Location", "/other"), 2)
				assert.Equal(t, []want{doubt, doubt}, gotAll(answers))
			})
		}
	}
}

// classify knows each error code in SQS's service model, and the older names of these
// codes in the query protocol. It also knows each throttle code of the SDK. The codes
// listed in this test have the expected class.
func TestCodes(t *testing.T) {
	for id, entry := range sqs.TypeRegistry.Entries {
		err, ok := entry.New().(smithy.APIError)
		if !ok {
			continue
		}
		assert.NotEqual(t, sqscall.Unknown, sqscall.Classify(err.ErrorCode()), id)
	}
	for code := range retry.DefaultThrottleErrorCodes {
		assert.Equal(t, sqscall.Throttle, sqscall.Classify(code), code)
	}
	for _, code := range strings.Fields(`BatchEntryIdsNotDistinct BatchRequestTooLong EmptyBatchRequest InvalidBatchEntryId
		MessageNotInflight PurgeQueueInProgress QueueDeletedRecently NonExistentQueue TooManyEntriesInBatchRequest UnsupportedOperation`) {
		assert.NotEqual(t, sqscall.Unknown, sqscall.Classify("AWS.SimpleQueueService."+code), code)
	}
	for _, code := range strings.Fields(`KMS.AccessDeniedException KMS.DisabledException KMS.InvalidKeyUsageException KMS.InvalidStateException
		KMS.NotFoundException KMS.OptInRequired AccessDenied AccessDeniedException NonExistentQueue QueueDoesNotExist
		UnrecognizedClientException InvalidClientTokenId IncompleteSignature MissingAuthenticationToken OptInRequired NotAuthorized`) {
		assert.Equal(t, sqscall.Access, sqscall.Classify(code), code)
	}
	for _, code := range strings.Fields(`InvalidParameterValue InvalidParameterValueException MissingParameter MissingRequiredParameterException
		InvalidMessageContents BatchRequestTooLong BatchEntryIdsNotDistinct InvalidBatchEntryId TooManyEntriesInBatchRequest UnsupportedOperation`) {
		assert.Equal(t, sqscall.Apart, sqscall.Classify(code), code)
	}
	for _, code := range strings.Fields(`InvalidSignature InvalidSignatureException SignatureDoesNotMatch RequestExpired RequestTimeTooSkewed
		RequestInTheFuture AuthFailure ExpiredToken ExpiredTokenException`) {
		assert.Equal(t, sqscall.Skew, sqscall.Classify(code), code)
	}
	for _, code := range strings.Fields(`InternalError InternalFailure ServiceUnavailable`) {
		assert.Equal(t, sqscall.Service, sqscall.Classify(code), code)
	}
	for _, code := range []string{"", "RequestTimeout", "RequestTimeoutException", "UnknownError", "Whatever"} {
		assert.Equal(t, sqscall.Unknown, sqscall.Classify(code), code)
	}
}
