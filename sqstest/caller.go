package sqstest

// Deviations from AWS in this file: all regions share one set of queues. A request's
// region affects only the ARNs of its answer.

import (
	"context"
	"net/http"
	"strings"
)

// caller has the values that an answer takes from the HTTP request itself, and not from
// the input of the operation.
type caller struct {
	base   string // address at which the client reached the server; queue URLs start with it
	region string // region in ARNs
	trace  string // value of the header X-Amzn-Trace-Id (F-143)
}

type callerKey struct{}

// callerOf returns the caller of a request over HTTP, or the defaults in the in-process
// API, which has no headers.
func callerOf(ctx context.Context) caller {
	if c, ok := ctx.Value(callerKey{}).(caller); ok {
		return c
	}
	return caller{base: endpoint, region: Region}
}

func withCaller(r *http.Request) context.Context {
	return context.WithValue(r.Context(), callerKey{}, caller{
		base:   baseOf(r),
		region: regionOf(r.Header.Get("Authorization")),
		trace:  r.Header.Get("X-Amzn-Trace-Id"),
	})
}

// baseOf returns the server's address as used by the client. Queue URLs begin with this
// address, so an SDK with a queue's URL as its endpoint reaches this server.
func baseOf(r *http.Request) string {
	scheme := r.URL.Scheme
	switch {
	case scheme != "":
	case r.TLS != nil:
		scheme = "https"
	default:
		scheme = "http"
	}
	return scheme + "://" + r.Host
}

// regionOf returns the region in the credential scope of a signature, version 4:
// Credential=KEY/DATE/REGION/sqs/aws4_request. Without a scope it returns [Region].
func regionOf(authorization string) string {
	_, scope, _ := strings.Cut(authorization, "Credential=")
	scope, _, _ = strings.Cut(scope, ",")
	parts := strings.Split(scope, "/")
	if len(parts) < 5 || !regionName(parts[len(parts)-3]) {
		return Region
	}
	return parts[len(parts)-3]
}

func regionName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 32
}

func arnOf(region, name string) string { return "arn:aws:sqs:" + region + ":" + Account + ":" + name }

// nameInARN returns the queue's name in an ARN of this account, in any region.
func nameInARN(arn string) (name string, ok bool) {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 || parts[0] != "arn" || parts[1] != "aws" || parts[2] != "sqs" || parts[4] != Account {
		return "", false
	}
	return parts[5], parts[5] != ""
}
