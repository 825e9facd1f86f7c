// Command send compares the producer with hand-written loops that call SendMessageBatch
// of the SDK. A fake SQS runs in another process. The producer and the loops take turns.
// For each, the output has the medians, their ratios to the first loop's medians, and the
// targets. Three more parts measure the producer alone: under faults, under random
// throttles (both compared with no faults), and under a quota.
//
// It exits with 1 if a target is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

func main() {
	if config, ok := os.LookupEnv(serverEnv); ok {
		if err := serve(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}
	n := flag.Int("n", 50_000, "events of a measurement")
	rounds := flag.Int("rounds", 7, "rounds to take the median of")
	quota := flag.Duration("quota", 30*time.Second, "length of the measurement against a quota")
	only := flag.String("only", strings.Join(parts, ","), "parts to run, of "+strings.Join(parts, ", "))
	work := flag.String("work", "", "run only the rows of the part send whose work contains this text")
	flag.Parse()
	missed, err := run(context.Background(), *n, *rounds, *quota, *work, strings.Split(*only, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if missed > 0 {
		fmt.Printf("\n%d missed\n", missed)
		os.Exit(1)
	}
}

var parts = []string{"send", "faults", "random", "quota"}

func run(ctx context.Context, n, rounds int, quota time.Duration, work string, only []string) (missed int, err error) {
	fmt.Printf("%s, %d events, %d rounds, medians; the server runs in another process\n", runtime.Version(), n, rounds)
	for _, part := range only {
		var m int
		switch part {
		case "send":
			m, err = againstLoops(ctx, n, rounds, work)
		case "faults":
			m, err = underFaults(ctx, n, rounds)
		case "random":
			m, err = randomThrottles(ctx, n, rounds)
		case "quota":
			m, err = againstQuota(ctx, 300, quota)
		default:
			err = fmt.Errorf("no part %q; there are %s", part, strings.Join(parts, ", "))
		}
		if err != nil {
			return 0, err
		}
		missed += m
	}
	return missed, nil
}

// side is one of the compared ways to send the same events: a hand-written loop, or a
// producer with certain options. The first side is a loop.
type side struct {
	name  string
	plain bool // uses the SDK's default client
	send  func(ctx context.Context, client *sqs.Client, queue string, events []Scene) error
	least float64 // minimum rate relative to the first side; 0 means no target
	// most is the maximum processor time relative to the first side; 0 means no target. A
	// target also forbids more allocations per event than on the first side.
	most float64
	// bound is the highest rate that the order within groups permits, in messages/s; 0
	// means unknown.
	bound  float64
	wall   []float64
	cpu    []float64
	allocs []float64
}

func rawSide(name string, workers int) *side {
	return &side{name: name, send: func(ctx context.Context, c *sqs.Client, queue string, events []Scene) error {
		return raw(ctx, c, queue, events, workers)
	}}
}

func plainSide(name string, workers int) *side {
	s := rawSide(name, workers)
	s.plain = true
	return s
}

func ourSide(name string, least, most float64, d sqsfifo.Delivery) *side {
	return &side{name: name, least: least, most: most, send: func(ctx context.Context, c *sqs.Client, queue string, events []Scene) error {
		return ours(ctx, c, queue, events, d)
	}}
}

// boundBy sets the field `bound`. The side cannot exceed this rate, because each message
// of a group waits for the answer to the previous message. The target (the field
// `least`) may be above the bound, so a rate of at least 70 % of the bound also meets
// the target.
func (s *side) boundBy(rate float64) *side {
	s.bound = rate
	return s
}

func againstLoops(ctx context.Context, n, rounds int, work string) (missed int, err error) {
	strict := sqsfifo.Delivery{InFlight: workers}
	runs := sqsfifo.Delivery{InFlight: workers, Order: sqsfifo.OrderRuns}
	fmt.Println("\n| work | side | messages/s | ratio (target) | processor time an event | ratio (target) | allocations an event |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, row := range []struct {
		name    string
		latency time.Duration
		groups  int
		sides   []*side
	}{
		{"latency 5 ms, 100 groups", 5 * time.Millisecond, 100, []*side{
			plainSide("64 workers, the SDK's client, no order", workers), rawSide("64 workers, NewClient, no order", workers),
			ourSide("OrderStrict", 0.5, 0, strict).boundBy(100 / 0.005), ourSide("OrderRuns", 0.9, 0, runs),
		}},
		{"latency 5 ms, 10,000 groups", 5 * time.Millisecond, 10_000, []*side{
			plainSide("64 workers, the SDK's client, no order", workers), rawSide("64 workers, NewClient, no order", workers),
			ourSide("OrderStrict", 0.9, 0, strict),
		}},
		{"no latency, 10,000 groups", 0, 10_000, []*side{
			plainSide("one worker, the SDK's client, no order", 1), rawSide("one worker, NewClient, no order", 1),
			ourSide("OrderStrict, one request at once", 0, 1, sqsfifo.Delivery{InFlight: 1}),
		}},
	} {
		if !strings.Contains(row.name, work) {
			continue
		}
		s, err := startServer(row.latency, 0)
		if err != nil {
			return 0, err
		}
		events := scenes(n, row.groups)
		for round := range rounds {
			for i := range row.sides { // each round begins with a different side
				side := row.sides[(round+i)%len(row.sides)]
				if err := side.measure(ctx, s, events); err != nil {
					s.Stop()
					return 0, fmt.Errorf("%s, %s: %w", row.name, side.name, err)
				}
			}
		}
		s.Stop()
		for _, side := range row.sides {
			missed += side.print(row.name, row.sides[0])
		}
	}
	return missed, nil
}

func (s *side) measure(ctx context.Context, on *server, events []Scene) error {
	client, queue := on.client(), on.queue()
	if s.plain {
		client = on.plainClient()
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := meter.ProcessorTime(), time.Now()
	if err := s.send(ctx, client, queue, events); err != nil {
		return err
	}
	n := float64(len(events))
	s.wall = append(s.wall, n/time.Since(start).Seconds())
	s.cpu = append(s.cpu, float64(meter.ProcessorTime()-cpu)/n)
	runtime.ReadMemStats(&after)
	s.allocs = append(s.allocs, float64(after.Mallocs-before.Mallocs)/n)
	// Delete the messages of this measurement. They would use memory in the server during
	// the next measurements.
	_, err := client.PurgeQueue(ctx, &sqs.PurgeQueueInput{QueueUrl: &queue})
	return err
}

func (s *side) print(row string, first *side) (missed int) {
	rate, cpu, allocs := meter.Median(s.wall), meter.Median(s.cpu), meter.Median(s.allocs)
	against := func(ratio, target float64, ok bool) string {
		switch {
		case s == first:
			return "1"
		case target == 0:
			return fmt.Sprintf("%.2f", ratio)
		case !ok:
			missed++
			return fmt.Sprintf("%.2f (%v) MISSED", ratio, target)
		}
		return fmt.Sprintf("%.2f (%v)", ratio, target)
	}
	byRate, byCPU := rate/meter.Median(first.wall), cpu/meter.Median(first.cpu)
	rateText := against(byRate, s.least, byRate >= s.least || s.bound > 0 && rate >= 0.7*s.bound)
	if s.bound > 0 {
		rateText += fmt.Sprintf("; %.2f of the %.0f that the order allows (0.7)", rate/s.bound, s.bound)
	}
	allocsText := fmt.Sprintf("%.1f", allocs)
	if s.most > 0 {
		of := meter.Median(first.allocs)
		allocsText += fmt.Sprintf(" (%.1f)", of)
		if rounded(allocs, 10) > rounded(of, 10) {
			missed++
			allocsText += " MISSED"
		}
	}
	fmt.Printf("| %s | %s | %.0f | %s | %.1f µs | %s | %s |\n", row, s.name, rate, rateText,
		cpu/1000, against(byCPU, s.most, rounded(byCPU, 100) <= s.most), allocsText)
	return missed
}

// rounded returns x rounded to a multiple of 1/unit, as the table shows it.
func rounded(x, unit float64) float64 { return math.Round(x*unit) / unit }
