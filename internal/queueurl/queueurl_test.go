package queueurl_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/queueurl"
)

func TestQueueURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo":               "arn:aws:sqs:eu-central-1:123456789012:scenes.fifo",
		"https://sqs-fips.us-east-2.amazonaws.com/123456789012/scenes.fifo":             "arn:aws:sqs:us-east-2:123456789012:scenes.fifo",
		"https://eu-central-1.queue.amazonaws.com/123456789012/scenes.fifo":             "arn:aws:sqs:eu-central-1:123456789012:scenes.fifo",
		"https://queue.amazonaws.com/123456789012/scenes.fifo":                          "arn:aws:sqs:us-east-1:123456789012:scenes.fifo",
		"https://vpce-0a-1b.sqs.eu-west-1.vpce.amazonaws.com/123456789012/scenes.fifo":  "arn:aws:sqs:eu-west-1:123456789012:scenes.fifo",
		"https://sqs.cn-north-1.amazonaws.com.cn/123456789012/scenes.fifo":              "arn:aws-cn:sqs:cn-north-1:123456789012:scenes.fifo",
		"https://sqs.us-gov-west-1.amazonaws.com/123456789012/scenes.fifo":              "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:scenes.fifo",
		"http://127.0.0.1:9324/000000000000/scenes.fifo":                                "",
		"https://sqs.eu-central-1.amazonaws.com.example.org/123456789012/scenes.fifo":   "",
		"http://sqs.us-east-1.localhost.localstack.cloud:4566/000000000000/scenes.fifo": "",
		"https://elsewhere.sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo":     "",
		"%": "",
	} {
		assert.Equal(t, want, queueurl.ARN(url), url)
		region := ""
		if want != "" {
			region = strings.Split(want, ":")[3]
		}
		assert.Equal(t, region, queueurl.Region(url), url)
	}
	for _, path := range []string{"", "/", "/scenes.fifo", "/123456789012/", "/123456789012/team/scenes.fifo"} {
		url := "https://sqs.eu-central-1.amazonaws.com" + path
		assert.Empty(t, queueurl.ARN(url), url)
		assert.Equal(t, "eu-central-1", queueurl.Region(url), url)
	}
}
