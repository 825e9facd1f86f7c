package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// If the environment variable `serverEnv` is set, this program runs as the server. The value
// is the latency of an answer and each queue's quota of send calls per second, for example
// "5ms 300". The quota 0 means no limit.
const serverEnv = "SQSFIFO_BENCH_SERVER"

// queues is the number of queues on the server. Each measurement uses a new queue.
const queues = 128

// serve runs the fake SQS on a local port. It carries out the commands that the parent
// process writes to its standard input, until the parent process ends.
func serve(config string) error {
	latency, quota, _ := strings.Cut(config, " ")
	delay, err := time.ParseDuration(latency)
	if err != nil {
		return err
	}
	calls, err := strconv.Atoi(quota)
	if err != nil {
		return err
	}
	var all []*sqstest.Queue
	for i := range queues {
		q, err := sqstest.NewQueue(sqstest.Config{Name: fmt.Sprintf("bench-%d.fifo", i)})
		if err != nil {
			return err
		}
		if calls > 0 {
			q.SetQuota(calls)
		}
		all = append(all, q)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	front := &front{next: sqstest.NewServer(all...), latency: delay}
	replies := json.NewEncoder(os.Stdout)
	if err := replies.Encode("http://" + listener.Addr().String()); err != nil {
		return err
	}
	go func() {
		commands := json.NewDecoder(os.Stdin)
		for {
			var o command
			if commands.Decode(&o) != nil || replies.Encode(o.run(all[o.Queue], front)) != nil {
				os.Exit(0)
			}
		}
	}()
	return http.Serve(listener, front) // #nosec G114 -- only the parent process connects, so timeouts are not needed
}

// front delays each request to the fake SQS by the latency. The fake applies at most one
// fault to a call: if the delay were a fault, no other fault would apply.
type front struct {
	next        http.Handler
	latency     time.Duration
	unavailable atomic.Uint64 // share of the sends answered with status 503, as math.Float64bits
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(f.latency)
	share := math.Float64frombits(f.unavailable.Load())
	// #nosec G404 -- random faults of a measurement need no secure random numbers
	if share > 0 && strings.HasPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.SendMessage") && rand.Float64() < share {
		_, _ = io.Copy(io.Discard, r.Body) // if the body is not read, the server closes the connection
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#ServiceUnavailable","message":"The service is unavailable."}`)
		return
	}
	f.next.ServeHTTP(w, r)
}

// command is a command of the parent process to the server: to set the faults of a queue,
// or to check the messages in the queue and return the flaws.
type command struct {
	Queue  int
	Faults *faults // nil for a check of the messages
	Events int     // number of events sent to the queue; used only by the check

	// Overtaken has the events that failed with ErrOvertaken: the check does not count them as
	// lost.
	Overtaken []int
}

// flaws counts the lost messages, the messages stored twice, and the messages out of order
// in a queue.
type flaws struct{ Lost, Twice, Disorder int }

func (o command) run(q *sqstest.Queue, front *front) (v flaws) {
	if o.Faults != nil {
		o.Faults.set(q, front, uint64(o.Queue)+1)
		return flaws{}
	}
	stored := make([]bool, o.Events)
	last := map[string]int{} // index of the newest message, by group
	for _, m := range q.Messages() {
		e, err := sqsfifo.DecodeEnvelope[Scene](m.Body)
		i := e.Payload.number()
		switch {
		case err != nil || i < 0 || i >= o.Events:
			v.Disorder++ // the message is none of the sent events
			continue
		case stored[i]:
			v.Twice++
			continue
		}
		stored[i] = true
		if before, ok := last[m.GroupID]; ok && i < before {
			v.Disorder++
		}
		last[m.GroupID] = i
	}
	for _, i := range o.Overtaken {
		stored[i] = true
	}
	for _, ok := range stored {
		if !ok {
			v.Lost++
		}
	}
	return v
}

// server is the connection to the fake SQS. The fake runs in another process, so that its
// processor time does not count in the measurement.
type server struct {
	*meter.Process
	url  string
	http aws.HTTPClient // nil for the SDK's
	next int
}

func startServer(latency time.Duration, quota int) (*server, error) {
	p, err := meter.Start([]string{fmt.Sprintf("%s=%v %d", serverEnv, latency, quota)})
	if err != nil {
		return nil, err
	}
	s := &server{Process: p}
	if err := s.Reports.Decode(&s.url); err != nil {
		s.Stop()
		return nil, fmt.Errorf("the server did not start: %w", err)
	}
	return s, nil
}

// do makes the server carry out a command for the queue that s.queue returned last.
func (s *server) do(o command) (v flaws, err error) {
	o.Queue = s.next - 1
	err = s.Do(o, &v)
	return v, err
}

func (s *server) config() aws.Config {
	return aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: &s.url,
		HTTPClient:   s.http,
		Credentials:  credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
	}
}

// client returns a client that keeps one connection per worker.
func (s *server) client() *sqs.Client { return sqsfifo.NewClient(s.config()) }

// plainClient returns the SDK's default client, which keeps ten connections.
func (s *server) plainClient() *sqs.Client { return sqs.NewFromConfig(s.config()) }

// queue returns the URL of an unused queue.
func (s *server) queue() string {
	s.next++
	return fmt.Sprintf("%s/000000000000/bench-%d.fifo", s.url, s.next-1)
}
