package sqsfifo

import (
	"net/url"
	"strings"
)

// arnOf returns the ARN of the queue at an AWS URL, or "" for any other URL, because only
// an AWS URL names the region.
func arnOf(queueURL string) string {
	u, err := url.Parse(queueURL)
	if err != nil {
		return ""
	}
	account, name, ok := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if !ok || account == "" || name == "" || strings.Contains(name, "/") {
		return ""
	}
	partition := "aws"
	host, ok := strings.CutSuffix(u.Hostname(), ".amazonaws.com")
	if !ok {
		if host, ok = strings.CutSuffix(u.Hostname(), ".amazonaws.com.cn"); !ok {
			return ""
		}
		partition = "aws-cn"
	}
	region := regionIn(strings.Split(host, "."))
	if region == "" {
		return ""
	}
	if strings.HasPrefix(region, "us-gov-") {
		partition = "aws-us-gov"
	}
	return strings.Join([]string{"arn", partition, "sqs", region, account, name}, ":")
}

// regionIn returns the region of an SQS host, or "". labels are the parts of the host
// name before the domain of AWS. The forms are sqs.REGION, sqs-fips.REGION,
// ID.sqs.REGION.vpce and the old form REGION.queue. The old form for us-east-1 is the
// label "queue" alone.
func regionIn(labels []string) string {
	switch n := len(labels); {
	case n == 2 && (labels[0] == "sqs" || labels[0] == "sqs-fips"):
		return labels[1]
	case n == 2 && labels[1] == "queue":
		return labels[0]
	case n == 1 && labels[0] == "queue":
		return "us-east-1"
	case n == 4 && labels[1] == "sqs" && labels[3] == "vpce":
		return labels[2]
	}
	return ""
}
