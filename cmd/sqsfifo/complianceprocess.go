package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// servedProducer runs a user's program, the producer under test. The program sends its
// requests to a local HTTP server, which forwards each request to the queue of the
// compliance suite.
type servedProducer struct {
	command []string
	timeout time.Duration

	queueURL string // URL of the queue for the program
	front    *http.Server
	served   chan struct{}
	base     string
	// The field `program` is nil before the first event, and again after the method `send`
	// or `close` has seen the program end.
	program *producerProgram

	sends map[string]int // the number of sends of each event
}

// send implements the field Send of compliance.Suite. It sends one event through the
// program under test.
func (p *servedProducer) send(ctx context.Context, client *sqs.Client, queueURL string, event json.RawMessage) error {
	if queueURL != p.queueURL {
		if err := p.close(); err != nil {
			return err
		}
		if err := p.serve(ctx, client); err != nil {
			return err
		}
		p.queueURL = queueURL
	}
	if p.sends == nil {
		p.sends = map[string]int{}
	}
	defer func() { p.sends[string(event)]++ }()
	for {
		if p.program == nil {
			// Each process that begins with the same event has another local time zone. A
			// payload in local time is then another message (see Replay Window Collision).
			zone := zones[p.sends[string(event)]%len(zones)]
			program, err := startProducer(ctx, p.command, append(producerEnvironment(p.base, queueURL), "TZ="+zone))
			if err != nil {
				return err
			}
			p.program = program
		}
		err := p.program.send(ctx, event, p.timeout)
		answered := p.program.answered
		if p.program.over {
			p.program = nil
		}
		var ended *programEndedError
		if errors.As(err, &ended) && ended.err == nil && answered > 0 {
			// The program under test ended by itself between two events. Start it again
			// for this event.
			continue
		}
		return err
	}
}

var zones = []string{"UTC", "Asia/Kolkata", "America/St_Johns"}

// serve starts an HTTP server that forwards requests to the queue, through the HTTP client
// of the given SDK client.
func (p *servedProducer) serve(ctx context.Context, client *sqs.Client) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.base = "http://" + listener.Addr().String()
	queue := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", r.In.Host },
		Transport: clientTransport{client.Options().HTTPClient},
		// If the fake queue closes the connection without an answer (an injected fault),
		// close the connection to the program, too.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	p.front = &http.Server{Handler: loopbackOnly(queue), ReadHeaderTimeout: defaultTimeouts.header, ErrorLog: log.New(io.Discard, "", 0)}
	p.served = make(chan struct{})
	go func(server *http.Server, served chan struct{}) {
		defer close(served)
		_ = server.Serve(listener)
	}(p.front, p.served)
	return nil
}

// close ends the program under test and the HTTP server that it uses.
func (p *servedProducer) close() error {
	if p.program != nil {
		p.program.end()
		p.program = nil
	}
	if p.front == nil {
		return nil
	}
	err := p.front.Close()
	<-p.served
	p.front = nil
	return err
}

// clientTransport is an http.RoundTripper that sends requests through the HTTP client of an
// SDK client.
type clientTransport struct{ client sqs.HTTPClient }

func (t clientTransport) RoundTrip(r *http.Request) (*http.Response, error) { return t.client.Do(r) }

// producerEnvironment returns the environment of the program under test: the environment
// of this process, and the addresses of the server and the queue.
func producerEnvironment(base, queueURL string) []string {
	name := queueURL
	if u, err := url.Parse(queueURL); err == nil {
		name = u.Path
	}
	return append(os.Environ(),
		"SQSFIFO_QUEUE_URL="+base+path.Clean("/"+name), "AWS_ENDPOINT_URL_SQS="+base, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=compliance", "AWS_SECRET_ACCESS_KEY=compliance", "AWS_SESSION_TOKEN=", "AWS_EC2_METADATA_DISABLED=true")
}

// programEndedError reports that a program ended before it answered an event.
type programEndedError struct {
	err    error
	stderr string
}

func (e *programEndedError) Error() string {
	text := "the program ended before it printed a line for the event"
	if e.err != nil {
		text += ": " + e.err.Error()
	}
	if e.stderr != "" {
		text += "\n" + e.stderr
	}
	return text
}

func (e *programEndedError) Unwrap() error { return e.err }

// producerProgram is one process that runs the program under test.
type producerProgram struct {
	program *exec.Cmd
	in      io.WriteCloser
	answers chan string
	stderr  tail
	ended   func() error // waits for the end of the process and returns its error

	answered int  // number of answered events
	over     bool // the process has ended
}

func startProducer(ctx context.Context, command, environment []string) (*producerProgram, error) {
	p := &producerProgram{program: exec.CommandContext(ctx, command[0], command[1:]...), answers: make(chan string)} // #nosec G204 -- the user names the program
	p.program.Env, p.program.Stderr, p.program.WaitDelay = environment, &p.stderr, time.Second
	separate(p.program)
	in, err := p.program.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.program.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.program.Start(); err != nil {
		return nil, err
	}
	p.in = in
	go func() {
		defer close(p.answers)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			p.answers <- lines.Text()
		}
		_, _ = io.Copy(io.Discard, out) // a line that is too long ends Scan: discard the remaining output
	}()
	p.ended = sync.OnceValue(func() error {
		for range p.answers { // reads all output, as Wait requires
		}
		return p.program.Wait()
	})
	return p, nil
}

// send writes an event to the program's standard input and waits for the answer: one line on
// the program's standard output.
func (p *producerProgram) send(ctx context.Context, event json.RawMessage, timeout time.Duration) error {
	line := append(bytes.Clone(event), '\n')
	// If Write fails, the select below either reports the ended program or ends at the time
	// limit.
	go func() { _, _ = p.in.Write(line) }()
	late := time.NewTimer(timeout)
	defer late.Stop()
	select {
	case line, ok := <-p.answers:
		if !ok {
			p.over = true
			return &programEndedError{p.ended(), p.stderr.String()}
		}
		p.answered++
		if text, failed := strings.CutPrefix(line, "error:"); failed {
			return errors.New(strings.TrimSpace(text))
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-late.C:
		p.end()
		return fmt.Errorf("the program printed no line within %v: print one line after each event, and flush it", timeout)
	}
}

// end closes the program's standard input. If the program does not end by itself, it gets
// SIGTERM after a second and is killed after three seconds. On a system without SIGTERM it
// is killed after a second.
func (p *producerProgram) end() {
	p.over = true
	_ = p.in.Close()
	for wait, stop := range map[time.Duration]func() error{time.Second: p.program.Cancel, 3 * time.Second: p.program.Process.Kill} {
		defer time.AfterFunc(wait, func() { _ = stop() }).Stop()
	}
	_ = p.ended() // ignored: the suite judges the messages, not the program's exit code
}

// tail is an io.Writer that keeps only the last 4 KiB written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	const most = 4 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(len(t.text)-most, 0):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
