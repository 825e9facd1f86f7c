package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// emulator is a running peer, with its client and its results.
type emulator struct {
	peer
	client  *sqs.Client
	process *os.Process
	stop    func()
	queues  int                 // number of created queues
	figures map[string]*figures // results for each kind of work, by its name
}

// figures has the results of one kind of work, with one value per round.
type figures struct {
	rates     []float64 // messages per second
	processor []float64 // processor time of the emulator in seconds per message
	failure   error
}

// startWithin is the longest time that a server may take to start. It suffices for a
// Python server on a busy machine.
const startWithin = 30 * time.Second

func (p peer) start(ctx context.Context, dir string) (*emulator, error) {
	port, err := freePort(ctx)
	if err != nil {
		return nil, err
	}
	command, err := p.command(ctx, dir, port)
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil { // the command's output is ignored
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	e := &emulator{peer: p, client: newClient("http://127.0.0.1:" + port), process: command.Process, figures: map[string]*figures{}}
	e.stop = func() {
		_ = command.Process.Kill()
		<-ended
	}
	for _, w := range workKinds {
		e.figures[w.name] = &figures{}
	}
	var last error
	for deadline := time.Now().Add(startWithin); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if _, last = e.client.ListQueues(ctx, &sqs.ListQueuesInput{}); last == nil {
			return e, nil
		}
		select {
		case err := <-ended:
			return nil, fmt.Errorf("it ended before it answered: %w", err)
		case <-ctx.Done():
			e.stop()
			return nil, ctx.Err()
		default:
		}
	}
	e.stop()
	return nil, fmt.Errorf("no answer within %v: %w", startWithin, last)
}

// newClient returns the same kind of client for all emulators: the SDK's client with one
// connection per worker.
func newClient(endpoint string) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       "us-east-1",
		BaseEndpoint: &endpoint,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
		RetryMaxAttempts: 1, // a retry would hide an emulator's failure
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost, t.MaxIdleConns = 128, 128
		}),
	})
}

func freePort(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// ticksPerSecond is USER_HZ, the unit of the times in /proc. Linux fixes USER_HZ at 100.
const ticksPerSecond = 100

// processorTime returns the processor time of the emulator so far, in seconds.
// It returns 0 if /proc does not exist.
func (e *emulator) processorTime() float64 {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(e.process.Pid) + "/stat")
	if err != nil {
		return 0
	}
	// fields[0] is field 3 of the file: field 2 (a name in parentheses) may contain spaces.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(string(fields[11]), 64)
	system, _ := strconv.ParseFloat(string(fields[12]), 64)
	return (user + system) / ticksPerSecond
}
