// Command consume measures package consumer beside a hand-written loop, which has 16
// workers; each receives ten messages, handles them in order and deletes them in one
// batch. Both use *sqs.Client over HTTP and the fake queue, which answers after 5 ms. The
// rounds alternate, and the figures are medians.
//
//	go run ./bench/consume
package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

const (
	latency = 5 * time.Millisecond
	groups  = 100
	workers = 16
	rounds  = 3
)

// side consumes the queue until ctx ends.
type side func(ctx context.Context, client *sqs.Client, url string, handle func())

// figures are those of one round.
type figures struct{ rate, receives, deletes float64 }

func main() {
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "handler\tside\tmessages/s\treceives a message\tdeletes a message\tof the loop's rate\tof its calls")
	for _, load := range []struct {
		work     time.Duration
		messages int
	}{{0, 20_000}, {10 * time.Millisecond, 8_000}} {
		var byHand, ours []figures
		for range rounds {
			byHand = append(byHand, measure(loop, load.messages, load.work))
			ours = append(ours, measure(withPackage, load.messages, load.work))
		}
		h, o := median(byHand), median(ours)
		calls := func(f figures) float64 { return f.receives + f.deletes }
		fmt.Fprintf(t, "%v\tloop\t%.0f\t%.3f\t%.3f\t1\t1\n", load.work, h.rate, h.receives, h.deletes)
		fmt.Fprintf(t, "%v\tconsumer\t%.0f\t%.3f\t%.3f\t%.2f\t%.2f\n", load.work, o.rate, o.receives, o.deletes, o.rate/h.rate, calls(o)/calls(h))
	}
	_ = t.Flush()
}

// median returns the round with the median rate.
func median(f []figures) figures {
	slices.SortFunc(f, func(a, b figures) int { return cmp.Compare(a.rate, b.rate) })
	return f[len(f)/2]
}

// measure fills a queue and consumes it.
func measure(s side, messages int, work time.Duration) figures {
	q, err := sqstest.NewQueue(sqstest.Config{DiscardDeleted: true})
	check(err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for i := range messages {
		_, err := q.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String(strconv.Itoa(i)), MessageGroupId: aws.String(fmt.Sprint("g", i%groups))})
		check(err)
	}
	var receives, deletes atomic.Int64
	fake := sqstest.NewServer(q)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Amz-Target") {
		case "AmazonSQS.ReceiveMessage":
			receives.Add(1)
		case "AmazonSQS.DeleteMessageBatch":
			deletes.Add(1)
		}
		time.Sleep(latency)
		fake.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	endpoint := "http://" + listener.Addr().String()
	client := sqsfifo.NewClient(aws.Config{Region: sqstest.Region, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")}, 64, func(o *sqs.Options) { o.BaseEndpoint = &endpoint })

	var handled atomic.Int64
	done := make(chan struct{})
	began := time.Now()
	var took time.Duration
	var calls [2]float64
	go s(ctx, client, endpoint+"/"+sqstest.Account+"/"+q.Name(), func() {
		if work > 0 {
			time.Sleep(work)
		}
		if handled.Add(1) == int64(messages) {
			took = time.Since(began)
			calls = [2]float64{float64(receives.Load()), float64(deletes.Load())}
			close(done)
		}
	})
	<-done
	n := float64(messages)
	return figures{n / took.Seconds(), calls[0] / n, calls[1] / n}
}

// loop is the hand-written loop.
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
		Failure: consumer.Failure{Then: consumer.ActionBlock},
	})
	check(err)
	_ = c.Run(ctx)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
