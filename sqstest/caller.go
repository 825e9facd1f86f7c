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
	region, _ := scopeOf(r.Header.Get("Authorization"))
	return context.WithValue(r.Context(), callerKey{}, caller{
		base:   baseOf(r),
		region: region,
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

// scopeOf returns the region and the service in the credential scope of a signature,
// version 4: Credential=KEY/DATE/REGION/SERVICE/aws4_request. Without a scope the region is
// [Region] and the service is empty.
func scopeOf(authorization string) (region, service string) {
	_, scope, _ := strings.Cut(authorization, "Credential=")
	scope, _, _ = strings.Cut(scope, ",")
	parts := strings.Split(scope, "/")
	if len(parts) < 5 || !scopeName(parts[len(parts)-3]) || !scopeName(parts[len(parts)-2]) {
		return Region, ""
	}
	return parts[len(parts)-3], parts[len(parts)-2]
}

func scopeName(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= 32
}

func arnOf(region, account, name string) string {
	return "arn:aws:sqs:" + region + ":" + account + ":" + name
}

// nameInARN returns the account and the name of the queue with the ARN, in any region.
func nameInARN(arn string) (account, name string, ok bool) {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 || parts[0] != "arn" || parts[1] != "aws" || parts[2] != "sqs" {
		return "", "", false
	}
	return parts[4], parts[5], parts[5] != ""
}
