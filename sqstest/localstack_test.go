package sqstest_test

import (
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// NoWaits turns off the two waits of 60 s.
func TestNoWaits(t *testing.T) {
	bothAccounts(t, func(o testAccount) {
		require.NoError(o, o.server.SetDefaults(sqstest.Config{NoWaits: true}))
		for range 2 {
			d := o.create("q.fifo")
			for range 2 {
				d.sendAll("g", "1")
				require.NoError(o, d.purge())
			}
			_, err := o.DeleteQueue(o.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String("q.fifo")})
			require.NoError(o, err)
		}
	})
}

// The account is a part of URLs and ARNs. A URL with another account names no queue.
func TestAccountOfQueues(t *testing.T) {
	bothAccounts(t, func(o testAccount) {
		const account = "123456789012"
		require.NoError(o, o.server.SetDefaults(sqstest.Config{Account: account}))
		dead := o.create("dead.fifo")
		assert.Equal(o, "arn:aws:sqs:us-east-1:123456789012:dead.fifo", dead.queue.ARN())
		q := o.create("q.fifo", "RedrivePolicy", `{"deadLetterTargetArn":"`+dead.queue.ARN()+`","maxReceiveCount":"1"}`)
		assert.Equal(o, "https://sqs.us-east-1.test/123456789012/q.fifo", q.queue.URL())
		send := func(url string) error {
			_, err := o.SendMessage(o.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("a"), MessageGroupId: aws.String("g")})
			return err
		}
		require.NoError(o, send(q.queue.URL()))
		o.refused(send("https://sqs.us-east-1.test/000000000000/q.fifo"), "AWS.SimpleQueueService.NonExistentQueue", "The specified queue does not exist.")
		_, err := o.GetQueueUrl(o.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("q.fifo"), QueueOwnerAWSAccountId: aws.String("000000000000")})
		require.Error(o, err)

		// The message goes to the dead-letter queue and back to its source.
		for range 2 {
			_, err := o.ReceiveMessage(o.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("q.fifo"), VisibilityTimeout: 1})
			require.NoError(o, err)
			o.server.Advance(2 * time.Second)
		}
		_, err = o.StartMessageMoveTask(o.Context(), &sqs.StartMessageMoveTaskInput{SourceArn: aws.String(dead.queue.ARN())})
		require.NoError(o, err)
		out, err := o.ReceiveMessage(o.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String("q.fifo")})
		require.NoError(o, err)
		assert.Len(o, out.Messages, 1)
	})
	_, err := sqstest.NewQueue(sqstest.Config{Account: "12345678901"})
	require.ErrorContains(t, err, "Config.Account")
	require.ErrorContains(t, sqstest.NewServer().SetDefaults(sqstest.Config{Account: "x"}), "Config.Account")
}

// Suites written for LocalStack find its health check, its list of messages and its URLs.
func TestLocalStackPaths(t *testing.T) {
	queue := newQueue(t, sqstest.Config{})
	server := httptest.NewServer(sqstest.NewServer(queue))
	defer server.Close()
	get := func(path, accept string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		require.NoError(t, err)
		r.Header.Set("Accept", accept)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		return text(t, answer)
	}
	assert.JSONEq(t, `{"edition": "sqsfifo", "services": {"sqs": "running"}}`, get("/_localstack/health", ""))

	client := sqs.New(sqs.Options{Region: "eu-west-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{}})
	url := server.URL + "/queue/eu-west-1/000000000000/events.fifo"
	for _, body := range []string{"a", "b", "c"} {
		_, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, MessageGroupId: aws.String("g")})
		require.NoError(t, err)
	}
	received, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url})
	require.NoError(t, err)
	_, err = client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: received.Messages[0].ReceiptHandle})
	require.NoError(t, err)

	type result struct {
		ReceiveMessageResult struct {
			Message []struct {
				MessageId, MD5OfBody, Body string
				Attribute                  []struct{ Name, Value string }
			}
		}
	}
	check := func(r result) {
		t.Helper()
		messages := r.ReceiveMessageResult.Message
		require.Len(t, messages, 2)
		assert.Equal(t, "b", messages[0].Body)
		assert.Equal(t, "92eb5ffee6ae2fec3ad71c777531578f", messages[0].MD5OfBody)
		assert.Contains(t, messages[0].Attribute, struct{ Name, Value string }{string(types.MessageSystemAttributeNameMessageGroupId), "g"})
	}
	for _, path := range []string{"/_aws/sqs/messages?QueueUrl=" + url, "/_aws/sqs/messages/us-east-1/000000000000/events.fifo"} {
		var asXML result
		require.NoError(t, xml.Unmarshal([]byte(get(path, "*/*")), &asXML))
		check(asXML)
		var asJSON struct{ ReceiveMessageResponse result }
		require.NoError(t, json.Unmarshal([]byte(get(path, "application/json")), &asJSON))
		check(asJSON.ReceiveMessageResponse)
	}
	assert.Contains(t, get("/_aws/sqs/messages?QueueUrl=none", ""), "NonExistentQueue")
}

// A request for another service of AWS is refused by its name, in the form that the client
// of this service reads.
func TestOtherServicesAreNamed(t *testing.T) {
	s := sqstest.NewServer()
	for service, target := range map[string]string{"sns": "", "s3": "", "dynamodb": "DynamoDB_20120810.ListTables"} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("Action=ListTopics"))
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKID/20251204/us-east-1/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
		if target != "" {
			r.Header.Set("X-Amz-Target", target)
		} else {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		got := do(s, r)
		assert.Equal(t, 400, got.StatusCode)
		answer := text(t, got)
		assert.Contains(t, answer, "serves only SQS", answer)
		assert.Contains(t, answer, service)
		assert.Equal(t, target == "", strings.HasPrefix(answer, "<?xml"), answer)
	}
}
