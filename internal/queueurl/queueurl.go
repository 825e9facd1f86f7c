// Package queueurl reads the region and the ARN out of a queue's AWS URL, without
// requests. For any other URL, such as a fake queue's or a proxy's, the functions return
// "".
package queueurl

import (
	"net/url"
	"strings"
)

// ARN returns the ARN of the queue at an AWS URL, or "" for any other URL.
func ARN(queueURL string) string {
	u, err := url.Parse(queueURL)
	if err != nil {
		return ""
	}
	account, name, ok := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if !ok || account == "" || name == "" || strings.Contains(name, "/") {
		return ""
	}
	partition, region := place(u.Hostname())
	if region == "" {
		return ""
	}
	return strings.Join([]string{"arn", partition, "sqs", region, account, name}, ":")
}

// Region returns the region of an AWS URL, or "" for any other URL.
func Region(queueURL string) string {
	u, err := url.Parse(queueURL)
	if err != nil {
		return ""
	}
	_, region := place(u.Hostname())
	return region
}

// place returns the AWS partition, such as aws or aws-cn, and the region of a host name of
// SQS. For any other host name, the region is "".
func place(host string) (partition, region string) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, d := range domains {
		labels, ok := strings.CutSuffix(host, "."+d.name)
		if !ok {
			continue
		}
		if region = regionIn(strings.Split(labels, ".")); region == "" {
			continue
		}
		if strings.HasPrefix(region, "us-gov-") {
			return "aws-us-gov", region
		}
		return d.partition, region
	}
	return "", ""
}

// domains has the domains of AWS and their partitions. Partition aws-us-gov has the
// domains of partition aws.
var domains = []struct{ name, partition string }{
	{"amazonaws.com", "aws"},
	{"api.aws", "aws"},
	{"amazonaws.com.cn", "aws-cn"},
	{"api.amazonwebservices.com.cn", "aws-cn"},
	{"amazonaws.eu", "aws-eusc"},
	{"api.amazonwebservices.eu", "aws-eusc"},
	{"c2s.ic.gov", "aws-iso"},
	{"api.aws.ic.gov", "aws-iso"},
	{"sc2s.sgov.gov", "aws-iso-b"},
	{"api.aws.scloud", "aws-iso-b"},
	{"cloud.adc-e.uk", "aws-iso-e"},
	{"api.cloud-aws.adc-e.uk", "aws-iso-e"},
	{"csp.hci.ic.gov", "aws-iso-f"},
	{"api.aws.hci.ic.gov", "aws-iso-f"},
}

// Domains returns the domains in which AWS has its hosts, such as amazonaws.com.
func Domains() []string {
	names := make([]string, len(domains))
	for i, d := range domains {
		names[i] = d.name
	}
	return names
}

// regionIn returns the region in a host name of SQS, or "" for any other host name. The
// labels are the parts of the host name between dots, without the domain of AWS.
func regionIn(labels []string) string {
	switch n := len(labels); {
	case n == 2 && (labels[0] == "sqs" || labels[0] == "sqs-fips"):
		return labels[1]
	case n == 2 && labels[1] == "queue":
		// old form REGION.queue
		return labels[0]
	case n == 1 && labels[0] == "queue":
		// old form of us-east-1, without the region
		return "us-east-1"
	case n == 4 && labels[1] == "sqs" && labels[3] == "vpce":
		return labels[2]
	}
	return ""
}
