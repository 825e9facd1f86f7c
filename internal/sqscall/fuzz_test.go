package sqscall_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/digest"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sqscall"
)

// For any status and body of an answer, Send reports an entry as stored or not stored
// only if the answer proves it.
func FuzzAnswer(f *testing.F) {
	for _, n := range []int{1, 2} {
		for _, body := range []string{
			"", "{}", "null", html, `{"status":"ok"}`, success(entries(1)[0]).String(), batchSuccess(entries(2)).String(),
			`{"__type":"com.amazonaws.sqs#QueueDoesNotExist"}`, `{"__type":"RequestThrottled"}`, `{"__type":"InternalError"}`,
			`{"Failed":[{"Id":"0","SenderFault":true,"Code":"InvalidMessageContents"},{"Id":"1","SenderFault":false,"Code":"InternalError"}]}`,
			`{"Successful":[{"Id":"0"},{"Id":"0"}],"Failed":[{"Id":"0"}]}`,
		} {
			for _, status := range []int{200, 202, 302, 400, 429, 500, 503} {
				f.Add(n == 1, status, []byte(body), "")
				f.Add(n == 1, status, []byte(body), "AccessDenied;Sender")
			}
		}
	}
	f.Fuzz(func(t *testing.T, single bool, status int, body []byte, header string) {
		n := 2
		if single {
			n = 1
		}
		c := sqscall.New(sdkClient("http://localhost", stubHTTP(func(*http.Request) (*http.Response, error) {
			r := response(status, body)
			r.Header.Set("X-Amzn-Query-Error", header)
			r.Header.Set("X-Amzn-Errortype", header)
			return r, nil
		})), queueURL)
		es := entries(n)
		answers := make([]attempt.Answer, n)
		c.Learn()
		load, err := c.Send(t.Context(), es, answers)
		worst := attempt.LoadPassed
		for i, a := range answers {
			worst = max(worst, a.Load)
			switch a.Fate {
			case attempt.FateStored:
				assert.NoError(t, a.Err)
				assert.Equal(t, 200, status)
				assert.Contains(t, unescaped(body), a.MessageID)
				assert.Contains(t, unescaped(body), a.Sequence)
				assert.NotEmpty(t, a.MessageID)
				assert.NotEmpty(t, a.Sequence)
				assert.Contains(t, unescaped(body), digest.Body(*es[i].Body))
				if md5 := digest.Attributes(es[i].Attributes); md5 != nil {
					assert.Contains(t, unescaped(body), *md5)
				}
			case attempt.FateNotStored:
				assert.Error(t, a.Err)
				assert.NotEmpty(t, bytes.TrimSpace(body))
				if status == 200 {
					assert.False(t, single)
					assert.Contains(t, unescaped(body), "Failed")
				} else {
					assert.GreaterOrEqual(t, status, 400)
					assert.Contains(t, unescaped(body), "__type")
					assert.NotEmpty(t, a.Code)
				}
			case attempt.FateAltered:
				assert.Error(t, a.Err)
				assert.Equal(t, 200, status)
				assert.Equal(t, attempt.NextFinal, a.Next)
				assert.NotEmpty(t, a.Got)
			case attempt.FateInDoubt:
				assert.Error(t, a.Err)
				assert.NotEqual(t, attempt.NextFinal, a.Next)
				assert.NotEqual(t, attempt.LoadPassed, a.Load)
			}
			if err != nil {
				assert.NotEqual(t, attempt.FateStored, a.Fate)
			}
		}
		assert.Equal(t, worst, load)
	})
}

// unescaped returns a JSON text, followed by the text's keys and strings with their
// escapes decoded.
func unescaped(body []byte) string {
	var all bytes.Buffer
	all.Write(body)
	d := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.Token()
		if err != nil {
			return all.String()
		}
		if s, ok := token.(string); ok {
			all.WriteString("\n" + s)
		}
	}
}
