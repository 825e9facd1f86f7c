package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// localClient is the Go snippet of docs/guide/local.md. The environment has the endpoint.
func localClient(ctx context.Context) (*sqs.Client, error) {
	cfg, err := config.LoadDefaultConfig(ctx) // reads AWS_ENDPOINT_URL_SQS
	if err != nil {
		return nil, err
	}
	return sqsfifo.NewClient(cfg), nil
}

// endpointClient is the other Go snippet of docs/guide/local.md. The code has the endpoint.
func endpointClient(endpoint string) *sqs.Client {
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("any", "any", "")}
	return sqsfifo.NewClient(cfg, func(o *sqs.Options) { o.BaseEndpoint = &endpoint })
}

// The Go snippets of the guide reach the fake queue of "sqsfifo serve".
func TestLocalClients(t *testing.T) {
	address, stop := startServe(t)
	address = "http://" + address
	t.Setenv("AWS_ENDPOINT_URL_SQS", address)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "any")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "any")
	fromEnvironment, err := localClient(t.Context())
	require.NoError(t, err)
	for _, client := range []*sqs.Client{fromEnvironment, endpointClient(address)} {
		out, err := client.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("events.fifo")})
		require.NoError(t, err)
		assert.Equal(t, address+"/000000000000/events.fifo", *out.QueueUrl)
	}
	assert.Zero(t, stop())
}

// Suites written for LocalStack run with another URL: one in Go, one in Python with boto3, a
// shell script with curl.
func TestSuitesForLocalStack(t *testing.T) {
	address, stop := startServe(t, "--no-waits")
	defer stop()
	address = "http://" + address
	t.Run("Go", func(t *testing.T) {
		client := endpointClient(address)
		for range 2 {
			created, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("events-test.fifo"), Attributes: map[string]string{"FifoQueue": "true"}})
			require.NoError(t, err)
			for range 2 {
				sent, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: created.QueueUrl, MessageBody: aws.String("a"), MessageGroupId: aws.String("g"), MessageDeduplicationId: aws.String("1")})
				require.NoError(t, err)
				received, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: created.QueueUrl, WaitTimeSeconds: 1})
				require.NoError(t, err)
				require.Len(t, received.Messages, 1)
				assert.Equal(t, sent.MessageId, received.Messages[0].MessageId)
				_, err = client.PurgeQueue(t.Context(), &sqs.PurgeQueueInput{QueueUrl: created.QueueUrl})
				require.NoError(t, err)
			}
			_, err = client.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: created.QueueUrl})
			require.NoError(t, err)
		}
	})
	for program, args := range map[string][]string{"sh": {"suite.sh"}, "python3": {"suite.py"}} {
		t.Run(program, func(t *testing.T) {
			if testing.Short() {
				t.Skip("starts an interpreter; the long tests run it")
			}
			if program == "python3" && exec.CommandContext(t.Context(), program, "-c", "import boto3").Run() != nil { // #nosec G204 -- a program of the test
				t.Skip("boto3 is not installed: pip install boto3")
			}
			cmd := exec.CommandContext(t.Context(), program, args...) // #nosec G204 -- a program of the test
			cmd.Dir = "testdata/localstack"
			cmd.Env = append(os.Environ(), "LOCALSTACK_ENDPOINT="+address)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// The integration suite of bbc/sqs-consumer passes all its scenarios. The suite needs port
// 9324, git and npm. SQSFIFO_SQS_CONSUMER may name a checkout, whose packages are installed.
func TestSQSConsumer(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads packages")
	}
	if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:9324"); err != nil {
		t.Skip("port 9324 is taken:", err)
	} else {
		require.NoError(t, l.Close())
	}
	dir := os.Getenv("SQSFIFO_SQS_CONSUMER")
	run := func(line string) ([]byte, error) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line) // #nosec G204 -- a command of the test
		cmd.Dir = dir
		return cmd.CombinedOutput()
	}
	if dir == "" {
		dir = t.TempDir()
		for _, line := range []string{
			"git clone -q --depth 1 --branch v15.0.1 https://github.com/bbc/sqs-consumer .",
			"npm ci --no-audit --no-fund --ignore-scripts && npx tsc -b tsconfig.cjs.json tsconfig.esm.json && npm run add-package-jsons",
		} {
			if out, err := run(line); err != nil {
				t.Skipf("sqs-consumer cannot be had: %v: %s", err, out)
			}
		}
	}
	_, stop := startServe(t, "--no-waits", "--addr", "127.0.0.1:9324", "--queue", "sqs-consumer-data")
	defer stop()
	out, err := run("npx cucumber-js --config test/config/cucumber.mjs --format summary")
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "10 scenarios (10 passed)")
}
