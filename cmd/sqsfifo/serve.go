package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/livepage"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

type serveCmd struct {
	Addr        []string `sep:"none" default:"127.0.0.1:9324" placeholder:"HOST:PORT" help:"Address to listen on; port 0 takes a free one; may be repeated (default ${default})."`
	AllowRemote bool     `help:"Listen on an address that other machines reach; the fake checks no credentials."`
	Account     string   `default:"000000000000" placeholder:"ID" help:"Account in the URLs and ARNs of the queues, twelve digits (default ${default})."`
	NoWaits     bool     `help:"Permit what AWS refuses for 60 seconds: a second PurgeQueue, and CreateQueue with the name of a deleted queue."`
	Keep        bool     `help:"Keep messages that were deleted, for /_sqsfifo/window and for duplicates of them; memory then grows with each send, up to the bounds."`
	MaxQueues   int      `default:"1000" placeholder:"N" help:"Most queues, 0 for no bound; beyond it and those below a request is refused with OverLimit (default ${default})."`
	MaxMessages int      `default:"1000000" placeholder:"N" help:"Most messages in all queues, 0 for no bound (default ${default})."`
	MaxBytes    int64    `default:"1073741824" placeholder:"N" help:"Most bytes of messages in all queues, 0 for no bound (default ${default})."`
	Queue       []string `sep:"none" placeholder:"NAME" help:"Name of a queue to begin with, FIFO if it ends in .fifo; may be repeated (default events.fifo)."`
	Queues      string   `type:"path" placeholder:"FILE" help:"Queues to begin with: a JSON array of objects with a name and the attributes of CreateQueue, as in [{\"name\": \"events.fifo\", \"attributes\": {\"DeduplicationScope\": \"messageGroup\"}}]."`
}

func (*serveCmd) Help() string {
	return `Serves a fake SQS on this machine, for any AWS SDK that speaks AWS JSON 1.0: point the SDK's endpoint at the printed address and give it any credentials. CreateQueue makes further queues. Nothing is persistent. SIGINT ends it.

The first lines on standard output are the addresses, the others are the URLs of the queues at the first address.

Unless --allow-remote is given, only requests to localhost, 127.0.0.0/8 and [::1] are answered, and none from web pages of other origins.

	GET    /                     answers health checks, and a browser with a page: what the queues remember and suppressed, their blocked groups, clock and faults
	GET    /_localstack/health   answers the health check of suites written for LocalStack
	GET    /_aws/sqs/messages    ?QueueUrl=URL   the messages of a queue, without receiving them
	POST   /_sqsfifo/clock       {"advance_seconds": 301}   moves the clock of every queue
	GET    /_sqsfifo/window      what the queues remember
	GET    /_sqsfifo/suppressed  which sends they suppressed, and why
	GET    /_sqsfifo/blocked     which groups are blocked by a message that was received and not deleted
	POST   /_sqsfifo/faults      {"queue": "events.fifo", "fault": "lose_answer", "calls": 1}
	GET    /_sqsfifo/faults      which faults wait for a call
	DELETE /_sqsfifo/faults      removes them; ?id=ID removes one

Faults are lose_answer, drop_request, reset_connection, truncate_answer, throttle, server_error, pass, delay_answer with delay_seconds, and fail_entries with code, sender_fault and entry_ids. They strike sends, or with on the calls receive, delete or visibility. Instead of calls, rate and seed choose calls at random.

Examples:

	sqsfifo serve --queue scenes.fifo
	sqsfifo serve --addr 127.0.0.1:4566 --no-waits
	AWS_ENDPOINT_URL_SQS=http://127.0.0.1:9324 aws sqs list-queues`
}

func (c *serveCmd) run(ctx context.Context, io stdio) error {
	queues := c.Queue
	if len(queues) == 0 && c.Queues == "" {
		queues = []string{"events.fifo"}
	}
	var errs flagErrors
	for _, addr := range c.Addr {
		if err := checkAddr(addr, c.AllowRemote); err != nil {
			errs = append(errs, err)
		}
	}
	errs.addIf(c.MaxQueues < 0, "--max-queues: %d is below 0", c.MaxQueues)
	errs.addIf(c.MaxMessages < 0, "--max-messages: %d is below 0", c.MaxMessages)
	errs.addIf(c.MaxBytes < 0, "--max-bytes: %d is below 0", c.MaxBytes)
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	config := sqstest.Config{Account: c.Account, NoWaits: c.NoWaits, DiscardDeleted: !c.Keep}
	var served []*sqstest.Queue
	for _, name := range queues {
		config.Name, config.Standard = name, !strings.HasSuffix(name, ".fifo")
		q, err := sqstest.NewQueue(config)
		if err != nil {
			return err
		}
		served = append(served, q)
	}
	server := sqstest.NewServer(served...)
	if err := server.SetDefaults(config); err != nil {
		return err
	}
	server.SetMemoryLimits(sqstest.MemoryLimits{Queues: c.MaxQueues, Messages: c.MaxMessages, Bytes: c.MaxBytes})
	more, err := createQueues(ctx, server, c.Queues)
	if err != nil {
		return err
	}
	served = append(served, more...)
	var listeners []net.Listener
	for _, addr := range c.Addr {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		defer l.Close()
		listeners = append(listeners, l)
		fmt.Fprintf(io.out, "http://%s\n", l.Addr())
	}
	for _, q := range served {
		fmt.Fprintf(io.out, "http://%s/%s/%s\n", listeners[0].Addr(), c.Account, q.Name())
	}
	page, err := livepage.New(server)
	if err != nil {
		return err
	}
	var handler http.Handler = page
	if !c.AllowRemote {
		handler = loopbackOnly(handler)
	}
	return serveUntilDone(ctx, handler, defaultTimeouts, listeners...)
}

// checkAddr refuses an address that is not on loopback if `remote` is false. It then also
// refuses host names other than localhost, because they may resolve to any address.
func checkAddr(addr string, remote bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("--addr: %w", err)
	}
	ip := net.ParseIP(host)
	if remote || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--addr %s is not on loopback, and the fake checks no credentials; use 127.0.0.1, or --allow-remote if you mean it", addr)
}

// timeouts are the time limits of an http.Server for reading a request's header, reading
// the whole request, and writing the response.
type timeouts struct{ header, request, response time.Duration }

// The limit for a response is longer than a long poll (up to 20 s) together with an
// injected delay (up to a minute).
var defaultTimeouts = timeouts{header: 5 * time.Second, request: 30 * time.Second, response: 2 * time.Minute}

func serveUntilDone(ctx context.Context, handler http.Handler, limit timeouts, listeners ...net.Listener) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: limit.header,
		ReadTimeout:       limit.request,
		WriteTimeout:      limit.response,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// With this context, long polls end when ctx ends, so Shutdown does not wait for
		// them.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- server.Serve(l) }()
	}
	select {
	case err := <-failed:
		return errors.Join(err, server.Close())
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	for range listeners {
		<-failed // wait until Serve has returned
	}
	return err
}
