package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func get(t *testing.T, address, path, accept string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
	require.NoError(t, err)
	r.Header.Set("Accept", accept)
	out, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	require.NoError(t, err)
	return out, string(text)
}

func TestServePage(t *testing.T) {
	address, stop := startServe(t)
	out, text := get(t, address, "/", "text/html")
	assert.Equal(t, 200, out.StatusCode)
	assert.Contains(t, text, "<h1>sqsfifo serve</h1>")
	_, text = get(t, address, "/", "*/*")
	assert.JSONEq(t, `{"status":"ok"}`, text)

	// An open page does not delay the end of the server.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/_sqsfifo/live", nil)
	require.NoError(t, err)
	live, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer live.Body.Close()
	begins := make([]byte, 20)
	_, err = io.ReadFull(live.Body, begins)
	require.NoError(t, err)
	assert.Contains(t, string(begins), "retry:")
	assert.Equal(t, exitFine, stop())
	_, err = io.ReadAll(live.Body)
	_ = err // the read ends with the stream, possibly with an error
}

func TestServeQueuesFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "queues.json")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	write(`[
  {"name": "dead.fifo"},
  {"name": "scenes.fifo", "attributes": {"DeduplicationScope": "messageGroup", "ContentBasedDeduplication": "false",
    "RedrivePolicy": "{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:000000000000:dead.fifo\",\"maxReceiveCount\":3}"}},
  {"name": "plain", "attributes": {"DelaySeconds": "5"}}
]`)
	address, _ := startServe(t, "--queues", file)
	_, text := call(t, address, "", "ListQueues", "{}")
	assert.Equal(t, 3, strings.Count(text, "http"), "and not events.fifo: %s", text)
	_, text = call(t, address, "", "GetQueueAttributes", `{"QueueUrl":"scenes.fifo","AttributeNames":["All"]}`)
	assert.Contains(t, text, `"DeduplicationScope":"messageGroup"`)
	assert.Contains(t, text, `"ContentBasedDeduplication":"false"`)
	assert.Contains(t, text, "dead.fifo")
	_, text = call(t, address, "", "GetQueueAttributes", `{"QueueUrl":"dead.fifo","AttributeNames":["All"]}`)
	assert.Contains(t, text, `"ContentBasedDeduplication":"true"`)

	for text, says := range map[string]string{
		`{}`:                            "--queues",
		`[{"name":"a"}] []`:             "more than one value",
		`[{"nome":"a.fifo"}]`:           "nome",
		`[{"name":"a"},{"name":"b b"}]`: `queue 2, "b b"`,
		`[{"name":"a.fifo","attributes":{"DelaySeconds":"x"}}]`: `queue 1, "a.fifo"`,
	} {
		write(text)
		_, stderr, code := shell(t, "", "serve", "--addr", "127.0.0.1:0", "--queues", file)
		assert.Equal(t, exitFailed, code, text)
		assert.Contains(t, stderr, says, text)
	}
	_, stderr, code := shell(t, "", "serve", "--queues", file+".not")
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, stderr, "no such file")
}
