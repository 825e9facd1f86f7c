// Command landsat announces Landsat scenes on a FIFO queue: it sends each scene,
// replays them all, and shows which messages were new and which SQS suppressed.
//
//	landsat                              seven real scenes, to a fake queue in this process
//	landsat folder                       the STAC items of a folder
//	landsat -queue-url https://sqs... .  to a real queue, credentials as usual for AWS programs
//	landsat -log                         no queue: print the messages for "sqsfifo simulate"
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "landsat:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, w io.Writer) error {
	flags := flag.NewFlagSet("landsat", flag.ContinueOnError)
	flags.SetOutput(w)
	queueURL := flags.String("queue-url", "", "URL of a FIFO queue; a fake queue in this process if empty")
	asLog := flags.Bool("log", false, "send nothing, print the messages as an event log for sqsfifo simulate")
	if err := flags.Parse(args); err != nil {
		return err
	}
	scenes, err := embeddedScenes()
	if flags.NArg() > 0 {
		scenes, err = readScenes(flags.Arg(0))
	}
	if err != nil {
		return err
	}

	client, fake, err := connect(ctx, queueURL)
	if err != nil {
		return err
	}
	reader := metric.NewManualReader()
	producer, err := newProducer(client, *queueURL, metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		return err
	}
	if *asLog {
		return printLog(w, producer, scenes)
	}
	d := demo{ctx: ctx, w: w, producer: producer}

	fmt.Fprintf(w, "queue %s\n", *queueURL)
	isNew := d.send("send", scenes)
	replayed := d.send("replay, as a crashed pipeline would", scenes)
	if fake != nil {
		fake.Advance(5 * time.Minute)
		again := d.send("replay five minutes later: the deduplication interval is over", scenes)
		d.check(isNew == len(scenes) && replayed == 0 && again == len(scenes),
			"%d, %d and %d messages were new, want %d, 0 and %[4]d", isNew, replayed, again, len(scenes))
	}
	d.mistakes(scenes[0])
	d.metrics(reader)
	return errors.Join(append(d.errs, producer.Close(ctx))...)
}

func newProducer(client sqsfifo.Client, queueURL string, meters *metric.MeterProvider) (*sqsfifo.Producer[Scene], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[Scene]{
		QueueURL:  queueURL,
		Source:    "kfm.remote-sensing.landsat-refresh",
		Identify:  identify,
		Telemetry: sqsfifo.Telemetry{MeterProvider: meters},
	})
}

// connect returns a client for the queue, or for a fake one if the URL is empty.
func connect(ctx context.Context, queueURL *string) (*sqs.Client, *sqstest.Queue, error) {
	if *queueURL == "" {
		fake, err := sqstest.NewQueue(sqstest.Config{Name: "scenes.fifo"})
		if err != nil {
			return nil, nil, err
		}
		*queueURL = fake.URL()
		return fake.Client(), fake, nil
	}
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, nil, err
	}
	return sqsfifo.NewClient(c, 10), nil, nil
}

// printLog prints a line for each scene, as if one was sent each second.
func printLog(w io.Writer, producer *sqsfifo.Producer[Scene], scenes []Scene) error {
	at := time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)
	e := json.NewEncoder(w)
	for i, s := range scenes {
		msg, err := producer.Build(s)
		if err != nil {
			return err
		}
		err = e.Encode(map[string]any{"at": at.Add(time.Duration(i) * time.Second), "group": msg.Group, "body": json.RawMessage(msg.Body)})
		if err != nil {
			return err
		}
	}
	return nil
}

// demo prints what happens and keeps what should not have.
type demo struct {
	ctx      context.Context
	w        io.Writer
	producer *sqsfifo.Producer[Scene]
	errs     []error
}

func (d *demo) check(ok bool, format string, args ...any) {
	if !ok {
		d.errs = append(d.errs, fmt.Errorf(format, args...))
	}
}

// send sends the scenes and returns how many were new to SQS.
func (d *demo) send(title string, scenes []Scene) (isNew int) {
	fmt.Fprintf(d.w, "\n%s\n", title)
	t := tabwriter.NewWriter(d.w, 0, 0, 2, ' ', 0)
	for i, r := range d.producer.SendBatch(d.ctx, scenes) {
		if r.Err != nil {
			d.errs = append(d.errs, r.Err)
			continue
		}
		state := "new"
		if r.Receipt.Duplicate {
			state = "suppressed"
		} else {
			isNew++
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\tbody sha256 %s\n", state, scenes[i].ID, scenes[i].PathRow, r.Receipt.BodyHash)
	}
	d.errs = append(d.errs, t.Flush())
	return isNew
}

// mistakes makes the two that lose events. The producer refuses both before
// anything is sent.
func (d *demo) mistakes(s Scene) {
	fmt.Fprintf(d.w, "\nrefused, never sent\n")
	reused := s
	reused.CloudCover++
	_, err := d.producer.Send(d.ctx, reused)
	var conflict *sqsfifo.ConflictError
	d.check(errors.As(err, &conflict), "a reused dedupe key was not refused: %w", err)
	fmt.Fprintf(d.w, "  %v\n", err)

	msg, err := d.producer.Build(s)
	if err != nil {
		d.errs = append(d.errs, err)
		return
	}
	msg.Attributes = map[string]string{"unique_key": "landsat-2025-12-04T00:00Z"}
	_, err = d.producer.SendMessage(d.ctx, msg)
	var violation *sqsfifo.ViolationError
	d.check(errors.As(err, &violation), "identity in an attribute was not refused: %w", err)
	fmt.Fprintf(d.w, "  %v\n", err)
}

// metrics prints the four KFM instruments.
func (d *demo) metrics(reader metric.Reader) {
	fmt.Fprintf(d.w, "\nmetrics\n")
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(d.ctx, &rm); err != nil {
		d.errs = append(d.errs, err)
		return
	}
	t := tabwriter.NewWriter(d.w, 0, 0, 2, ' ', 0)
	for _, sm := range rm.ScopeMetrics {
		for _, m := range sm.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					fmt.Fprintf(t, "  %s\t%d %s\n", m.Name, p.Value, m.Unit)
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					fmt.Fprintf(t, "  %s\t%d bodies, %d %s in all\n", m.Name, p.Count, p.Sum, m.Unit)
				}
			}
		}
	}
	d.errs = append(d.errs, t.Flush())
}
