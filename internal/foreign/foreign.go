// Package foreign keeps events out of the texts of errors and panics from code outside of
// this module, such as a client or a store. Such a text may quote part of an event. The quote
// may be escaped or cut, so it cannot be found and removed reliably. Therefore this package
// replaces the whole text. The new text has only constants, type names, numbers, SQLSTATEs
// (error codes of databases), addresses, and host names of AWS.
package foreign

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/queueurl"
)

// Known lists the errors and error codes with constant texts. These texts are safe to show.
// The zero Known is an empty list.
type Known struct {
	// Errors lists errors with constant texts. Hide keeps these texts, even if another error
	// wraps the listed error.
	Errors []error

	// Code reports whether Hide may keep an error code, because the code is a known
	// constant. If Code is nil, Hide keeps no code.
	Code func(string) bool
}

// hiddenError is the result of Hide: an error with a new text. Unwrap returns the original
// error.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.err }

// Hide wraps err in an error with a new text. The new text has only the safe parts of err's
// text: see the package comment. Hide(nil) is nil.
func (k Known) Hide(err error) error {
	if err == nil {
		return nil
	}
	return &hiddenError{k.text(err), err}
}

// Panic describes v, the value of a panic:
//
//   - an error of the Go runtime by its text
//   - any other error by the text of the error from Hide
//   - any other value by the name of its type
func (k Known) Panic(v any) string {
	if err, ok := v.(error); ok {
		if t := reflect.TypeOf(v); t.Kind() != reflect.Pointer && t.PkgPath() == "runtime" || t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "runtime" {
			return err.Error()
		}
		return k.text(err)
	}
	return fmt.Sprintf("%T", v)
}

// text returns the text to show for err. Methods of err may panic, such as the methods of
// an SDK error without a response.
func (k Known) text(err error) (text string) {
	defer func() {
		if recover() != nil {
			text = fmt.Sprintf("an error of type %T, whose text cannot be read", err)
		}
	}()
	budget := mostParts
	return strings.Join(k.parts(err, &budget), ": ")
}

// mostParts is the maximum number of errors in one text: err and its wrapped errors.
const mostParts = 16

// parts describes err and its wrapped errors, outermost first. It describes at most *budget
// errors, and subtracts their number from *budget.
func (k Known) parts(err error, budget *int) []string {
	if *budget--; *budget < 0 || err == nil {
		return nil
	}
	if h, ok := err.(*hiddenError); ok { //nolint:errorlint // the outermost error alone
		return []string{h.text}
	}
	if slices.Contains(k.Errors, err) || slices.Contains(constants, err) {
		return []string{err.Error()}
	}
	own, opaque := k.describeOne(err)
	var inner []string
	switch e := err.(type) { //nolint:errorlint // only err itself, not the errors that it wraps
	case interface{ Unwrap() error }:
		inner = k.parts(e.Unwrap(), budget)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			if p := k.parts(one, budget); len(p) > 0 {
				inner = append(inner, strings.Join(p, ": "))
			}
		}
		inner = []string{strings.Join(inner, "; ")}
	}
	if opaque && (len(inner) == 0 || !isPlain(err)) {
		own = fmt.Sprintf("%T", err)
		if len(inner) == 0 {
			own += " with a hidden text"
		}
	}
	if own == "" {
		return inner
	}
	return append([]string{own}, inner...)
}

// isPlain reports whether the type of err is a type of package fmt or errors. The name of
// such a type says nothing about the cause of the error.
func isPlain(err error) bool {
	name := fmt.Sprintf("%T", err)
	return strings.HasPrefix(name, "*fmt.") || strings.HasPrefix(name, "*errors.")
}

// constants are errors of the standard library with constant texts.
var constants = []error{
	context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, io.ErrShortWrite, net.ErrClosed,
}

// describeOne describes err without its wrapped errors. If only the name of err's type may be
// shown, usually because the type is unknown, the result `opaque` is true.
func (k Known) describeOne(err error) (text string, opaque bool) {
	switch e := err.(type) { //nolint:errorlint // only err itself, not the errors that it wraps
	case *net.OpError:
		return opText(e), false
	case *net.DNSError:
		return dnsText(e), false
	case syscall.Errno:
		return e.Error(), false
	case tls.AlertError:
		return e.Error(), false
	case tls.RecordHeaderError:
		return "the answer is not TLS", false
	case x509.UnknownAuthorityError:
		return "x509: certificate signed by unknown authority", false
	case x509.HostnameError:
		return "x509: certificate is for another host", false
	case x509.CertificateInvalidError:
		if e.Reason == x509.Expired {
			return "x509: certificate has expired or is not yet valid", false
		}
		return fmt.Sprintf("x509: certificate is invalid (reason %d)", e.Reason), false
	case *url.Error, *os.SyscallError, *os.PathError, *tls.CertificateVerificationError, *smithy.OperationError:
		return "", false
	case *smithyhttp.RequestSendError:
		return "no answer", false
	case *smithy.DeserializationError:
		return "the answer cannot be read", false
	case *smithy.SerializationError:
		return "the request cannot be written", false
	case interface{ HTTPStatusCode() int }:
		if status := e.HTTPStatusCode(); status != 0 {
			return fmt.Sprintf("HTTP status %d", status), false
		}
		return "", false
	case interface{ ErrorCode() string }:
		return k.code(e.ErrorCode()), false
	case interface{ SQLState() string }: // drivers for PostgreSQL
		if s := e.SQLState(); isSQLState(s) {
			return words(condition(s), fmt.Sprintf("%T, SQLSTATE %s", err, s)), false
		}
	case interface{ Code() int }: // drivers for SQLite
		return words(sqliteText(e.Code()), fmt.Sprintf("%T, code %d", err, e.Code())), false
	case interface{ Timeout() bool }:
		if e.Timeout() {
			return fmt.Sprintf("%T, a timeout", err), false
		}
	}
	return "", true
}

func (k Known) code(code string) string {
	if k.Code != nil && k.Code(code) {
		return "api error " + code
	}
	return "api error with an unknown code"
}

// words returns the text for a database's error code, followed by the code. Without a
// text, it returns only the code.
func words(text, code string) string {
	if text == "" {
		return code
	}
	return text + " (" + code + ")"
}

var operations = []string{"dial", "read", "write", "close", "set", "local error", "remote error"}

func opText(e *net.OpError) string {
	if !slices.Contains(operations, e.Op) {
		return "a network error"
	}
	text := e.Op
	switch e.Net {
	case "tcp", "tcp4", "tcp6", "udp", "udp4", "udp6", "unix":
		text += " " + e.Net
	}
	if a, ok := e.Addr.(*net.TCPAddr); ok && a != nil {
		text += " " + (&net.TCPAddr{IP: a.IP, Port: a.Port}).String()
	}
	return text
}

// dnsText returns the text for a failed DNS lookup. It names only AWS hosts, because any
// other host name may contain a part of an event, such as the name of a tenant.
func dnsText(e *net.DNSError) string {
	host := "a host"
	if awsHost().MatchString(e.Name) {
		host = e.Name
	}
	switch {
	case e.IsNotFound:
		return "lookup of " + host + ": no such host"
	case e.IsTimeout:
		return "lookup of " + host + ": timeout"
	}
	return "lookup of " + host + " failed"
}

// awsHost matches the host names of SQS and of the AWS services that issue credentials,
// such as sqs.us-east-1.amazonaws.com.
var awsHost = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(sqs|sts|oidc|portal\.sso|signin|cognito-identity)` +
		`(\.([a-z]{2}|eusc-de)-((gov|iso|isob|isoe|isof)-)?(north|south|east|west|central|northeast|northwest|southeast|southwest)-[0-9])?` + // the region
		`\.(` + strings.ReplaceAll(strings.Join(queueurl.Domains(), "|"), ".", `\.`) + `)\.?$`)
})
