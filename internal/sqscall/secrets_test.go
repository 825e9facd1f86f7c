package sqscall_test

import (
	"errors"
	"fmt"
	escape "html"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// bodyForms returns the message body, parts of the body, and encodings of the body. An
// error might contain any of these forms. The keys are the names of the forms.
func bodyForms(body string) map[string]string {
	twice := strconv.Quote(strconv.Quote(body))
	return map[string]string{
		"the body":           body,
		"the first 30 bytes": body[:30],
		"a value":            "Jane Q7X",
		"a word":             "Q7X",
		"the dedupe key":     "patient-Q7X",
		"HTML":               escape.EscapeString(body),
		"URL":                url.QueryEscape(body),
		"path":               url.PathEscape(body),
		"Go":                 fmt.Sprintf("%q", body),
		"twice":              twice,
		"upper case":         strings.ToUpper(body),
		"bytes":              fmt.Sprint([]byte(body)),
		"hex":                fmt.Sprintf("%x", body),
	}
}

const secretBody = `{"dedupe_key":"patient-Q7X","payload":{"name":"Jane Q7X","note":"a <b> & \"c\""}}`

// No error text, error code or digest in the answers contains a message or a part of it,
// plain or encoded, even if the client's error or the HTTP response quotes the message.
func TestNoTextQuotesAMessage(t *testing.T) {
	for form, quote := range bodyForms(secretBody) {
		for name, c := range map[string]*sqscall.Caller{
			"an error":        failing(func() error { return errors.New(quote) }),
			"a wrapped error": failing(func() error { return fmt.Errorf("send %s: %w", quote, syscall.ECONNRESET) }),
			"joined errors":   failing(func() error { return errors.Join(errors.New(quote), fmt.Errorf("%s: %w", quote, syscall.EPIPE)) }),
			"a message":       failing(func() error { return &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: quote} }),
			"a code":          failing(func() error { return &smithy.GenericAPIError{Code: quote, Message: "m"} }),
			"an operation": failing(func() error {
				return &smithy.OperationError{ServiceID: quote, OperationName: quote, Err: syscall.EPIPE}
			}),
			"a URL":           failing(func() error { return &url.Error{Op: quote, URL: "http://p/" + quote, Err: errors.New(quote)} }),
			"a network error": failing(func() error { return &net.OpError{Op: quote, Net: quote, Err: errors.New(quote)} }),
			"an address": failing(func() error {
				return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.UnixAddr{Name: quote}, Err: errors.New(quote)}
			}),
			"a zone": failing(func() error {
				return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{Zone: quote}, Err: errors.New(quote)}
			}),
			"a host":                  failing(func() error { return &net.DNSError{Err: quote, Name: quote + ".proxy.internal", Server: quote} }),
			"a host of AWS":           failing(func() error { return &net.DNSError{Err: quote, Name: quote + ".sqs.us-east-1.amazonaws.com"} }),
			"a region of AWS":         failing(func() error { return &net.DNSError{Err: quote, Name: "sqs." + quote + ".amazonaws.com"} }),
			"a path":                  failing(func() error { return &os.PathError{Op: quote, Path: quote, Err: syscall.ENOENT} }),
			"a panic":                 failing(func() error { panic(quote) }),
			"a panic with an error":   failing(func() error { panic(fmt.Errorf("%s: %w", quote, syscall.EPIPE)) }),
			"a panic with a Stringer": failing(func() error { panic(&net.UnixAddr{Name: quote}) }),
			"the code of an answer":   answering(t, 400, object{"__type": quote, "message": quote}.String()),
			"the text of an answer":   answering(t, 400, object{"__type": "com.amazonaws.sqs#InvalidMessageContents", "message": quote}.String()),
			"a page":                  answering(t, 502, "<html>"+quote),
			"half an answer":          answering(t, 200, `{"MessageId":"`+quote),
			"a header": serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("x-amzn-query-error", url.QueryEscape(quote)+";Sender")
				w.Header().Set("x-amzn-requestid", url.QueryEscape(quote))
				w.WriteHeader(400)
				_, _ = w.Write([]byte(object{"__type": "InvalidParameterValue"}.String()))
			}),
			"a redirect": serve(t, func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://127.0.0.1:1/"+url.PathEscape(quote), http.StatusFound)
			}),
			"the entries": answering(t, 200, object{"Failed": []object{
				{"Id": "0", "Code": quote, "SenderFault": true, "Message": quote},
				{"Id": "1", "Code": "InternalError", "SenderFault": false, "Message": quote},
			}}.String()),
			"a digest": answering(t, 200, object{"MessageId": "m", "SequenceNumber": "1", "MD5OfMessageBody": quote}.String()),
		} {
			for _, n := range []int{1, 2} {
				answers := make([]attempt.Answer, n)
				_, err := c.Send(t.Context(), entries(n), answers)
				texts := []string{fmt.Sprint(err)}
				for _, a := range answers {
					texts = append(texts, fmt.Sprint(a.Err), a.Code, a.Got)
				}
				for _, text := range texts {
					for _, part := range []string{quote, "Q7X", "Jane", "%22"} {
						assert.NotContains(t, text, part, "%s in %s", form, name)
					}
				}
				if t.Failed() {
					return
				}
			}
		}
	}
}

// The texts of errors contain what an operator needs to know: codes, statuses and
// errors of the network.
func TestTextsOfKnownErrors(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	tls := httptest.NewTLSServer(nil)
	t.Cleanup(tls.Close)
	for name, tc := range map[string]struct {
		c    *sqscall.Caller
		want string
	}{
		"a refusal":           {answering(t, 400, object{"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "m"}.String()), "HTTP status 400: api error QueueDoesNotExist"},
		"an unknown code":     {answering(t, 400, object{"__type": "NewlyInvented"}.String()), "HTTP status 400: api error with an unknown code"},
		"nobody listens":      {sqscall.New(sdkClient(closed.URL, nil), queueURL), "no answer: dial tcp " + strings.TrimPrefix(closed.URL, "http://") + ": connection refused"},
		"another certificate": {sqscall.New(sdkClient(tls.URL, nil), queueURL), "no answer: x509: certificate signed by unknown authority"},
		"no such host":        {failing(func() error { return &net.DNSError{Name: "sqs.us-gov-west-1.amazonaws.com", IsNotFound: true} }), "lookup of sqs.us-gov-west-1.amazonaws.com: no such host"},
		"another host":        {failing(func() error { return &net.DNSError{Name: "queue.example", IsTimeout: true} }), "lookup of a host: timeout"},
		"an opaque error":     {failing(func() error { return errors.New("boom") }), "*errors.errorString with a hidden text"},
		"two errors":          {failing(func() error { return errors.Join(syscall.EPIPE, errors.New("boom")) }), "broken pipe; *errors.errorString with a hidden text"},
		"the Go runtime": {failing(func() error { //nolint:gocritic // the panic is the point
			var none []int
			return errors.New(strconv.Itoa(none[len(none)]))
		}), "the client panicked: runtime error: index out of range [0] with length 0"},
	} {
		_, _, err := send(t, tc.c, 1)
		assert.EqualError(t, err, tc.want, name)
	}
}

// With ShowTexts, the errors of Send contain the texts of the client's errors and panics.
func TestShowTexts(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []*sqscall.Caller{
		failing(func() error { return boom }),
		failing(func() error { panic(boom) }),
		answering(t, 400, object{"__type": "InvalidParameterValue", "message": "boom"}.String()),
	} {
		_, _, err := send(t, c, 1)
		assert.NotContains(t, err.Error(), "boom")
		c.ShowTexts = true
		_, _, err = send(t, c, 1)
		require.ErrorContains(t, err, "boom")
	}
}
