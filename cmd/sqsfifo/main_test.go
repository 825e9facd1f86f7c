package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shell runs the command in this process, with arguments and standard input as from a
// shell. It returns both outputs and the exit code.
func shell(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, err strings.Builder
	code = run(t.Context(), args, stdio{strings.NewReader(stdin), &out, &err})
	return out.String(), err.String(), code
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{nil, 2, "", `see "sqsfifo --help"`},
		{[]string{"-h"}, 0, "Usage: sqsfifo <command>", ""},
		{[]string{"simulate", "-h"}, 0, "--replay", ""},
		{[]string{"serve", "-h"}, 0, "--addr", ""},
		{[]string{"vet", "-h"}, 0, "--format", ""},
		{[]string{"explain", "-h"}, 0, "Usage: sqsfifo explain", ""},
		{[]string{"simulte"}, 2, "", `no command "simulte"; did you mean "simulate"?`},
		{[]string{"simulate", "--replya", "3m"}, 2, "", `unknown flag --replya, did you mean "--replay"?`},
		{[]string{"simulate", "testdata/forbidden.jsonl", "--fail-on", "none"}, 0, "delivered", ""},
		{[]string{"simulate", "-fail-on=none", "testdata/forbidden.jsonl"}, 0, "delivered", ""},
		{[]string{"simulate", "--", "-fail-on=none"}, 2, "", "open -fail-on=none"},
		{[]string{"simulate", "--no"}, 2, "", "--no"},
		{[]string{"simulate", "--replay", "soon"}, 2, "", "soon"},
		{[]string{"simulate", "--replay=-3m"}, 2, "", "above zero"},
		{[]string{"simulate", "--scope", "galaxy"}, 2, "", `--scope must be one of "queue","messageGroup" but got "galaxy"`},
		{[]string{"simulate", "no such file"}, 2, "", "no such file"},
		{[]string{"vet", "--format", "xml", "./no-such-package"}, 2, "", `no format "xml"`},
		{[]string{"vet", "--disable", "SF999"}, 2, "", "SF999"},
		{[]string{"vet", "--fail-on", "info"}, 2, "", `must be one of "error","warning","never" but got "info"`},
		{[]string{"vet", "--enable", "SF999"}, 2, "", "SF999"},
		{[]string{"vet", "--nondet", "New"}, 2, "", "--nondet"},
		{[]string{"explain", "--no"}, 2, "", "--no"},
		{[]string{"serve", "queue"}, 2, "", `unexpected argument "queue"`},
		{[]string{"serve", "--queue", "a b"}, 2, "", "Name"},
		{[]string{"serve", "--addr", "0.0.0.0:0"}, 2, "", "--allow-remote"},
		{[]string{"serve", "--addr", ":0"}, 2, "", "--allow-remote"},
		{[]string{"serve", "--addr", "example.org:0"}, 2, "", "--allow-remote"},
		{[]string{"serve", "--addr", "nonsense"}, 2, "", "--addr"},
	} {
		stdout, stderr, code := shell(t, "", tc.args...)
		assert.Equal(t, tc.code, code, "%q", tc.args)
		assert.Contains(t, stdout, tc.stdout, "%q", tc.args)
		assert.Contains(t, stderr, tc.stderr, "%q", tc.args)
		if tc.stdout == "" {
			assert.Empty(t, stdout, "%q", tc.args)
		}
	}
}

// The log has two messages with the same body and different attributes. SQS suppresses
// the second message, so it is lost.
func TestSimulateTable(t *testing.T) {
	stdout, stderr, code := shell(t, "", "simulate", "testdata/forbidden.jsonl")
	assert.Equal(t, 1, code)
	assert.Equal(t, `#  line                        sent                      group   deduplication id  outcome
1  testdata/forbidden.jsonl:1  2025-12-04T12:00:00.000Z  p32r29  2a1ca435d128…     delivered
2  testdata/forbidden.jsonl:2  2025-12-04T12:01:00.000Z  p32r29  2a1ca435d128…     suppressed, duplicate of #1 (testdata/forbidden.jsonl:1), which has other attributes
`, stdout)
	assert.Equal(t, "2 messages: 1 LOST, 0 with one key and two bodies, 0 delivered again, 0 refused, 0 duplicates suppressed, 1 delivered once\n", stderr)
}

func TestSimulateJSON(t *testing.T) {
	stdout, _, code := shell(t, `
{"at":"2025-12-04T12:00:00Z","group":"g","body":"a"}
{"at":"2025-12-04T12:00:00Z","body":"b"}
`, "simulate", "--json", "--replay", "1m")
	assert.Equal(t, 1, code)
	var got []outcomeLine
	for line := range strings.Lines(stdout) {
		var l outcomeLine
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		got = append(got, l)
	}
	require.Len(t, got, 4)
	assert.Equal(t, "delivered", got[0].Result)
	assert.Equal(t, "standard input", got[0].File)
	assert.Equal(t, 2, got[0].Line)
	assert.Equal(t, "refused", got[1].Result)
	assert.Contains(t, got[1].Error, "MessageGroupId")
	assert.Equal(t, "suppressed", got[2].Result)
	assert.Equal(t, 3, got[2].Number)
	assert.Equal(t, 1, got[2].DuplicateOf)
	assert.Equal(t, "2025-12-04T12:05:00Z", got[2].Until.Format(time.RFC3339))
}

func TestSimulateNamesFileAndLine(t *testing.T) {
	for line, says := range map[string]string{
		`{"at":"2025-12-04T12:00:00Z","group":"g"}`:                               "body is missing",
		`{"group":"g","body":"a"}`:                                                "at is missing",
		`{"at":"yesterday","group":"g","body":"a"}`:                               "yesterday",
		`{"at":"2025-12-04T12:00:00Z","group":"g","body":"a","delay":1}`:          "delay",
		`{"at":"2025-12-04T12:00:00Z","group":"g","body":{"n":9007199254740993}}`: "encode it as a string",
		`{"at":"2025-12-04T12:00:00Z","group":"g","body":{"n":1,"n":2}}`:          "duplicate",
		`{"at":"2025-12-04T12:00:00Z","group":"g","body":"a"}{}`:                  "trailing data",
		`at=2025-12-04`: "byte 0: want a value",
	} {
		file := filepath.Join(t.TempDir(), "events.jsonl")
		require.NoError(t, os.WriteFile(file, []byte("\n"+line+"\n"), 0o600))
		_, stderr, code := shell(t, "", "simulate", file)
		assert.Equal(t, 2, code)
		assert.Contains(t, stderr, file+":2: ", line)
		assert.Contains(t, stderr, says, line)
	}
	_, stderr, code := shell(t, `{"at":"1950-01-03T00:00:00Z","group":"g","body":"a"}`, "simulate")
	assert.Equal(t, 2, code)
	assert.Contains(t, stderr, "before 1970")
}

// If a log is sent again after three minutes, SQS suppresses all messages. After seven
// minutes, SQS delivers all messages again.
func TestSimulateReplays(t *testing.T) {
	var log strings.Builder
	for i := range 20 {
		fmt.Fprintf(&log, `{"at":"2025-12-04T12:00:%02dZ","group":"g","body":{"dedupe_key":"scene %d"}}`+"\n", i, i)
	}
	stdout, stderr, code := shell(t, log.String(), "simulate", "--replay", "3m", "--replay", "7m")
	assert.Equal(t, 0, code, "a true duplicate is no finding")
	assert.Equal(t, 40, strings.Count(stdout, " delivered\n"))
	assert.Equal(t, 20, strings.Count(stdout, " suppressed, duplicate of #"))
	assert.Contains(t, stderr, "60 messages: 0 LOST, 0 with one key and two bodies, 20 delivered again, 0 refused, 20 duplicates suppressed, 20 delivered once")
}

// TestServe starts the command serve, uses it with a real client over a real socket, and
// stops it.
func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"serve", "--addr", "127.0.0.1:0", "--queue", "scenes.fifo", "--queue", "plain"}, stdio{nil, w, os.Stderr})
		w.Close()
	}()
	printed := bufio.NewScanner(r)
	var urls []string
	for len(urls) < 3 && printed.Scan() {
		urls = append(urls, printed.Text())
	}
	require.Len(t, urls, 3)
	base, queueURL := urls[0], urls[1]
	assert.Equal(t, base+"/000000000000/scenes.fifo", queueURL)

	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &base,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
	send := func() string {
		out, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: aws.String("a"), MessageGroupId: aws.String("g")})
		require.NoError(t, err)
		return *out.MessageId
	}
	first := send()
	assert.Equal(t, first, send())

	get := func(path string) string {
		out, err := http.Get(base + path)
		require.NoError(t, err)
		defer out.Body.Close()
		text, err := io.ReadAll(out.Body)
		require.NoError(t, err)
		return string(text)
	}
	assert.Contains(t, get("/_sqsfifo/window"), first)
	assert.Contains(t, get("/_sqsfifo/suppressed"), first)
	out, err := http.Post(base+"/_sqsfifo/clock", "application/json", strings.NewReader(`{"advance_seconds": 301}`))
	require.NoError(t, err)
	out.Body.Close()
	assert.NotEqual(t, first, send(), "the window is over")

	stop()
	assert.Equal(t, 0, <-code)
	_, err = http.Get(base)
	require.Error(t, err)
}
