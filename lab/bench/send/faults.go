package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// faults has the share of calls, answers or entries that fail at random. For example, 0.02
// is 2 %.
type faults struct {
	Throttled   float64 // share of the calls that are refused with RequestThrottled
	Failed      float64 // share of the calls that fail with status 500
	Lost        float64 // share of the calls that are executed but get no answer
	Entries     float64 // share of the entries that fail although their call succeeds
	Unavailable float64 // share of the sends, to all queues, that are answered with 503

	// ThrottleNext refuses the next call with RequestThrottled, in addition to the random
	// faults.
	ThrottleNext bool
}

// set applies the faults in the server.
func (f faults) set(q *sqstest.Queue, front *front, seed uint64) {
	front.unavailable.Store(math.Float64bits(f.Unavailable))
	if f.ThrottleNext {
		q.Inject(sqstest.Throttle(), 1)
	}
	q.InjectRandomly(sqstest.Throttle(), f.Throttled, seed)
	q.InjectRandomly(sqstest.ServerError(), f.Failed, seed+1000)
	q.InjectRandomly(sqstest.LoseAnswer(), f.Lost, seed+2000)
	if f.Entries > 0 { // injected last, because only the first matching fault of a call takes effect
		// #nosec G404 -- random faults of a measurement need no secure random numbers
		chosen := func(int, types.SendMessageBatchRequestEntry) bool { return rand.Float64() < f.Entries }
		q.InjectRandomly(sqstest.FailEntries("InternalError", smithy.FaultServer, chosen), 1, seed+3000)
	}
}

// condition is a server with certain faults. Each round sends the same events under each
// condition.
type condition struct {
	name   string
	faults faults
	least  float64 // target: minimum rate relative to the rate without faults

	rates     []float64
	early     []float64 // events per second until 99 % of the events had an outcome
	attempts  int
	failed    int
	overtaken int
	failure   error
	flaws     flaws
}

// underFaults measures producers with each order on a server with random faults: some calls
// fail, some entries of successful calls fail, and some calls are executed but get no answer.
func underFaults(ctx context.Context, n, rounds int) (missed int, err error) {
	for _, order := range []sqsfifo.Order{sqsfifo.OrderStrict, sqsfifo.OrderRuns} {
		m, err := compare(ctx, n, rounds, "latency 5 ms, 100 groups, "+orders[order], 100, order, []*condition{
			{name: "none"},
			{name: "3 % of entries and 2 % of calls fail, 2 % of answers are lost", faults: faults{Entries: 0.03, Failed: 0.02, Lost: 0.02}, least: 0.85},
		})
		if err != nil {
			return 0, err
		}
		missed += m
	}
	return missed, nil
}

// compare measures the conditions in turns and prints their rates, relative to the first
// condition, which has no faults. A few events fail several times in a row and finish very
// late: the column "ratio of the first 99 %" leaves them out.
func compare(ctx context.Context, n, rounds int, work string, groups int, order sqsfifo.Order, conditions []*condition) (missed int, err error) {
	s, err := startServer(5*time.Millisecond, 0)
	if err != nil {
		return 0, err
	}
	defer s.Stop()
	events := scenes(n, groups)
	for round := range rounds {
		for i := range conditions {
			c := conditions[(round+i)%len(conditions)]
			if err := c.measure(ctx, s, events, order); err != nil {
				return 0, fmt.Errorf("%s, %s: %w", work, c.name, err)
			}
		}
	}
	fmt.Printf("\n| %s; faults | messages/s | ratio (target) | ratio of the first 99 %% | attempts an event | lost | twice | out of order | overtaken | failed |\n", work)
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|")
	for _, c := range conditions {
		missed += c.print(len(events)*rounds, conditions[0])
	}
	return missed, nil
}

func (c *condition) measure(ctx context.Context, s *server, events []Scene, order sqsfifo.Order) error {
	client, queue := s.client(), s.queue()
	if _, err := s.do(command{Faults: &c.faults}); err != nil {
		return err
	}
	start := time.Now()
	var overtaken []int
	var mu sync.Mutex // guards overtaken
	t, err := produce(ctx, client, queue, events, sqsfifo.Delivery{InFlight: workers, Order: order}, func(s Scene) {
		mu.Lock()
		defer mu.Unlock()
		overtaken = append(overtaken, s.number())
	})
	if err != nil {
		return err
	}
	c.rates = append(c.rates, float64(len(events))/time.Since(start).Seconds())
	c.early = append(c.early, 0.99*float64(len(events))/t.first99.Seconds())
	c.attempts += t.attempts
	c.failed += t.failed
	c.overtaken += len(overtaken)
	if c.failure == nil {
		c.failure = t.failure
	}
	v, err := s.do(command{Events: len(events), Overtaken: overtaken})
	if err != nil {
		return err
	}
	c.flaws.Lost += v.Lost
	c.flaws.Twice += v.Twice
	c.flaws.Disorder += v.Disorder
	_, err = client.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &queue})
	return err
}

func (c *condition) print(sent int, first *condition) (missed int) {
	rate, early := "1", "1"
	if c != first {
		r := ratio(c.rates, first.rates)
		rate = fmt.Sprintf("%.2f (%v)", r, c.least)
		if r < c.least {
			rate += " MISSED"
			missed++
		}
		early = fmt.Sprintf("%.2f", ratio(c.early, first.early))
	}
	fmt.Printf("| %s | %.0f | %s | %s | %.3f | %d | %d | %d | %d | %d |\n", c.name, meter.Median(c.rates), rate, early,
		float64(c.attempts)/float64(sent), c.flaws.Lost, c.flaws.Twice, c.flaws.Disorder, c.overtaken, c.failed)
	if c.flaws != (flaws{}) || c.failed > 0 {
		missed++
		fmt.Printf("MISSED: none may be lost, twice, out of order or failed; the first failure: %v\n", c.failure)
	}
	return missed
}

// ratio divides the two measurements of each round and returns the median of the quotients.
// Other programs slow down both measurements of a round about equally.
func ratio(of, to []float64) float64 {
	ratios := make([]float64, len(of))
	for i := range of {
		ratios[i] = of[i] / to[i]
	}
	return meter.Median(ratios)
}
