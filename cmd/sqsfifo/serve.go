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

  POST /_sqsfifo/clock       {"advance_seconds": 301}   moves the clock of every queue
  GET  /_sqsfifo/window      what the queues remember
  GET  /_sqsfifo/suppressed  what they swallowed, and why
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
	var queues names
	flags.Var(&queues, "queue", "`name` of a queue to begin with, FIFO if it ends in .fifo; may be repeated (default events.fifo)")
	if err := parse(flags, args, serveHelp, io); err != nil {
		return exitFailed, err
	}
	if flags.NArg() > 0 {
		return exitFailed, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if len(queues) == 0 {
		queues = names{"events.fifo"}
	}
	if err := checkAddr(*addr, *remote); err != nil {
		return exitFailed, err
	}
	var served []*sqstest.Queue
	for _, name := range queues {
		q, err := sqstest.NewQueue(sqstest.Config{Name: name, Standard: !strings.HasSuffix(name, ".fifo")})
		if err != nil {
			return exitFailed, err
		}
		served = append(served, q)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *addr)
	if err != nil {
		return exitFailed, err
	}
	base := "http://" + listener.Addr().String()
	fmt.Fprintf(io.out, "%s\n", base)
	for _, q := range served {
		fmt.Fprintf(io.out, "%s/%s/%s\n", base, sqstest.Account, q.Name())
	}
	return exitFine, serveUntilDone(ctx, listener, sqstest.NewServer(served...))
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

func serveUntilDone(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      time.Minute, // a long poll takes 20 s
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Those who wait in a long poll are not waited for.
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close()
	}
	<-failed // the goroutine's end
	return err
}
