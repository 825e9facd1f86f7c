package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
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

// serve is the fake on a port of this machine, until the parent goes away.
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
		if delay > 0 {
			q.InjectRandomly(sqstest.DelayAnswer(delay), 1, 1)
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
	fmt.Println("http://" + listener.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return http.Serve(listener, sqstest.NewServer(all...)) // #nosec G114 -- for the parent alone
}

// server is the fake in a process of its own, so that what it costs is nobody's.
type server struct {
	url  string
	next int
	stop func()
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
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("the server did not start: %w", err)
	}
	return &server{url: strings.TrimSpace(url), stop: func() {
		in.Close()
		_ = child.Wait()
	}}, nil
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

// client keeps 64 connections.
func (s *server) client() *sqs.Client { return sqsfifo.NewClient(s.config(), workers) }

// plainClient is the SDK's own, which keeps ten.
func (s *server) plainClient() *sqs.Client { return sqs.NewFromConfig(s.config()) }

// queue returns the URL of a queue that nobody used.
func (s *server) queue() string {
	s.next++
	return fmt.Sprintf("%s/000000000000/bench-%d.fifo", s.url, s.next-1)
}
