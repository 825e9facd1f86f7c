package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

// side is one of the compared ways to send the same events: a hand-written loop, or a
// producer. The first side of a row is a loop. The fields of type []float64 have one value
// for each round.
type side struct {
	name string
	send func(ctx context.Context, on *server, queue string, events []Scene) error

	// Targets; 0 means no target. The first two are ratios to the first side: of the rates,
	// and of the events per processor second. The third is a number of allocations an event.
	rate, efficiency, most float64

	rates, cpu, allocs, bytes []float64
}

// loop returns a side that sends with a hand-written loop through the given client.
func loop(name string, workers int, client func(*server) *sqs.Client) *side {
	return &side{name: name, send: func(ctx context.Context, on *server, queue string, events []Scene) error {
		return raw(ctx, client(on), queue, events, workers)
	}}
}

// loops returns the loops through the SDK's client and through NewClient.
func loops(workers int) []*side {
	text := fmt.Sprintf("loop, %d workers, ", workers)
	return []*side{loop(text+"the SDK's client", workers, (*server).plainClient), loop(text+"`NewClient`", workers, (*server).client)}
}

// orders has the names of the orders.
var orders = map[sqsfifo.Order]string{sqsfifo.OrderStrict: "OrderStrict", sqsfifo.OrderRuns: "OrderRuns"}

func producer(order sqsfifo.Order, inFlight int, rate, efficiency, most float64) *side {
	return &side{name: "`" + orders[order] + "`", rate: rate, efficiency: efficiency, most: most, send: func(ctx context.Context, on *server, queue string, events []Scene) error {
		t, err := produce(ctx, on.client(), queue, events, sqsfifo.Delivery{InFlight: inFlight, Order: order}, nil)
		if err == nil && t.failed > 0 {
			err = fmt.Errorf("%d events failed, one with: %w", t.failed, t.failure)
		}
		return err
	}}
}

func againstLoops(ctx context.Context, n, rounds int, work string) (missed int, err error) {
	fmt.Println("\n| work | side | messages/s | ratio | processor time an event | events per processor second, ratio | allocations an event | bytes an event |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, row := range []struct {
		name    string
		latency time.Duration // negative: in memory, without a server
		groups  int
		sides   []*side
	}{
		{"in memory, 100 groups", -1, 100, append(loops(workers), producer(sqsfifo.OrderRuns, workers, 0, 1.4, 24))},
		{"in memory, 10,000 groups", -1, 10_000, append(loops(workers), producer(sqsfifo.OrderStrict, workers, 0, 1.4, 24))},
		{"latency 5 ms, 100 groups", 5 * time.Millisecond, 100, append(
			loops(workers), producer(sqsfifo.OrderStrict, workers, 0, 0, 0), producer(sqsfifo.OrderRuns, workers, 0.9, 1.25, 24),
		)},
		{"latency 5 ms, 10,000 groups", 5 * time.Millisecond, 10_000, append(loops(workers), producer(sqsfifo.OrderStrict, workers, 0.9, 1.25, 24))},
		{"no latency, 10,000 groups", 0, 10_000, append(loops(1), producer(sqsfifo.OrderStrict, 1, 0, 1, 0))},
	} {
		if !strings.Contains(row.name, work) {
			continue
		}
		on := inMemory()
		if row.latency >= 0 {
			if on, err = startServer(row.latency, 0); err != nil {
				return 0, err
			}
		}
		events := scenes(n, row.groups)
		for round := range rounds {
			for i := range row.sides { // each round begins with a different side
				side := row.sides[(round+i)%len(row.sides)]
				if err := side.measure(ctx, on, events); err != nil {
					_ = on.Stop()
					return 0, fmt.Errorf("%s, %s: %w", row.name, side.name, err)
				}
			}
		}
		_ = on.Stop()
		for _, side := range row.sides {
			missed += side.print(row.name, row.sides[0])
		}
	}
	return missed, nil
}

// measure sends one slice of events.
func (s *side) measure(ctx context.Context, on *server, events []Scene) error {
	queue := on.queue()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := meter.ProcessorTime(), time.Now()
	if err := s.send(ctx, on, queue, events); err != nil {
		return err
	}
	n := float64(len(events))
	s.rates = append(s.rates, n/time.Since(start).Seconds())
	s.cpu = append(s.cpu, float64(meter.ProcessorTime()-cpu)/n)
	runtime.ReadMemStats(&after)
	s.allocs = append(s.allocs, float64(after.Mallocs-before.Mallocs)/n)
	s.bytes = append(s.bytes, float64(after.TotalAlloc-before.TotalAlloc)/n)
	if on.http != nil {
		return nil
	}
	// Delete the slice's messages. They would use memory in the server during the next slices.
	_, err := on.client().PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &queue})
	return err
}

func (s *side) print(row string, first *side) (missed int) {
	// check returns the value with the target, which the value must reach.
	check := func(value, target float64, ok bool) string {
		switch {
		case target == 0:
			return fmt.Sprintf("%.2f", value)
		case !ok:
			missed++
			return fmt.Sprintf("%.2f (%v), missed", value, target)
		}
		return fmt.Sprintf("%.2f (%v)", value, target)
	}
	rate, efficiency, allocs := ratio(s.rates, first.rates), ratio(first.cpu, s.cpu), meter.Median(s.allocs)
	fmt.Printf("| %s | %s | %.0f | %s | %.1f us | %s | %s | %.0f |\n", row, s.name, meter.Median(s.rates), check(rate, s.rate, rate >= s.rate),
		meter.Median(s.cpu)/1000, check(efficiency, s.efficiency, efficiency >= s.efficiency), check(allocs, s.most, allocs <= s.most), meter.Median(s.bytes))
	return missed
}
