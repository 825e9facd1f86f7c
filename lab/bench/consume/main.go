// Command consume compares ways to consume a queue: package consumer, a hand-written loop
// and watermill-aws. The loop has 16 workers; each receives ten messages, handles them in
// order and deletes them in one batch. Watermill has 16 subscriptions; each receives ten
// messages and handles and deletes them one by one. All use *sqs.Client over HTTP and the
// fake queue, which answers after 5 ms in the same process. They take turns for several
// rounds. For each, the output has the results of the round with the median rate. Processor
// time includes the fake queue.
//
//	go run ./bench/consume
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	watermillsqs "github.com/ThreeDotsLabs/watermill-aws/sqs"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

const (
	latency = 5 * time.Millisecond
	groups  = 100
	workers = 16
)

// side is a function that consumes the queue until ctx ends. This program compares several
// such functions.
type side func(ctx context.Context, client *sqs.Client, url string, handle func())

// sides lists the compared ways to consume a queue. The ratios in the output compare each
// way with the first.
var sides = []struct {
	name    string
	consume side
}{
	{"loop", loop},
	{"consumer", withPackage},
	{"watermill-aws", watermill},
}

// figures are the results of one round: the messages per second, the calls of
// ReceiveMessage and of DeleteMessage (or their batches) per message, and the processor
// time per message.
type figures struct {
	rate, receives, deletes float64
	processor               time.Duration
}

func (f figures) calls() float64 { return f.receives + f.deletes }

func main() {
	n := flag.Int("n", 10_000, "messages of a measurement; two fifths of them with a handler that takes 10 ms")
	rounds := flag.Int("rounds", 5, "rounds to take the median of")
	flag.Parse()
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "handler\tside\tmessages/s\tratio\treceives a message\tdeletes a message\tratio of calls\tprocessor time a message")
	for _, load := range []struct {
		work     time.Duration
		messages int
	}{{0, *n}, {10 * time.Millisecond, *n * 2 / 5}} {
		results := make([][]figures, len(sides))
		for range *rounds {
			for i, s := range sides {
				results[i] = append(results[i], measure(s.consume, load.messages, load.work))
			}
		}
		first := median(results[0])
		for i, s := range sides {
			f := median(results[i])
			fmt.Fprintf(t, "%v\t%s\t%.0f\t%.2f\t%.3f\t%.3f\t%.2f\t%v\n", load.work, s.name, f.rate, f.rate/first.rate,
				f.receives, f.deletes, f.calls()/first.calls(), f.processor.Round(time.Microsecond/10))
		}
	}
	_ = t.Flush()
}

// median returns the figures of the round with the median number of messages per second.
func median(f []figures) figures {
	slices.SortFunc(f, func(a, b figures) int { return cmp.Compare(a.rate, b.rate) })
	return f[len(f)/2]
}

func measure(s side, messages int, work time.Duration) figures {
	q, err := sqstest.NewQueue(sqstest.Config{DiscardDeleted: true})
	meter.Check(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range messages {
		_, err := q.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String(strconv.Itoa(i)), MessageGroupId: aws.String(fmt.Sprint("g", i%groups))})
		meter.Check(err)
	}
	var receives, deletes atomic.Int64
	fake := sqstest.NewServer(q)
	endpoint, end := meter.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Amz-Target") {
		case "AmazonSQS.ReceiveMessage":
			receives.Add(1)
		case "AmazonSQS.DeleteMessageBatch", "AmazonSQS.DeleteMessage":
			deletes.Add(1)
		}
		time.Sleep(latency)
		fake.ServeHTTP(w, r)
	}))
	defer end()
	client := sqsfifo.NewClient(aws.Config{Region: sqstest.Region, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")}, func(o *sqs.Options) { o.BaseEndpoint = &endpoint })

	var handled atomic.Int64
	done := make(chan struct{})
	began, processor := time.Now(), meter.ProcessorTime()
	var f figures
	go s(ctx, client, endpoint+"/"+sqstest.Account+"/"+q.Name(), func() {
		if work > 0 {
			time.Sleep(work)
		}
		if handled.Add(1) == int64(messages) {
			took, n := time.Since(began), float64(messages)
			f = figures{n / took.Seconds(), float64(receives.Load()) / n, float64(deletes.Load()) / n, (meter.ProcessorTime() - processor) / time.Duration(messages)}
			close(done)
		}
	})
	<-done
	return f
}

// loop is the hand-written loop that the package comment describes.
func loop(ctx context.Context, client *sqs.Client, url string, handle func()) {
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for ctx.Err() == nil {
				out, err := client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
				if err != nil || len(out.Messages) == 0 {
					continue
				}
				var entries []types.DeleteMessageBatchRequestEntry
				for i, m := range out.Messages {
					handle()
					entries = append(entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
				}
				_, _ = client.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries})
			}
		})
	}
	wait.Wait()
}

// watermill consumes with watermill-aws, with ten messages per receive call. The default of
// watermill-aws is one.
func watermill(ctx context.Context, client *sqs.Client, url string, handle func()) {
	subscriber, err := watermillsqs.NewSubscriber(watermillsqs.SubscriberConfig{
		AWSConfig:        aws.Config{Region: sqstest.Region, Credentials: client.Options().Credentials, HTTPClient: client.Options().HTTPClient},
		OptFns:           []func(*sqs.Options){func(o *sqs.Options) { o.BaseEndpoint = client.Options().BaseEndpoint }},
		QueueUrlResolver: watermillsqs.TransparentUrlResolver{},
		GenerateReceiveMessageInput: func(_ context.Context, url watermillsqs.QueueURL) (*sqs.ReceiveMessageInput, error) {
			return &sqs.ReceiveMessageInput{QueueUrl: aws.String(string(url)), MaxNumberOfMessages: 10, WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"}}, nil
		},
	}, nil)
	meter.Check(err)
	var wait sync.WaitGroup
	for range workers {
		messages, err := subscriber.Subscribe(ctx, url)
		meter.Check(err)
		wait.Go(func() {
			for m := range messages {
				handle()
				m.Ack()
			}
		})
	}
	wait.Wait()
}

// withPackage consumes with package consumer.
func withPackage(ctx context.Context, client *sqs.Client, url string, handle func()) {
	c, err := consumer.New(client, consumer.Config[string]{
		QueueURL: url, Groups: groups, Shutdown: time.Second,
		Decode: func(body string) (sqsfifo.Envelope[string], error) {
			return sqsfifo.Envelope[string]{Payload: body}, nil
		},
		Handle: func(context.Context, consumer.Message[string]) error {
			handle()
			return nil
		},
		Failure: consumer.Failure{Action: consumer.ActionBlock},
	})
	meter.Check(err)
	_ = c.Run(ctx)
}
