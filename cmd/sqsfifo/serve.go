package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

const serveHelp = `usage: sqsfifo serve [flags]

Serves a fake SQS on this machine, for any AWS SDK that speaks AWS JSON 1.0: point
the SDK's endpoint at the printed address and give it any credentials. CreateQueue
makes further queues. Nothing is persistent. SIGINT ends it.

Unless -allow-remote is given, only requests to localhost, 127.0.0.0/8 and [::1] are
answered, and none from web pages of other origins.

  GET    /                     answers health checks, and a browser with a page: what the
                               queues remember and suppressed, their clock and faults
  POST   /_sqsfifo/clock       {"advance_seconds": 301}   moves the clock of every queue
  GET    /_sqsfifo/window      what the queues remember
  GET    /_sqsfifo/suppressed  which sends they suppressed, and why
  POST   /_sqsfifo/faults      {"queue": "events.fifo", "fault": "lose_answer", "calls": 1}
  GET    /_sqsfifo/faults      which faults wait for a call
  DELETE /_sqsfifo/faults      removes them; ?id=ID removes one

Faults are lose_answer, drop_request, reset_connection, truncate_answer, throttle,
server_error, pass, delay_answer with delay_seconds, and fail_entries with code,
sender_fault and entry_ids. Instead of calls, rate and seed choose calls at random.
`

// names is a flag that may be given more than once.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

func (n *names) Set(s string) error {
	*n = append(*n, s)
	return nil
}

func serve(ctx context.Context, args []string, io stdio) (int, error) {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:9324", "address to listen on; port 0 takes a free one")
	remote := flags.Bool("allow-remote", false, "listen on an address that other machines reach; the fake checks no credentials")
	keep := flags.Bool("keep", false, "keep messages that were deleted, for /_sqsfifo/window and for duplicates of them; memory then grows with each send, up to the bounds")
	bounds := sqstest.Bounds{}
	flags.IntVar(&bounds.Queues, "max-queues", 1000, "most queues, 0 for no bound; beyond it and those below a request is refused with OverLimit")
	flags.IntVar(&bounds.Messages, "max-messages", 1_000_000, "most messages in all queues, 0 for no bound")
	flags.Int64Var(&bounds.Bytes, "max-bytes", 1<<30, "most bytes of messages in all queues, 0 for no bound")
	var queues names
	flags.Var(&queues, "queue", "`name` of a queue to begin with, FIFO if it ends in .fifo; may be repeated (default events.fifo)")
	queueFile := flags.String("queues", "", "`file` of queues to begin with: a JSON array of objects with a name and the attributes of CreateQueue, as in [{\"name\": \"events.fifo\", \"attributes\": {\"DeduplicationScope\": \"messageGroup\"}}]")
	if err := parse(flags, args, serveHelp, io); err != nil {
		return exitFailed, err
	}
	if flags.NArg() > 0 {
		return exitFailed, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if len(queues) == 0 && *queueFile == "" {
		queues = names{"events.fifo"}
	}
	if err := checkAddr(*addr, *remote); err != nil {
		return exitFailed, err
	}
	if bounds.Queues < 0 || bounds.Messages < 0 || bounds.Bytes < 0 {
		return exitFailed, errors.New("a bound cannot be below 0")
	}
	bounds.DiscardDeleted = !*keep
	var served []*sqstest.Queue
	for _, name := range queues {
		q, err := sqstest.NewQueue(sqstest.Config{Name: name, Standard: !strings.HasSuffix(name, ".fifo"), DiscardDeleted: !*keep})
		if err != nil {
			return exitFailed, err
		}
		served = append(served, q)
	}
	server := sqstest.NewServer(served...)
	server.SetBounds(bounds)
	more, err := createQueues(ctx, server, *queueFile)
	if err != nil {
		return exitFailed, err
	}
	served = append(served, more...)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *addr)
	if err != nil {
		return exitFailed, err
	}
	base := "http://" + listener.Addr().String()
	fmt.Fprintf(io.out, "%s\n", base)
	for _, q := range served {
		fmt.Fprintf(io.out, "%s/%s/%s\n", base, sqstest.Account, q.Name())
	}
	handler, err := livePage(server)
	if err != nil {
		return exitFailed, err
	}
	if !*remote {
		handler = loopbackOnly(handler)
	}
	return exitFine, serveUntilDone(ctx, listener, handler, defaultTimeouts)
}

// checkAddr refuses an address that is not on loopback. A name other than
// localhost is not trusted to stay there.
func checkAddr(addr string, remote bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	ip := net.ParseIP(host)
	if remote || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("-addr %s is not on loopback, and the fake checks no credentials; use 127.0.0.1, or -allow-remote if you mean it", addr)
}

// timeouts are those of http.Server.
type timeouts struct{ header, request, response time.Duration }

// A long poll takes 20 s, and a fault may delay an answer by a minute.
var defaultTimeouts = timeouts{header: 5 * time.Second, request: 30 * time.Second, response: 2 * time.Minute}

func serveUntilDone(ctx context.Context, listener net.Listener, handler http.Handler, limit timeouts) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: limit.header,
		ReadTimeout:       limit.request,
		WriteTimeout:      limit.response,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// Long polls end with ctx: nobody waits for them.
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-failed // the goroutine's end
	return err
}
