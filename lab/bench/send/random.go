package main

import (
	"context"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// randomThrottles measures how much slower a producer is if the server has no quota but
// throttles some calls at random, or answers some calls with 503. It also measures a burst
// of which the first call is throttled.
func randomThrottles(ctx context.Context, n, rounds int) (missed int, err error) {
	missed, err = compare(ctx, n, rounds, "latency 5 ms, 10,000 groups, OrderStrict", 10_000, sqsfifo.OrderStrict, []*condition{
		{name: "none"},
		{name: "0.1 % of calls throttled", faults: faults{Throttled: 0.001}, least: 0.95},
		{name: "1 % of calls throttled", faults: faults{Throttled: 0.01}, least: 0.85},
		{name: "25 % of calls answered with 503", faults: faults{Unavailable: 0.25}, least: 0.2},
	})
	if err != nil {
		return 0, err
	}
	m, err := compare(ctx, min(n, 5_000), rounds, "a burst of 5,000 events, latency 5 ms, 10,000 groups, OrderStrict", 10_000, sqsfifo.OrderStrict, []*condition{
		{name: "none"},
		{name: "first call throttled", faults: faults{ThrottleNext: true}, least: 0.5},
	})
	return missed + m, err
}
