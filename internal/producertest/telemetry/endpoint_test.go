package telemetry

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
	"github.com/aws/smithy-go/middleware"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
)

const (
	localURL   = "http://localhost:4566/000000000000/scenes.fifo"
	awsURL     = "https://sqs.eu-central-1.amazonaws.com/123456789012/scenes.fifo"
	chineseURL = "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/scenes.fifo"
)

// requested notes the hosts of a client's requests and lets each request fail.
type requested struct{ hosts []string }

func (c *requested) Do(r *http.Request) (*http.Response, error) {
	c.hosts = append(c.hosts, r.URL.Host)
	return nil, errors.New("no network")
}

// wrapped is a client of another type than *sqs.Client.
type wrapped struct{ *sqs.Client }

type resolver struct{}

func (resolver) ResolveEndpoint(context.Context, sqs.EndpointParameters) (smithyendpoints.Endpoint, error) {
	u, err := url.Parse("http://proxy.example")
	return smithyendpoints.Endpoint{URI: *u}, err
}

func clientOf(change func(*sqs.Options)) (*sqs.Client, *requested) {
	c := &requested{}
	return sqs.New(sqs.Options{Region: "eu-central-1", HTTPClient: c, Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1}, change), c
}

// A mistake in the settings of the client that no retry heals: Preflight and the first
// event say it at once, without a request.
func TestMisconfiguredClient(t *testing.T) {
	base := func(endpoint string) func(*sqs.Options) {
		return func(o *sqs.Options) { o.BaseEndpoint = &endpoint }
	}
	region := func(r string) func(*sqs.Options) { return func(o *sqs.Options) { o.Region = r } }
	for name, tc := range map[string]struct {
		url    string
		change func(*sqs.Options)
		want   string
	}{
		"no region":                    {awsURL, region(""), "no region"},
		"a region that is none":        {awsURL, region("eu central 1"), `region "eu central 1" is not`},
		"a region that is none, local": {localURL, func(o *sqs.Options) { base("http://localhost:4566")(o); o.Region = "eu_central_1" }, "is not the name of a region"},
		"an endpoint without a scheme": {localURL, base("localhost:4566"), "BaseEndpoint is not a URL"},
		"an endpoint without a host":   {localURL, base("http://"), "BaseEndpoint is not a URL"},
		"an endpoint that is no URL":   {localURL, base("http://me:secret@local host"), "BaseEndpoint is not a URL"},
		"an endpoint with FIPS": {localURL, func(o *sqs.Options) {
			base("http://h")(o)
			o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled
		}, "FIPS and custom endpoint"},
		"a local URL without endpoint":  {localURL, region("eu-central-1"), "AWS_ENDPOINT_URL_SQS to http://localhost:4566"},
		"an emulator's host":            {"http://sqs.us-east-1.localhost.localstack.cloud:4566/1/s.fifo", region("us-east-1"), "sends to sqs.us-east-1.amazonaws.com"},
		"another region":                {awsURL, region("eu-west-1"), "in the region eu-central-1, and the client sends to sqs.eu-west-1.amazonaws.com"},
		"another partition":             {chineseURL, region("eu-west-1"), "in the region cn-north-1"},
		"another region, VPC endpoint":  {"https://vpce-0a-1b.sqs.eu-west-1.vpce.amazonaws.com/1/s.fifo", region("eu-central-1"), "in the region eu-west-1"},
		"another region, the old shape": {"https://queue.amazonaws.com/1/s.fifo", region("eu-central-1"), "in the region us-east-1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, requests := clientOf(tc.change)
				c := producertest.Config()
				c.QueueURL = tc.url
				var log logBuffer
				c.Telemetry.Logger = log.logger()
				p, err := sqsfifo.NewProducer(client, c)
				require.NoError(t, err)
				began := time.Now()
				_, err = p.Preflight(t.Context())
				_, sendErr := p.Send(t.Context(), producertest.Sample)
				for _, err := range []error{err, sendErr} {
					var wrong *sqsfifo.QueueError
					require.ErrorAs(t, err, &wrong)
					assert.Equal(t, tc.url, wrong.QueueURL)
					assert.ErrorContains(t, err, tc.want)
					assert.NotContains(t, err.Error(), "secret")
				}
				assert.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(sendErr))
				assert.Zero(t, time.Since(began))
				require.NoError(t, p.Close(t.Context()))
				assert.Empty(t, requests.hosts)
				require.Len(t, log.lines(), 1)
				assert.Contains(t, log.lines()[0], "check the configuration")
			})
		})
	}
}

// Right clients of each kind make the request, also those whose endpoint this module cannot
// know.
func TestConfiguredClient(t *testing.T) {
	for name, tc := range map[string]struct {
		url    string
		change func(*sqs.Options)
		host   string
	}{
		"AWS":                {awsURL, func(*sqs.Options) {}, "sqs.eu-central-1.amazonaws.com"},
		"AWS, capitals":      {"https://SQS.eu-central-1.amazonaws.com:443/1/s.fifo", func(*sqs.Options) {}, "sqs.eu-central-1.amazonaws.com"},
		"AWS, the old shape": {"https://eu-central-1.queue.amazonaws.com/1/s.fifo", func(*sqs.Options) {}, "sqs.eu-central-1.amazonaws.com"},
		"AWS, VPC endpoint":  {"https://vpce-0a-1b.sqs.eu-central-1.vpce.amazonaws.com/1/s.fifo", func(*sqs.Options) {}, "sqs.eu-central-1.amazonaws.com"},
		"dual stack":         {awsURL, func(o *sqs.Options) { o.EndpointOptions.UseDualStackEndpoint = aws.DualStackEndpointStateEnabled }, "sqs.eu-central-1.api.aws"},
		"FIPS": {"https://sqs.us-east-2.amazonaws.com/1/s.fifo", func(o *sqs.Options) {
			o.Region = "us-east-2"
			o.EndpointOptions.UseFIPSEndpoint = aws.FIPSEndpointStateEnabled
		}, "sqs-fips.us-east-2.amazonaws.com"},
		"FIPS, an old region":     {"https://sqs.us-east-2.amazonaws.com/1/s.fifo", func(o *sqs.Options) { o.Region = "fips-us-east-2" }, "sqs-fips.us-east-2.amazonaws.com"},
		"China":                   {chineseURL, func(o *sqs.Options) { o.Region = "cn-north-1" }, "sqs.cn-north-1.amazonaws.com.cn"},
		"GovCloud":                {"https://sqs.us-gov-west-1.amazonaws.com/1/s.fifo", func(o *sqs.Options) { o.Region = "us-gov-west-1" }, "sqs.us-gov-west-1.amazonaws.com"},
		"BaseEndpoint":            {localURL, func(o *sqs.Options) { o.BaseEndpoint = aws.String("http://127.0.0.1:4566") }, "127.0.0.1:4566"},
		"BaseEndpoint, no region": {localURL, func(o *sqs.Options) { o.Region, o.BaseEndpoint = "", aws.String("http://127.0.0.1:4566") }, "127.0.0.1:4566"},
		"BaseEndpoint, AWS's URL": {awsURL, func(o *sqs.Options) { o.Region, o.BaseEndpoint = "us-east-1", aws.String("http://127.0.0.1:4566") }, "127.0.0.1:4566"},
		"a step of its own": {localURL, func(o *sqs.Options) {
			o.APIOptions = append(o.APIOptions, func(*middleware.Stack) error { return nil })
		}, "sqs.eu-central-1.amazonaws.com"},
		"a resolver": {localURL, func(o *sqs.Options) { o.EndpointResolverV2 = resolver{} }, "proxy.example"},
		//lint:ignore SA1019 a program may still use the old resolver
		"an old resolver": {localURL, func(o *sqs.Options) { o.EndpointResolver = sqs.EndpointResolverFromURL("http://old.example") }, "old.example"},
	} {
		t.Run(name, func(t *testing.T) {
			client, requests := clientOf(tc.change)
			c := producertest.Config()
			c.QueueURL = tc.url
			p, err := sqsfifo.NewProducer(client, c)
			require.NoError(t, err)
			_, err = p.Preflight(t.Context())
			require.ErrorContains(t, err, "no network")
			assert.Equal(t, []string{tc.host}, requests.hosts)
		})
	}
	client, requests := clientOf(func(*sqs.Options) {})
	c := producertest.Config()
	c.QueueURL = localURL
	p, err := sqsfifo.NewProducer(wrapped{client}, c)
	require.NoError(t, err)
	_, err = p.Preflight(t.Context())
	require.ErrorContains(t, err, "no network", "a wrapper may send elsewhere")
	assert.Len(t, requests.hosts, 1)
}
