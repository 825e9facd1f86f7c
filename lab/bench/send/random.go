package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

// randomThrottles measures how much slower a producer is if the server has no quota but
// throttles some calls at random, or answers some calls with 503.
func randomThrottles(ctx context.Context, n, rounds int) (missed int, err error) {
	missed, err = compare(ctx, n, rounds, "latency 5 ms, 10,000 groups, OrderStrict", 10_000, []*condition{
		{name: "none"},
		{name: "0.1 % of calls throttled", faults: faults{Throttled: 0.001}, least: 0.95},
		{name: "1 % of calls throttled", faults: faults{Throttled: 0.01}, least: 0.85},
		{name: "25 % of calls answered with 503", faults: faults{Unavailable: 0.25}, least: 0.2},
	})
	if err != nil {
		return 0, err
	}
	m, err := throttleBeforeBurst(ctx, rounds)
	return missed + m, err
}

// burst is the number of events submitted together after the throttled event.
const burst = 5_000

// throttleBeforeBurst measures how long a burst of events takes after the server throttled
// one event, compared with a burst without a throttle.
func throttleBeforeBurst(ctx context.Context, rounds int) (missed int, err error) {
	s, err := startServer(5*time.Millisecond, 0)
	if err != nil {
		return 0, err
	}
	defer s.Stop()
	var times [2][]float64 // index 0 without the throttle, 1 with it
	for round := range rounds {
		for i := range times {
			with := (round + i) % 2
			took, err := afterOne(ctx, s, faults{ThrottleNext: with == 1})
			if err != nil {
				return 0, err
			}
			times[with] = append(times[with], took.Seconds())
		}
	}
	without, with := meter.Median(times[0]), meter.Median(times[1])
	text := "under 2"
	if with >= 2*without {
		text += ", MISSED"
		missed++
	}
	fmt.Printf("\none throttle before a burst of %d events: %.0f ms against %.0f ms without it, %.2fx (%s)\n",
		burst, 1000*with, 1000*without, with/without, text)
	return missed, nil
}

// afterOne sends one event and waits for its receipt. It then sends a burst of events and
// returns the time for the burst.
func afterOne(ctx context.Context, s *server, f faults) (took time.Duration, err error) {
	client, queue := s.client(), s.queue()
	if _, err := s.do(command{Faults: &f}); err != nil {
		return 0, err
	}
	p, err := sqsfifo.NewProducer(client, sqsfifo.Config[Scene]{
		QueueURL: queue, Source: source, Identify: identify, Delivery: sqsfifo.Delivery{InFlight: workers},
	})
	if err != nil {
		return 0, err
	}
	if _, err := p.Preflight(ctx); err != nil {
		return 0, err
	}
	events := scenes(burst+1, 10_000)
	start := time.Now()
	r, err := p.Send(ctx, events[0])
	if err != nil {
		return 0, err
	}
	if throttled := r.Attempts > 1; throttled != f.ThrottleNext {
		return 0, fmt.Errorf("the event took %d attempts", r.Attempts)
	}
	for _, e := range events[1:] {
		p.SendAsync(ctx, e, nil) // failures are reported by Close
	}
	if err := p.Close(ctx); err != nil {
		return 0, err
	}
	took = time.Since(start)
	_, err = client.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &queue})
	return took, err
}
