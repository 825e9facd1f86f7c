package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/require"

	sdk "github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// BenchmarkSend prints the events per second of a loop of single requests, of "sqsfifo
// send" without a journal, and of "sqsfifo send" with a journal. SQSFIFO_SEND_EVENTS
// sets the number of events; after-10ms sends a twentieth of this number.
func BenchmarkSend(b *testing.B) {
	events := 20_000
	if text := os.Getenv("SQSFIFO_SEND_EVENTS"); text != "" {
		var err error
		events, err = strconv.Atoi(text)
		require.NoError(b, err)
	}
	b.Run("at-once", func(b *testing.B) { benchmarkSend(b, events, 0) })
	// AWS answers after about 10 ms in the same region.
	b.Run("after-10ms", func(b *testing.B) { benchmarkSend(b, events/20, 10*time.Millisecond) })
}

func benchmarkSend(b *testing.B, events int, delay time.Duration) {
	file := numbered(b, events, 1000)
	flags := append([]string{file, "--time", "2025-12-04T12:00:00Z"}, numberedFlags...)
	messages := built(b, flags)
	timed := func(send func(*served)) time.Duration {
		s := startServed(b, sqstest.Config{})
		s.delay = delay
		began := time.Now()
		send(s)
		took := time.Since(began)
		require.Len(b, s.queue.Messages(), events)
		return took
	}
	var single, plain, durable time.Duration
	for b.Loop() {
		single += timed(func(s *served) { oneCallEach(b, s, messages) })
		plain += timed(func(s *served) { benchSend(b, append(flags, "--queue-url", s.url)...) })
		durable += timed(func(s *served) {
			benchSend(b, append(flags, "--queue-url", s.url, "--journal", filepath.Join(b.TempDir(), "journal.db"))...)
		})
	}
	total := float64(events) * float64(b.N)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(total/single.Seconds(), "loop-events/s")
	b.ReportMetric(total/plain.Seconds(), "send-events/s")
	b.ReportMetric(total/durable.Seconds(), "journal-events/s")
	b.ReportMetric(single.Seconds()/plain.Seconds(), "send-ratio")
	b.ReportMetric(single.Seconds()/durable.Seconds(), "journal-ratio")
}

func benchSend(b *testing.B, args ...string) {
	b.Helper()
	var errs strings.Builder
	code := run(b.Context(), append([]string{"send"}, args...), stdio{strings.NewReader(""), io.Discard, &errs})
	require.Zero(b, code, "%s", &errs)
}

// built returns the messages that the command builds with the flags.
func built(b *testing.B, flags []string) []*sdk.Message {
	b.Helper()
	var out, errs strings.Builder
	code := run(b.Context(), append([]string{"send", "--dry-run"}, flags...), stdio{strings.NewReader(""), &out, &errs})
	require.Zero(b, code, "%s", &errs)
	var messages []*sdk.Message
	for line := range strings.Lines(out.String()) {
		m := new(sdk.Message)
		require.NoError(b, json.Unmarshal([]byte(line), m))
		messages = append(messages, m)
	}
	return messages
}

// oneCallEach sends each message by one request, one after another.
func oneCallEach(b *testing.B, s *served, messages []*sdk.Message) {
	b.Helper()
	base := strings.TrimSuffix(s.url, "/"+sqstest.Account+"/"+s.queue.Name())
	client := sqs.New(sqs.Options{
		Region: "us-east-1", BaseEndpoint: &base,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "any", SecretAccessKey: "any"}, nil
		}),
	})
	for _, m := range messages {
		_, err := client.SendMessage(b.Context(), &sqs.SendMessageInput{QueueUrl: &s.url, MessageBody: &m.Body, MessageGroupId: &m.Group})
		require.NoError(b, err)
	}
}
