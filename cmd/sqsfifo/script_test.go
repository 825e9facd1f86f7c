package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// queueKey is the key under which the environment of a script (testscript.Env) holds the
// script's queue.
type queueKey struct{}

// The scripts in testdata/script use testscript's commands and
//
//	queue [option ...]     serves a queue at $QUEUE_URL, and an empty queue at $PARKING_URL,
//	                       by a server at $ENDPOINT; the options are no-content-based,
//	                       group-scope, discard and dead-letters
//	advance TIME           moves the clock of the queue
//	stored N               fails unless N messages are stored
//	foreign N              sends N messages of another sender
//	broken                 makes every receive fail
//	exits N COMMAND ...    fails unless the command's exit code is N
//	outbox DB [GROUP:N]    makes an outbox with N messages of each group, added ten
//	                       minutes ago
//	tried DB GROUP N AGO   records in the outbox an attempt to send the messages of a group
//	                       up to position N; AGO is the time since the attempt
//	keys DB [STATE:KEY]    makes an idempotency store, see makeKeys
//	postgres               creates an empty PostgreSQL schema, with the URL $POSTGRES
//
// The conditions are
//
//	[postgres]             a PostgreSQL server answers
//	[python] and [node]    the interpreter is installed, with the path $PYTHON or $NODE
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Condition: scriptCondition,
		Setup: func(e *testscript.Env) error {
			cli, err := filepath.Abs("testdata/cli")
			if err != nil {
				return err
			}
			e.Setenv("CLI", cli)
			e.Setenv("REPOSITORY", filepath.Join(cli, "../../../.."))
			for name, program := range interpreters() {
				e.Setenv(strings.ToUpper(name), program)
			}
			e.Values[queueKey{}] = new(*sqstest.Queue)
			// Scripts must not reach other machines or read credentials.
			e.Setenv("AWS_EC2_METADATA_DISABLED", "true")
			e.Setenv("AWS_CONFIG_FILE", os.DevNull)
			e.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"queue": scriptQueue, "advance": scriptAdvance, "stored": scriptStored, "foreign": scriptForeign, "broken": scriptBroken, "exits": scriptExits,
			"outbox": scriptOutbox, "tried": scriptTried, "postgres": scriptPostgres, "keys": scriptKeys,
		},
	})
}

func scriptQueue(ts *testscript.TestScript, _ bool, args []string) {
	c := sqstest.Config{}
	for _, option := range args {
		switch option {
		case "no-content-based":
			c.DisableContentBasedDeduplication = true
		case "group-scope":
			c.DeduplicationScope = sqstest.ScopeMessageGroup
		case "discard":
			c.DiscardDeleted = true
		case "dead-letters":
			dead, err := sqstest.NewQueue(sqstest.Config{Name: "dead.fifo"})
			ts.Check(err)
			c.DeadLetterQueue, c.MaxReceiveCount = dead, 2
		default:
			ts.Fatalf("no option %q", option)
		}
	}
	q, err := sqstest.NewQueue(c)
	ts.Check(err)
	other, err := sqstest.NewQueue(sqstest.Config{Name: "parking.fifo"})
	ts.Check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	server := &http.Server{Handler: loopbackOnly(sqstest.NewServer(q, other)), ReadHeaderTimeout: time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener)
	}()
	ts.Defer(func() {
		_ = server.Close()
		<-ended
	})
	*ts.Value(queueKey{}).(**sqstest.Queue) = q
	ts.Setenv("PARKING_URL", "http://"+listener.Addr().String()+"/"+sqstest.Account+"/"+other.Name())
	ts.Setenv("ENDPOINT", "http://"+listener.Addr().String())
	ts.Setenv("QUEUE_URL", "http://"+listener.Addr().String()+"/"+sqstest.Account+"/"+q.Name())
}

func scriptQueueOf(ts *testscript.TestScript) *sqstest.Queue {
	q := *ts.Value(queueKey{}).(**sqstest.Queue)
	if q == nil {
		ts.Fatalf("there is no queue; begin with: queue")
	}
	return q
}

func scriptAdvance(ts *testscript.TestScript, _ bool, args []string) {
	d, err := time.ParseDuration(strings.Join(args, ""))
	ts.Check(err)
	scriptQueueOf(ts).Advance(d)
}

func scriptStored(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(strings.Join(args, ""))
	ts.Check(err)
	if got := len(scriptQueueOf(ts).Messages()); (got == want) == neg {
		ts.Fatalf("%d messages are stored", got)
	}
}

func scriptForeign(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(strings.Join(args, ""))
	ts.Check(err)
	q := scriptQueueOf(ts)
	for i := range n {
		_, err := q.SendMessage(context.Background(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String(fmt.Sprint("foreign ", i)), MessageGroupId: aws.String(fmt.Sprint("g", i%3))})
		ts.Check(err)
	}
}

func scriptBroken(ts *testscript.TestScript, _ bool, _ []string) {
	scriptQueueOf(ts).InjectRandomly(sqstest.ServerError().On(sqstest.ActionReceive), 1, 1)
}

func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits N command [argument ...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
