package sqscall_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// stub is a Client made of two functions, without any code of the SDK's client.
type stub struct {
	one   func(context.Context) (*sqs.SendMessageOutput, error)
	batch func(context.Context) (*sqs.SendMessageBatchOutput, error)
}

func (s stub) SendMessage(ctx context.Context, _ *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return s.one(ctx)
}

func (s stub) SendMessageBatch(ctx context.Context, _ *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return s.batch(ctx)
}

func failing(f func() error) *sqscall.Caller {
	return sqscall.New(stub{
		one:   func(context.Context) (*sqs.SendMessageOutput, error) { return nil, f() },
		batch: func(context.Context) (*sqs.SendMessageBatchOutput, error) { return nil, f() },
	}, queueURL)
}

func answered(status int, err error) error {
	return &smithy.OperationError{ServiceID: "SQS", Err: &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody}}, Err: err,
	}}
}

// A client other than the SDK's returns an API error. Send does not see the answer of SQS,
// so the code of the error decides whether SQS refused the message.
func TestOtherClients(t *testing.T) {
	api := func(code string, fault smithy.ErrorFault) error {
		return &smithy.GenericAPIError{Code: code, Message: "why", Fault: fault}
	}
	params := smithy.InvalidParamsError{Context: "SendMessageInput"}
	params.Add(smithy.NewErrParamRequired("MessageBody"))
	real := answered(403, api("AccessDenied", smithy.FaultClient))
	var response *smithyhttp.ResponseError
	require.ErrorAs(t, real, &response)
	response.Response.Request = &http.Request{}
	for _, test := range []struct {
		name       string
		err        error
		one, batch want
	}{
		{"refused", api("QueueDoesNotExist", smithy.FaultClient), again, again},
		{"refused, modelled", &types.QueueDoesNotExist{ErrorCodeOverride: aws.String("AWS.SimpleQueueService.NonExistentQueue")}, again, again},
		{"refused, fault unknown", api("AccessDenied", smithy.FaultUnknown), again, again},
		{"refused with a status", answered(403, api("AccessDenied", smithy.FaultClient)), again, again},
		{"an entry", api("InvalidParameterValue", smithy.FaultClient), refused, apart},
		{"a throttle", api("RequestThrottled", smithy.FaultServer), throttled, throttled},
		{"a throttle with 503", answered(503, api("ThrottlingException", smithy.FaultServer)), throttled, throttled},
		{"a throttle with 200", answered(200, api("ThrottlingException", smithy.FaultServer)), doubtSlow, doubtSlow},
		{"the clock", api("RequestExpired", smithy.FaultClient), again, again},
		{"an unknown code", api("Whatever", smithy.FaultClient), doubt, doubt},
		{"no code", api("", smithy.FaultClient), doubt, doubt},
		{"a fault of the server", api("QueueDoesNotExist", smithy.FaultServer), doubt, doubt},
		{"a failure", api("InternalError", smithy.FaultUnknown), doubt, doubt},
		{"a refusal with 500", answered(500, api("AccessDenied", smithy.FaultClient)), doubt, doubt},
		{"a refusal with 302", answered(302, api("AccessDenied", smithy.FaultClient)), doubt, doubt},
		{"a refusal of an HTTP response whose body is gone", real, doubt, doubt},
		{"invalid parameters", &smithy.OperationError{Err: params}, refused, refused},
		{"not serializable", &smithy.SerializationError{Err: errors.New("why")}, refused, refused},
		{"a dial error", &net.OpError{Op: "dial", Err: errors.New("refused")}, doubt, doubt},
		{"a deadline", context.DeadlineExceeded, doubt, doubt},
		{"canceled", &smithy.CanceledError{Err: context.Canceled}, doubt, doubt},
		{"anything", errors.New("anything"), doubt, doubt},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := failing(func() error { return test.err })
			one, _, err := send(t, c, 1)
			assert.Equal(t, test.one, got(one[0]))
			require.ErrorIs(t, err, test.err)
			batch, _, _ := send(t, c, 2)
			assert.Equal(t, []want{test.batch, test.batch}, gotAll(batch))
			var e smithy.APIError
			if errors.As(test.err, &e) {
				want := e.ErrorCode()
				if want == "Whatever" {
					want = "" // the code is not a known constant
				}
				assert.Equal(t, want, one[0].Code)
			}
		})
	}
}

func TestNoOutput(t *testing.T) {
	for _, n := range []int{1, 2} {
		answers, _, err := send(t, failing(func() error { return nil }), n)
		require.ErrorIs(t, err, sqscall.ErrUnproven)
		for _, a := range answers {
			assert.Equal(t, doubt, got(a))
		}
	}
}

func TestPanic(t *testing.T) {
	es := entries(2)
	for _, test := range []struct {
		value any
		text  string
	}{
		{"boom", "string"},
		{errors.New("boom"), "*errors.errorString"},
		{fmt.Sprintf("boom: %s", *es[0].Body), "string"},
		{es[0], "sqscall.Entry"},
		{[]byte(*es[0].Body), "[]uint8"},
		{nil, "nil"}, // a panic with nil becomes a *runtime.PanicNilError, an error of the Go runtime
	} {
		for _, n := range []int{1, 2} {
			answers, _, err := send(t, failing(func() error { panic(test.value) }), n)
			var panicked *sqscall.PanicError
			require.ErrorAs(t, err, &panicked)
			assert.Contains(t, err.Error(), "the client panicked")
			assert.Contains(t, err.Error(), test.text)
			for _, a := range answers {
				assert.Equal(t, broken, got(a))
			}
		}
	}
}

// An SDK error without a response, for example from a wrapper or a mock, panics in its
// Error method. Send then reports an error that names the type instead of the text, and
// the entries are in doubt.
func TestErrorWithoutText(t *testing.T) {
	for _, n := range []int{1, 2} {
		answers, _, err := send(t, failing(func() error { return &smithyhttp.ResponseError{Err: errors.New("boom")} }), n)
		assert.EqualError(t, err, "an error of type *http.ResponseError, whose text cannot be read")
		for _, a := range answers {
			assert.Equal(t, doubt, got(a))
		}
	}
}

// If the client calls runtime.Goexit, Send does not return. The answers are FateInDoubt all
// the same: Send sets them to FateInDoubt before it calls the client.
func TestGoexit(t *testing.T) {
	for _, n := range []int{1, 2} {
		answers := make([]attempt.Answer, n)
		for i := range answers {
			answers[i].Fate = attempt.FateStored
		}
		returned, done := false, make(chan struct{})
		go func() {
			defer close(done)
			c := failing(func() error {
				runtime.Goexit()
				return nil
			})
			_, _ = c.Send(t.Context(), entries(n), answers)
			returned = true
		}()
		<-done
		assert.False(t, returned)
		for _, a := range answers {
			assert.Equal(t, broken, got(a))
			require.ErrorIs(t, a.Err, sqscall.ErrUnproven)
		}
	}
}

func TestNumberOfEntries(t *testing.T) {
	c := failing(func() error { panic("called") })
	for _, n := range []int{0, 11} {
		answers := make([]attempt.Answer, n)
		_, err := c.Send(t.Context(), entries(n), answers)
		require.Error(t, err)
		for _, a := range answers {
			assert.Equal(t, refused, got(a))
			require.Error(t, a.Err)
		}
	}
	ten, _, err := send(t, answering(t, 200, batchSuccess(entries(10)).String()), 10)
	require.NoError(t, err)
	for _, a := range ten {
		assert.Equal(t, stored, got(a))
	}
}

// optionDropper is a wrapper of the SDK's client. It drops the options of Send, so the
// SDK retries failed requests, and Send does not learn how often a request was sent.
type optionDropper struct{ *sqs.Client }

func (d optionDropper) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return d.Client.SendMessage(ctx, in)
}

func (d optionDropper) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return d.Client.SendMessageBatch(ctx, in)
}

// A wrapper drops the options of a call, so the SDK may retry the request. If SQS refuses a
// request, this may be the SDK's second request, and SQS may have stored the entry of the
// first request. So Send must report the entry as in doubt.
func TestWrapperThatDropsTheOptions(t *testing.T) {
	var n atomic.Int32
	var answers [][2]any
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		a := answers[min(int(n.Add(1)), len(answers))-1]
		w.WriteHeader(a[0].(int))
		_, _ = w.Write([]byte(a[1].(string)))
	}))
	t.Cleanup(s.Close)
	wrapped := sqscall.New(optionDropper{sdkClient(s.URL, nil)}, queueURL)
	for _, test := range []struct {
		name    string
		answers [][2]any
		want    want
	}{
		{"success", [][2]any{{200, success(entries(1)[0]).String()}}, stored},
		{"success with 202", [][2]any{{202, success(entries(1)[0]).String()}}, doubt},
		{"a lost answer, then a refusal", [][2]any{{500, ""}, {403, `{"__type":"AccessDenied"}`}}, doubt},
		{"a refusal", [][2]any{{403, `{"__type":"AccessDenied"}`}}, doubt},
	} {
		t.Run(test.name, func(t *testing.T) {
			n.Store(0)
			answers = test.answers
			got1, _, _ := send(t, wrapped, 1)
			assert.Equal(t, test.want, got(got1[0]))
		})
	}
}

// retryWrapper calls the SDK again if the first call fails.
type retryWrapper struct{ *sqs.Client }

func (r retryWrapper) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	if out, err := r.Client.SendMessage(ctx, in, o...); err == nil {
		return out, nil
	}
	return r.Client.SendMessage(ctx, in, o...)
}

// A wrapper sends a failed request again. A refusal of the second request proves nothing about
// the first: the entry is in doubt.
func TestWrapperThatRetries(t *testing.T) {
	var n atomic.Int32
	h := stubHTTP(func(*http.Request) (*http.Response, error) {
		if n.Add(1) == 1 {
			return nil, errors.New("the answer is lost")
		}
		return response(403, []byte(`{"__type":"AccessDenied"}`)), nil
	})
	answers, _, _ := send(t, sqscall.New(retryWrapper{sdkClient("http://localhost", h)}, queueURL), 1)
	assert.Equal(t, doubt, got(answers[0]))
	assert.EqualValues(t, 2, n.Load())
}

// hedging is a client that sends in a separate goroutine and returns an error before the
// SDK has finished.
type hedging struct {
	*sqs.Client
	started chan struct{}
}

func (h hedging) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	go func() { _, _ = h.Client.SendMessage(ctx, in, o...) }()
	<-h.started
	return nil, errors.New("gave up")
}

// A client returns an error while its goroutine is still preparing the request. The
// request may leave later, so the entry is in doubt.
func TestWrapperThatGivesUpEarly(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	client := sdkClient("http://localhost", nil, func(o *sqs.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			close(started)
			<-release
			return aws.Credentials{}, errors.New("no credentials")
		})
	})
	answers, _, _ := send(t, sqscall.New(hedging{client, started}, queueURL), 1)
	close(release)
	assert.Equal(t, doubt, got(answers[0]))
}
