package queueurl_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/queueurl"
)

// The region of each SQS endpoint of the SDK is found, in each partition.
func TestEndpoints(t *testing.T) {
	resolver := sqs.NewDefaultEndpointResolverV2()
	for region, partition := range map[string]string{
		"us-east-1": "aws", "eu-central-1": "aws", "mx-central-1": "aws", "cn-north-1": "aws-cn", "us-gov-west-1": "aws-us-gov", "eusc-de-east-1": "aws-eusc",
		"us-iso-east-1": "aws-iso", "us-isob-east-1": "aws-iso-b", "eu-isoe-west-1": "aws-iso-e", "us-isof-south-1": "aws-iso-f",
	} {
		for _, fips := range []bool{false, true} {
			for _, dualStack := range []bool{false, true} {
				endpoint, err := resolver.ResolveEndpoint(t.Context(), sqs.EndpointParameters{Region: &region, UseFIPS: &fips, UseDualStack: &dualStack})
				require.NoError(t, err)
				url := endpoint.URI.JoinPath("123456789012", "scenes.fifo").String()
				assert.Equal(t, "arn:"+partition+":sqs:"+region+":123456789012:scenes.fifo", queueurl.ARN(url), url)
				assert.True(t, slices.ContainsFunc(queueurl.Domains(), func(domain string) bool {
					return strings.HasSuffix(endpoint.URI.Host, "."+domain)
				}), url)
			}
		}
	}
}

func TestQueueURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo":               "arn:aws:sqs:eu-central-1:123456789012:scenes.fifo",
		"https://sqs-fips.us-east-2.amazonaws.com/123456789012/scenes.fifo":             "arn:aws:sqs:us-east-2:123456789012:scenes.fifo",
		"https://eu-central-1.queue.amazonaws.com/123456789012/scenes.fifo":             "arn:aws:sqs:eu-central-1:123456789012:scenes.fifo",
		"https://queue.amazonaws.com/123456789012/scenes.fifo":                          "arn:aws:sqs:us-east-1:123456789012:scenes.fifo",
		"https://vpce-0a-1b.sqs.eu-west-1.vpce.amazonaws.com/123456789012/scenes.fifo":  "arn:aws:sqs:eu-west-1:123456789012:scenes.fifo",
		"https://sqs.cn-north-1.amazonaws.com.cn/123456789012/scenes.fifo":              "arn:aws-cn:sqs:cn-north-1:123456789012:scenes.fifo",
		"https://sqs.us-gov-west-1.amazonaws.com/123456789012/scenes.fifo":              "arn:aws-us-gov:sqs:us-gov-west-1:123456789012:scenes.fifo",
		"https://SQS.eu-central-1.AmazonAWS.com.:443/123456789012/scenes.fifo":          "arn:aws:sqs:eu-central-1:123456789012:scenes.fifo",
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
