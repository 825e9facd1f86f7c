// Command send compares the producer with hand-written loops that call SendMessageBatch
// of the SDK. The producer and the loops take turns in one process: each sends a slice of
// events in each round. The output has the medians of the slices, the medians of each
// round's ratios to the first loop, and the targets. The fake SQS runs in another process,
// or answers come from memory, without a network. Three more parts measure the producer
// alone: under faults, under random throttles (both compared with no faults), and under a
// quota.
//
// It exits with 1 if a target is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

func main() {
	if config, ok := os.LookupEnv(serverEnv); ok {
		if err := serve(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}
	n := flag.Int("n", 10_000, "events of a slice")
	rounds := flag.Int("rounds", 24, "rounds to take the median of")
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
	fmt.Printf("%s, slices of %d events, %d rounds, medians\n", runtime.Version(), n, rounds)
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
