package sqstest_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// pipeListener serves HTTP over net.Pipe instead of sockets. In a testing/synctest bubble,
// the clock would stand still while a goroutine waits for a socket.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	close(l.done)
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// overPipe returns a client that uses the queue through an http.Server.
func overPipe(t *testing.T, q *sqstest.Queue) *sqs.Client {
	t.Helper()
	l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: sqstest.NewServer(q)}
	go server.Serve(l)
	transport := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return sqs.New(q.Client().Options(), func(o *sqs.Options) {
		o.BaseEndpoint, o.HTTPClient = aws.String("http://sqs.test"), &http.Client{Transport: transport}
	})
}
