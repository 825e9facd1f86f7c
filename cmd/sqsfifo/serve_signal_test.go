package main

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// SIGINT ends the command immediately, although clients wait in long polls. The polls get
// no answer.
func TestInterruptEndsServe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no SIGINT that a test can send")
	}
	if testing.Short() {
		t.Skip("builds the command")
	}
	program := filepath.Join(t.TempDir(), "sqsfifo")
	built, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput() // #nosec G204
	require.NoError(t, err, "%s", built)

	serve := exec.CommandContext(t.Context(), program, "serve", "--addr", "127.0.0.1:0") // #nosec G204
	out, err := serve.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	serve.Stderr = &stderr
	require.NoError(t, serve.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "no address: %s", &stderr)
	address := lines.Text()

	const polls = 50
	written, answers := make(chan error, polls), make(chan string, polls)
	for range polls {
		go func() {
			trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) { written <- i.Err }}
			r, _ := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPost, address, strings.NewReader(`{"QueueUrl":"events.fifo","WaitTimeSeconds":20}`))
			r.Header.Set("Content-Type", "application/x-amz-json-1.0")
			r.Header.Set("X-Amz-Target", "AmazonSQS.ReceiveMessage")
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				answers <- ""
				return
			}
			answer.Body.Close()
			answers <- answer.Status
		}()
	}
	for range polls {
		require.NoError(t, <-written)
	}
	time.Sleep(100 * time.Millisecond) // time for the server to read the requests
	require.NoError(t, serve.Process.Signal(os.Interrupt))
	for range polls {
		assert.Empty(t, <-answers, "a poll was answered")
	}
	assert.NoError(t, serve.Wait(), "the exit code is not 0")
	assert.Empty(t, stderr.String())
}
