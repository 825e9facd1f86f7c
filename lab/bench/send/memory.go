package main

import (
	"bytes"
	"crypto/md5" // #nosec G501 -- the digest of SQS
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

// memory is an HTTP client that answers like SQS, without a network, and stores nothing. It
// reads and hashes each body. This time counts on all sides.
type memory struct{ messages atomic.Int64 }

// inMemory returns a server whose clients use a memory.
func inMemory() *server {
	return &server{Process: &meter.Process{Stop: func() error { return nil }}, url: "https://sqs.us-east-1.amazonaws.com", http: &memory{}}
}

var requests = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (m *memory) Do(r *http.Request) (*http.Response, error) {
	request := requests.Get().(*bytes.Buffer)
	defer requests.Put(request)
	request.Reset()
	if _, err := request.ReadFrom(r.Body); err != nil {
		return nil, err
	}
	if hooks := httptrace.ContextClientTrace(r.Context()); hooks != nil && hooks.WroteRequest != nil {
		hooks.WroteRequest(httptrace.WroteRequestInfo{}) // as net/http does
	}
	answer := make([]byte, 0, 2560)
	switch r.Header.Get("X-Amz-Target") {
	case "AmazonSQS.GetQueueAttributes":
		answer = append(answer, `{"Attributes":{"FifoQueue":"true","ContentBasedDeduplication":"true"}}`...)
	case "AmazonSQS.SendMessageBatch":
		answer = append(m.appendEntries(append(answer, `{"Successful":[`...), request.Bytes()), "]}"...)
	default: // SendMessage: an entry without an ID
		answer = bytes.Replace(m.appendEntries(answer, request.Bytes()), []byte(`"Id":"0",`), nil, 1)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(answer)), Request: r}, r.Body.Close()
}

// appendEntries appends the JSON of a successful entry for each message in the request.
func (m *memory) appendEntries(answer, request []byte) []byte {
	for i := int64(0); ; i++ {
		_, rest, ok := bytes.Cut(request, []byte(`MessageBody":"`))
		if !ok {
			return answer
		}
		body := rest[:0]
		for escaped := true; escaped; { // the only escapes in a body are those of quotes
			part, after, _ := bytes.Cut(rest, []byte{'"'})
			if part, escaped = bytes.CutSuffix(part, []byte{'\\'}); escaped {
				part = append(part, '"')
			}
			body, rest = append(body, part...), after
		}
		request = rest
		if i > 0 {
			answer = append(answer, ',')
		}
		n, sum := m.messages.Add(1), md5.Sum(body) // #nosec G401
		answer = strconv.AppendInt(append(answer, `{"Id":"`...), i, 10)
		answer = strconv.AppendInt(append(answer, `","MessageId":"00000000-0000-4000-8000-`...), 100_000_000_000+n, 10)
		answer = hex.AppendEncode(append(answer, `","MD5OfMessageBody":"`...), sum[:])
		// SQS's sequence numbers are 1<<64, which is 18446744073709551616, and a number that
		// grows with the time.
		answer = strconv.AppendInt(append(answer, `","SequenceNumber":"18`...), 446744073709551616+time.Now().UnixMilli()*256_000+n%256_000, 10)
		answer = append(answer, `"}`...)
	}
}
