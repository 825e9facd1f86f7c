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
	partition = "aws"
	labels, ok := strings.CutSuffix(host, ".amazonaws.com")
	if !ok {
		if labels, ok = strings.CutSuffix(host, ".amazonaws.com.cn"); !ok {
			return "", ""
		}
		partition = "aws-cn"
	}
	region = regionIn(strings.Split(labels, "."))
	if strings.HasPrefix(region, "us-gov-") {
		partition = "aws-us-gov"
	}
	return partition, region
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
