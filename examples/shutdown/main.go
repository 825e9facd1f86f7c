// Command shutdown sends river gauge readings until it is interrupted, and then reports
// the outcome of each reading.
//
// Problem: Kubernetes, ECS and others kill a process some seconds after SIGTERM. If the sends
// use the signal's context, the signal withdraws the events in flight. If the program waits
// for an empty buffer, it never ends while the queue does not answer. If the program exits
// immediately, the outcome of some events is unknown.
//
// Guarantee: each reading taken from the source has exactly one outcome before the
// process ends. However the queue behaves, the process ends at most about a second after the
// grace period. The outcomes are JSON lines on standard output. In production, keep them in a
// place that the next start of the program reads (see examples/outbox).
//
//	shutdown                              to a fake queue in this process; stop with Ctrl-C
//	shutdown -queue-url https://sqs... .  to a real queue
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "shutdown:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("shutdown", flag.ContinueOnError)
	flags.SetOutput(log)
	queueURL := flags.String("queue-url", "", "URL of a FIFO queue; a fake queue in this process if empty")
	grace := flags.Duration("grace", 5*time.Second, "how long events under way may take after the signal")
	if err := flags.Parse(args); err != nil {
		return err
	}
	client, err := connect(ctx, queueURL)
	if err != nil {
		return err
	}
	producer, err := newProducer(client, *queueURL)
	if err != nil {
		return err
	}
	if _, err := producer.Preflight(ctx); err != nil {
		return err
	}

	o := &outcomes{out: json.NewEncoder(out), fates: map[sqsfifo.Fate]int{}}
	fmt.Fprintln(log, "sending; stop with Ctrl-C")
	err = forward(ctx, producer, readings(&o.taken), *grace, o.report)
	fmt.Fprintln(log, o)
	return err
}

func connect(ctx context.Context, queueURL *string) (sqsfifo.Client, error) {
	if *queueURL == "" {
		fake, err := sqstest.NewQueue(sqstest.Config{Name: "gauges.fifo"})
		if err != nil {
			return nil, err
		}
		*queueURL = fake.URL()
		return fake, nil
	}
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	return sqsfifo.NewClient(c), nil
}

// readings reads twenty gauges in turn until the caller stops, and counts the readings.
func readings(taken *int) iter.Seq[Reading] {
	return func(yield func(Reading) bool) {
		for {
			r := Reading{Gauge: fmt.Sprintf("gauge-%02d", *taken%20), At: time.Now().UTC(), Height: 1000 + *taken}
			*taken++
			if !yield(r) {
				return
			}
			time.Sleep(200 * time.Microsecond)
		}
	}
}

// outcomes writes the outcome of each river gauge reading, and counts the outcomes.
type outcomes struct {
	taken int

	mu    sync.Mutex
	out   *json.Encoder
	fates map[sqsfifo.Fate]int
}

// outcome is one line of the output.
type outcome struct {
	Height int    `json:"height_mm"`
	Fate   string `json:"fate"`

	// ResendBefore is set if the outcome is unknown. Until this time the next start of
	// the program may send the reading again: if the first send succeeded, SQS still
	// recognises the second.
	ResendBefore *time.Time `json:"resend_before,omitempty"`
}

func (o *outcomes) report(r Reading, err error) {
	line := outcome{Height: r.Height, Fate: sqsfifo.FateOf(err).String()}
	var doubt *sqsfifo.InDoubtError
	if errors.As(err, &doubt) {
		line.ResendBefore = &doubt.ResendBefore
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fates[sqsfifo.FateOf(err)]++
	_ = o.out.Encode(line) // ignore a write error; the outcome is counted already
}

func (o *outcomes) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Sprintf("%d readings: %d stored, %d not stored, %d in doubt, %d altered",
		o.taken, o.fates[sqsfifo.FateStored], o.fates[sqsfifo.FateNotStored], o.fates[sqsfifo.FateInDoubt], o.fates[sqsfifo.FateAltered])
}
