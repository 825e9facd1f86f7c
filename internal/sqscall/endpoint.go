package sqscall

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"regexp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/queueurl"
)

// Misconfigured compares the settings of an *sqs.Client with a queue's URL, without a
// request. It returns "" if the client's requests can reach the queue, otherwise the wrong
// setting and the way out.
//
// The SDK sends to the client's endpoint and never to the host of the queue's URL, so with
// a BaseEndpoint any host is right. Misconfigured returns "" for clients of other types and
// with other endpoint resolvers than the SDK's.
func Misconfigured(client any, queueURL string) string {
	c, ok := client.(*sqs.Client)
	if !ok {
		return ""
	}
	o := c.Options()
	//lint:ignore SA1019 a program may still use the old resolver
	if o.EndpointResolver != nil || reflect.TypeOf(o.EndpointResolverV2) != reflect.TypeOf(sqs.NewDefaultEndpointResolverV2()) {
		return ""
	}
	switch {
	case o.Region == "" && o.BaseEndpoint == nil:
		return "the client has no region, so no endpoint; set aws.Config.Region or the variable AWS_REGION to the queue's region"
	case !regionForm.MatchString(o.Region):
		return fmt.Sprintf("the client's region %q is not the name of a region; write it like eu-central-1", o.Region)
	case o.BaseEndpoint != nil:
		if u, err := url.Parse(*o.BaseEndpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return "the client's BaseEndpoint is not a URL with a scheme and a host; write it like http://localhost:4566" // the value may have a password
		}
	}
	endpoint, err := o.EndpointResolverV2.ResolveEndpoint(context.Background(), sqs.EndpointParameters{
		Region:       aws.String(withoutFIPS.Replace(o.Region)), // the SDK removes it, too
		UseDualStack: aws.Bool(o.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled),
		UseFIPS:      aws.Bool(o.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled),
		Endpoint:     o.BaseEndpoint,
	})
	if err != nil {
		return fmt.Sprintf("the client has no endpoint: %v; correct its region, BaseEndpoint and EndpointOptions", err)
	}
	region, own := queueurl.Region(queueURL), queueurl.Region(endpoint.URI.String())
	switch u, err := url.Parse(queueURL); {
	case err != nil || o.BaseEndpoint != nil || own == region || own == "", // own is "" in partitions newer than this module
		region == "" && len(o.APIOptions) > 0: // a step of the caller may change the request's host
		return ""
	case region == "":
		return fmt.Sprintf("the host of the URL is not one of SQS, and the client sends to %s; set BaseEndpoint or AWS_ENDPOINT_URL_SQS to %s://%s, or use the URL that GetQueueUrl returns",
			endpoint.URI.Host, u.Scheme, u.Host)
	}
	return fmt.Sprintf("the queue is in the region %s, and the client sends to %s; use a client of the queue's region", region, endpoint.URI.Host)
}

// regionForm is the form of the regions for which the SDK makes requests. With a
// BaseEndpoint an empty region is enough.
var regionForm = regexp.MustCompile(`^[A-Za-z0-9.-]*$`)

// withoutFIPS removes the mark of FIPS from an old name of a region, such as
// fips-us-east-1.
var withoutFIPS = strings.NewReplacer("fips-", "", "-fips", "")
