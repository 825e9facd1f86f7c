package sqscall_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/wire"
)

const queueURL = "https://sqs.us-east-1.amazonaws.com/123456789012/events.fifo"

// want has the fields of an expected answer that tests compare. The function `got` returns
// these fields of an actual answer.
type want struct {
	fate attempt.Fate
	next attempt.Next
	load attempt.Load

	unready bool
}

var (
	stored    = want{attempt.FateStored, attempt.NextFinal, attempt.LoadPassed, false}
	doubt     = want{attempt.FateInDoubt, attempt.NextRetry, attempt.LoadTroubled, false}
	doubtSlow = want{attempt.FateInDoubt, attempt.NextRetry, attempt.LoadThrottled, false}
	mixed     = want{attempt.FateInDoubt, attempt.NextApart, attempt.LoadTroubled, false}
	broken    = want{attempt.FateInDoubt, attempt.NextFinal, attempt.LoadTroubled, false}
	altered   = want{attempt.FateAltered, attempt.NextFinal, attempt.LoadPassed, false}
	refused   = want{attempt.FateNotStored, attempt.NextFinal, attempt.LoadPassed, false}
	apart     = want{attempt.FateNotStored, attempt.NextApart, attempt.LoadPassed, false}
	again     = want{attempt.FateNotStored, attempt.NextRetry, attempt.LoadPassed, true}
	throttled = want{attempt.FateNotStored, attempt.NextRetry, attempt.LoadThrottled, false}
	unsent    = want{attempt.FateNotStored, attempt.NextRetry, attempt.LoadTroubled, true}
)

func got(a attempt.Answer) want { return want{a.Fate, a.Next, a.Load, a.Unready} }

func gotAll(answers []attempt.Answer) []want {
	var all []want
	for _, a := range answers {
		all = append(all, got(a))
	}
	return all
}

// entries returns n messages; messages with an odd index have attributes.
func entries(n int) []sqscall.Entry {
	all := make([]sqscall.Entry, n)
	for i := range all {
		body := `{"body":` + strconv.Itoa(i) + `}`
		all[i] = sqscall.Entry{
			Body: &body, Group: aws.String("group-" + strconv.Itoa(i)), BodyMD5: digest.Of(body),
			DeduplicationID: aws.String("id-" + strconv.Itoa(i)),
		}
		if i%2 == 1 {
			all[i].Attributes = map[string]types.MessageAttributeValue{
				"n": {DataType: aws.String("String"), StringValue: aws.String("value-" + strconv.Itoa(i))},
			}
		}
	}
	return all
}

// object is a JSON object of an answer.
type object map[string]any

// success is the answer of SQS for a stored entry.
func success(e sqscall.Entry) object {
	o := object{
		"MessageId": "3a7f2b0e-1111-4222-8333-444455556666", "SequenceNumber": "18850000000000000000",
		"MD5OfMessageBody": digest.Body(*e.Body),
	}
	if md5 := digest.Attributes(e.Attributes); md5 != nil {
		o["MD5OfMessageAttributes"] = *md5
	}
	return o
}

// with returns a copy of o in which the given field has the given value. A nil value
// removes the field.
func (o object) with(field string, value any) object {
	c := object{}
	for k, v := range o {
		c[k] = v
	}
	if c[field] = value; value == nil {
		delete(c, field)
	}
	return c
}

func (o object) String() string {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func batchSuccess(es []sqscall.Entry) object {
	var list []object
	for i, e := range es {
		list = append(list, success(e).with("Id", strconv.Itoa(i)))
	}
	return object{"Successful": list}
}

// lean is true in the second run of all tests: the requests of SDK clients are then made
// without the SDK's middleware, if possible. In the first run the SDK makes them.
var lean bool

func TestMain(m *testing.M) {
	code := m.Run()
	if f := flag.Lookup("test.fuzz"); code == 0 && (f == nil || f.Value.String() == "") {
		lean = true
		code = m.Run()
	}
	os.Exit(code)
}

// sdkClient returns a real SDK client with its retries and checks on.
func sdkClient(endpoint string, h aws.HTTPClient, change ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &endpoint, HTTPClient: h,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	}, append([]func(*sqs.Options){func(o *sqs.Options) {
		if lean {
			wire.Use(o)
		}
	}}, change...)...)
}

// serve starts a server and returns a Caller to it.
func serve(t testing.TB, h http.HandlerFunc) *sqscall.Caller {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		h(w, r)
	}))
	t.Cleanup(s.Close)
	return sqscall.New(sdkClient(s.URL, nil), queueURL)
}

// send makes one request with n entries. It calls check, which tests the rules for all
// answers, for example that an error does not contain the body of a message.
func send(t testing.TB, c *sqscall.Caller, n int) ([]attempt.Answer, attempt.Load, error) {
	t.Helper()
	es := entries(n)
	answers := make([]attempt.Answer, n)
	for i := range answers {
		answers[i].Fate = attempt.FateStored // Send must overwrite this wrong value
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c.Learn()
	load, err := c.Send(ctx, es, answers)
	check(t, es, answers, load, err)
	return answers, load, err
}

func check(t testing.TB, es []sqscall.Entry, answers []attempt.Answer, load attempt.Load, err error) {
	t.Helper()
	worst := attempt.LoadPassed
	for i, a := range answers {
		worst = max(worst, a.Load)
		if a.Fate == attempt.FateStored {
			assert.NoError(t, a.Err)
			assert.NotEmpty(t, a.MessageID)
			assert.NotEmpty(t, a.Sequence)
			continue
		}
		require.Error(t, a.Err)
		assert.Empty(t, a.MessageID)
		assert.Empty(t, a.Sequence)
		assert.Equal(t, a.Fate == attempt.FateAltered, a.Field != "", "entry %d", i)
		assert.Equal(t, a.Fate == attempt.FateAltered, a.Got != "", "entry %d", i)
		if a.Fate == attempt.FateInDoubt {
			assert.NotEqual(t, attempt.LoadPassed, a.Load, "entry %d", i)
		}
		for _, e := range es {
			assert.NotContains(t, a.Err.Error(), *e.Body)
			assert.NotContains(t, a.Err.Error(), *e.Group)
			assert.NotContains(t, a.Err.Error(), *e.DeduplicationID)
		}
		if err != nil {
			assert.Equal(t, err, a.Err)
		}
	}
	assert.Equal(t, worst, load)
}

// stubHTTP is an HTTP client that never calls the hooks of net/http.
type stubHTTP func(*http.Request) (*http.Response, error)

func (f stubHTTP) Do(r *http.Request) (*http.Response, error) { return f(r) }

func response(status int, body []byte) *http.Response {
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}
