// Command landsat shows two mistakes with FIFO queues. If the ID of an event is only in an
// attribute, SQS may drop the event; if the body contains the time of the send, SQS stores
// a retry as a second event. After these mistakes, a producer of this module sends the same
// events correctly. The events are about Landsat satellite images, which are called scenes.
// A folder of scenes has one JSON file per scene, in the format STAC (SpatioTemporal Asset
// Catalog).
//
//	landsat                              two scenes, then all seven, on fake queues in this process
//	landsat folder                       the same with the scenes of a folder
//	landsat -list                        every message, sent and replayed, on a fake queue
//	landsat -queue-url https://sqs... .  the same on a real queue, credentials as usual for AWS programs
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
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"go.opentelemetry.io/otel/sdk/metric"

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
	queueURL := flags.String("queue-url", "", "URL of a FIFO queue to list the messages of; a fake queue in this process if empty")
	full := flags.Bool("list", false, "list every message, sent and replayed")
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
	if !*full && !*asLog && *queueURL == "" {
		return tell(ctx, w, scenes)
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
	fmt.Fprintf(w, "queue %s\n", *queueURL)
	l := listing{ctx: ctx, w: w, producer: producer}
	l.replays(scenes, fake)
	l.mistakes(scenes[0])
	fmt.Fprintf(w, "\nmetrics\n")
	l.errs = append(l.errs, printMetrics(ctx, w, reader))
	return errors.Join(append(l.errs, producer.Close(ctx))...)
}

func newProducer(client sqsfifo.Client, queueURL string, meters *metric.MeterProvider) (*sqsfifo.Producer[Scene], error) {
	return sqsfifo.NewProducer(client, sqsfifo.Config[Scene]{
		QueueURL:  queueURL,
		Source:    "kfm.remote-sensing.landsat-refresh",
		Identify:  identify,
		Telemetry: sqsfifo.Telemetry{MeterProvider: meters},
	})
}

// connect returns a client for the queue, or a fake queue if the URL is empty.
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
	return sqsfifo.NewClient(c), nil, nil
}

// printLog prints a line per scene, as if a scene was sent each second.
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
