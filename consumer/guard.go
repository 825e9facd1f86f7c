package consumer

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// guarded calls f, which runs code of the caller, in a separate goroutine and waits. If f or
// the method Error of its error panics, guarded returns a [*PanicError]. Such an error is a
// nil pointer in an interface, for example. If f calls runtime.Goexit, guarded returns
// errExited.
func guarded(f func() error) error {
	done := make(chan error, 1)
	go func() {
		err := errExited
		defer func() {
			if v := recover(); v != nil {
				err = &PanicError{Value: fmt.Sprint(v), Stack: string(debug.Stack())}
			}
			done <- err
		}()
		if err = f(); err != nil {
			_ = err.Error()
		}
	}()
	return <-done
}

// called makes a call of the client with the SDK's retries off: the consumer repeats calls
// itself, at its own pace, and repeats a receive with the same attempt ID. A panic of the
// client becomes a [*PanicError].
func called[I, O any](call func(context.Context, *I, ...func(*sqs.Options)) (*O, error), ctx context.Context, in *I) (out *O, err error) { //nolint:revive // the order of the call
	defer func() {
		if v := recover(); v != nil {
			out, err = nil, &PanicError{Value: fmt.Sprint(v), Stack: string(debug.Stack())}
		}
	}()
	if out, err = call(ctx, in, withoutRetries); err == nil && out == nil {
		return nil, errNoOutput
	}
	return out, err
}

// isTransient reports whether a transaction may succeed if it is repeated: the connection was
// lost, or the database was busy or refused a serialization. The codes are those of
// PostgreSQL (SQLSTATE) and SQLite (SQLITE_BUSY, SQLITE_LOCKED).
func isTransient(err error) bool {
	var postgres interface{ SQLState() string }
	if errors.As(err, &postgres) {
		state := postgres.SQLState()
		return state == "55P03" || slices.ContainsFunc([]string{"08", "40", "53", "57"}, func(class string) bool { return strings.HasPrefix(state, class) })
	}
	var sqlite interface{ Code() int }
	if errors.As(err, &sqlite) {
		code := sqlite.Code() & 0xff
		return code == 5 || code == 6
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
