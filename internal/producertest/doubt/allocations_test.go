package doubt

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
)

// confirming is an HTTP client that confirms each message and stores nothing. It needs one
// allocation for an answer, and some for its parts.
type confirming struct{ text, answer bytes.Buffer }

func (c *confirming) Do(r *http.Request) (*http.Response, error) {
	c.text.Reset()
	_, _ = c.text.ReadFrom(r.Body)
	c.answer.Reset()
	separator := `{"Successful":[`
	rest := c.text.Bytes()
	for i := 0; ; i++ {
		_, after, ok := bytes.Cut(rest, []byte(`"MessageBody":"`))
		if !ok {
			break
		}
		body, after, _ := bytes.Cut(after, []byte(`","MessageGroupId"`))
		rest = after
		plain := body[:0]
		for _, b := range body {
			if b != '\\' {
				plain = append(plain, b)
			}
		}
		sum := md5.Sum(plain)
		a := append(append(c.answer.AvailableBuffer(), separator...), `{"Id":"`...)
		a = append(strconv.AppendInt(a, int64(i), 10), `","MessageId":"m","SequenceNumber":"1","MD5OfMessageBody":"`...)
		c.answer.Write(append(hex.AppendEncode(a, sum[:]), `"}`...))
		separator = ","
	}
	c.answer.WriteString("]}")
	if r.Header.Get("X-Amz-Target") == "AmazonSQS.GetQueueAttributes" {
		c.answer.Reset()
		c.answer.WriteString(`{"Attributes":{"FifoQueue":"true","ContentBasedDeduplication":"true"}}`)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(bytes.Clone(c.answer.Bytes())))}, nil
}

// A producer needs few allocations for an event: for its message, its item and its receipt,
// and a tenth of those for its request. The SDK's middleware alone would need 27.
func TestAllocations(t *testing.T) {
	cfg := awsConfig("http://localhost")
	cfg.HTTPClient = &confirming{}
	c := producertest.Config()
	c.Delivery = sqsfifo.Delivery{Order: sqsfifo.OrderRuns, InFlight: 1}
	p, err := sqsfifo.NewProducer(sqsfifo.NewClient(cfg), c)
	require.NoError(t, err)
	const n = 1000
	events, run := producertest.Scenes(n, 100), 0
	got := testing.AllocsPerRun(5, func() {
		for i := range events {
			events[i].ID = strconv.Itoa(run*n + i)
		}
		run++
		require.NoError(t, p.SendBatch(t.Context(), events).Err())
	}) / n
	assert.LessOrEqual(t, got, 20.0) // 15.4; more with the race detector
	require.NoError(t, p.Close(t.Context()))
}
