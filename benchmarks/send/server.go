package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// serverEnv makes this program the server: its value is the latency of an answer
// and the quota of calls a second.
const serverEnv = "SQSFIFO_BENCH_SERVER"

// queues is how many the server has: each measurement takes one that nobody used.
const queues = 64

// serve runs the fake on a port of this machine and obeys the orders on standard
// input until the parent goes away.
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
		orders := json.NewDecoder(os.Stdin)
		for {
			var o order
			if orders.Decode(&o) != nil || replies.Encode(o.obey(all[o.Queue], front)) != nil {
				os.Exit(0)
			}
		}
	}()
	return http.Serve(listener, front) // #nosec G114 -- for the parent alone
}

// front is the way to the fake. The latency is here and not a fault of the queue,
// of which a call meets at most one.
type front struct {
	next        http.Handler
	latency     time.Duration
	unavailable atomic.Uint64 // share of the sends that get a 503, as bits
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(f.latency)
	share := math.Float64frombits(f.unavailable.Load())
	// #nosec G404 -- chance for a measurement
	if share > 0 && strings.HasPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.SendMessage") && rand.Float64() < share {
		_, _ = io.Copy(io.Discard, r.Body) // or the connection closes
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"__type":"com.amazonaws.sqs#ServiceUnavailable","message":"The service is unavailable."}`)
		return
	}
	f.next.ServeHTTP(w, r)
}

// order is what the parent asks of the server: to set the faults of a queue, or to
// judge what is stored in it.
type order struct {
	Queue  int
	Faults *faults // nil: judge
	Events int     // that were sent
}

// verdict is what is wrong with the messages of a queue.
type verdict struct{ Lost, Twice, Disorder int }

func (o order) obey(q *sqstest.Queue, front *front) (v verdict) {
	if o.Faults != nil {
		o.Faults.set(q, front, uint64(o.Queue)+1)
		return verdict{}
	}
	stored := make([]bool, o.Events)
	last := map[string]int{} // by group
	for _, m := range q.Messages() {
		e, err := sqsfifo.DecodeEnvelope[Scene](m.Body)
		i := e.Payload.number()
		switch {
		case err != nil || i < 0 || i >= o.Events:
			v.Disorder++ // not an event that was sent
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
	for _, ok := range stored {
		if !ok {
			v.Lost++
		}
	}
	return v
}

// server is the fake in a process of its own, so that its cost is not counted on
// either side.
type server struct {
	url     string
	next    int
	orders  *json.Encoder
	replies *json.Decoder
	stop    func()
}

func startServer(latency time.Duration, quota int) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	child := exec.Command(self) // #nosec G204 -- this program
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%v %d", serverEnv, latency, quota))
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}
	s := &server{orders: json.NewEncoder(in), replies: json.NewDecoder(out), stop: func() {
		in.Close()
		_ = child.Wait()
	}}
	if err := s.replies.Decode(&s.url); err != nil {
		s.stop()
		return nil, fmt.Errorf("the server did not start: %w", err)
	}
	return s, nil
}

// do gives an order about the queue that was taken last.
func (s *server) do(o order) (v verdict, err error) {
	o.Queue = s.next - 1
	if err := s.orders.Encode(o); err != nil {
		return v, err
	}
	return v, s.replies.Decode(&v)
}

func (s *server) config() aws.Config {
	return aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: &s.url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
	}
}

// client keeps as many connections as there are workers.
func (s *server) client() *sqs.Client { return sqsfifo.NewClient(s.config(), workers) }

// plainClient is the SDK's own, which keeps ten.
func (s *server) plainClient() *sqs.Client { return sqs.NewFromConfig(s.config()) }

// queue returns the URL of a queue that nobody used.
func (s *server) queue() string {
	s.next++
	return fmt.Sprintf("%s/000000000000/bench-%d.fifo", s.url, s.next-1)
}
