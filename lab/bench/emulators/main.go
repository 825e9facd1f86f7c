// Command emulators measures the messages per second that emulators of SQS accept and
// deliver over HTTP: `sqsfifo serve` against moto's server, fauxqs and goaws. Each
// emulator runs in its own process on loopback, driven by the same *sqs.Client of
// aws-sdk-go-v2. The emulators take turns. The output has the median rate of each
// emulator, and how many times faster sqsfifo serve is. The target is at least 3 times
// the rate of the fastest other emulator. If an emulator cannot be installed, it is
// skipped and the reason is printed.
//
// Client and emulator share the machine. The client's time for a message is part of every
// measurement, so the ratio of two rates is smaller than the ratio of the emulators' own
// speeds. The program also measures a bare HTTP server that stores nothing: no emulator
// can be faster. Where /proc exists, the output also has the emulator's processor time
// per message.
//
// It exits with 1 if the target is missed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

// minRatio is the target: sqsfifo serve must be at least this many times as fast as the
// fastest other emulator.
const minRatio = 3

func main() {
	if port, ok := os.LookupEnv(bareEnv); ok {
		fmt.Fprintln(os.Stderr, serveBare(port))
		os.Exit(2)
	}
	load := load{patience: 10 * time.Second}
	flag.IntVar(&load.messages, "n", 2000, "messages of a measurement")
	flag.IntVar(&load.groups, "groups", 500, "message groups")
	flag.IntVar(&load.workers, "workers", 16, "requests at a time")
	rounds := flag.Int("rounds", 5, "rounds to take the median of")
	only := flag.String("only", "moto,fauxqs,goaws", "comma-separated emulators to compare with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	missed, err := run(ctx, load, *rounds, strings.Split(*only, ","))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if missed {
		os.Exit(1)
	}
}

func run(ctx context.Context, l load, rounds int, only []string) (missed bool, err error) {
	dir, err := os.MkdirTemp("", "sqsfifo-emulators-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	var running []*emulator
	defer func() {
		for _, e := range running {
			e.stop()
		}
	}()
	for _, p := range peers {
		if p.name != ours && p.name != bare && !slices.Contains(only, p.name) {
			continue
		}
		e, err := p.start(ctx, dir)
		switch {
		case err == nil:
			running = append(running, e)
		case p.name == ours || ctx.Err() != nil:
			return false, fmt.Errorf("%s: %w", p.name, err)
		default:
			fmt.Printf("%s: skipped: %v\n", p.name, err)
		}
	}
	fmt.Printf("%s, %d processors, %d messages in %d groups, %d requests at a time, %d rounds, medians\n\n",
		runtime.Version(), runtime.NumCPU(), l.messages, l.groups, l.workers, rounds)
	for round := range rounds {
		for i := range running { // each round begins with the next emulator
			e := running[(round+i)%len(running)]
			if err := l.measure(ctx, e); err != nil && (e == running[0] || ctx.Err() != nil) {
				return false, fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	return !report(running, l), nil
}

// report prints a table for each kind of work. It returns whether the target was reached.
func report(running []*emulator, l load) (reached bool) {
	reached = true
	fmt.Println("| work | emulator | messages/s | ours is as fast (target) | processor time of the emulator a message | ours takes less |")
	fmt.Println("|---|---|---|---|---|---|")
	for _, w := range workKinds {
		best, us := 0.0, running[0].figures[w.name]
		for _, e := range running[1:] {
			if e.name != bare {
				best = max(best, meter.Median(e.figures[w.name].rates))
			}
		}
		for i, e := range running {
			f := e.figures[w.name]
			if len(f.rates) == 0 {
				if e.name == bare {
					continue
				}
				why := "fails before it"
				if f.failure != nil {
					why = "fails: " + f.failure.Error()
				}
				fmt.Printf("| %s | %s | %s | | | |\n", w.name, e.label(l), why)
				continue
			}
			rate, cpu := meter.Median(f.rates), meter.Median(f.processor)
			byRate, byProcessor := "", ""
			if i > 0 {
				ratio := meter.Median(us.rates) / rate
				byRate = fmt.Sprintf("%.2f times", ratio)
				if rate == best {
					byRate += fmt.Sprintf(" (%d)", minRatio)
					if ratio < minRatio {
						byRate += ", missed"
						reached = false
					}
				}
				byProcessor = fmt.Sprintf("%.2f times", cpu/meter.Median(us.processor))
			}
			fmt.Printf("| %s | %s | %.0f | %s | %.1f µs | %s |\n", w.name, e.label(l), rate, byRate, cpu*1e6, byProcessor)
		}
	}
	return reached
}

// label returns the emulator's name for the table. For an emulator that gets one request at
// a time, label adds the reduced load.
func (e *emulator) label(l load) string {
	if e.oneAtATime {
		return fmt.Sprintf("%s, one request at a time, %d messages", e.name, l.of(e.peer).messages)
	}
	return e.name
}
