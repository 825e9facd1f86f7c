package sqstest

// Deviations from AWS in this file:
//   - AWS JSON 1.0 only; the older query protocol (F-134) is refused in XML, so that
//     its clients show the text.
//   - GET / answers a health check, which AWS does not have.
//   - Signatures, credentials and the request's date are not looked at, so that
//     any client works, also one that lives in virtual time.
//   - The statuses of requests that no SDK makes (no POST, other content type, too
//     large) are HTTP's own, unrecorded.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

// maxRequestBytes lets a full batch through even if each of its characters is
// escaped as \u00XX, and stops what no sender has reason to send.
const maxRequestBytes = 8 << 20

// Server holds the queues of one account and serves them in AWS's wire format.
// It is an http.Handler, so that httptest.NewServer or http.Server gives it a
// socket and any SDK can talk to it; [Server.Client] talks to it without one. In
// process it answers every call of *sqs.Client that it knows with the client's
// signature, like a [Queue] and with the same errors: [Server.CreateQueue] makes
// queues, and [Server.Queue] returns the queue of a name, to look into. It is
// safe for concurrent use.
//
// Create one with [NewServer].
type Server struct {
	mu      sync.RWMutex // no other lock is taken while it is held
	queues  map[string]*Queue
	deleted map[string]time.Time // on the clock of the account
	offset  time.Duration
	tasks   []*moveTask
	usage   *usage // nil without bounds

	reading atomic.Int64 // bytes of bodies of requests

	starting sync.Mutex // of move tasks, one at a time
}

// NewServer returns a server of the given queues, which stay usable in process.
// Of queues with the same name the last is served. None is an account without
// queues.
func NewServer(queues ...*Queue) *Server {
	s := &Server{queues: make(map[string]*Queue, len(queues)), deleted: map[string]time.Time{}}
	for _, q := range queues {
		if q != nil {
			s.queues[q.config.Name] = q
		}
	}
	return s
}

// Queue returns the queue of the name, nil if the server has none.
func (s *Server) Queue(name string) *Queue {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.queues[name]
}

// Queues returns the queues in the order of their names.
func (s *Server) Queues() []*Queue { return s.all() }

// Advance moves the clocks of all queues forward by d, those of queues that are
// made later too. A d that is not positive changes nothing. See [Queue.Advance].
func (s *Server) Advance(d time.Duration) {
	if d <= 0 {
		return
	}
	s.mu.Lock()
	s.offset = ahead(s.offset, d)
	s.mu.Unlock()
	for _, q := range s.all() {
		q.Advance(d)
	}
}

// Client returns a real *sqs.Client whose requests the server answers in memory:
// signing, retries, serialization and checksums are the SDK's own, only the socket
// is missing, which is what lets it work inside a testing/synctest bubble. Options
// are applied last; one that sets HTTPClient leaves the server.
func (s *Server) Client(optFns ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       Region,
		BaseEndpoint: aws.String(endpoint),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "sqstest", SecretAccessKey: "sqstest", Source: "sqstest"}, nil
		}),
		HTTPClient: inMemory{s},
	}, optFns...)
}

// Client returns a client of a [Server] that serves this queue alone.
func (q *Queue) Client(optFns ...func(*sqs.Options)) *sqs.Client {
	return NewServer(q).Client(optFns...)
}

// operation decodes one request, runs it and returns the SDK's output type.
type operation func(ctx context.Context, s *Server, body []byte) (any, error)

// operations is keyed by what follows "AmazonSQS." in X-Amz-Target.
var operations = map[string]operation{
	"SendMessage":                  on(func(in *sendRequest) *string { return in.QueueUrl }, (*Queue).send),
	"SendMessageBatch":             on(func(in *sendBatchRequest) *string { return in.QueueUrl }, (*Queue).sendBatch),
	"ReceiveMessage":               on(func(in *receiveRequest) *string { return in.QueueUrl }, (*Queue).receive),
	"DeleteMessage":                on(func(in *sqs.DeleteMessageInput) *string { return in.QueueUrl }, (*Queue).deleteMessage),
	"DeleteMessageBatch":           on(func(in *sqs.DeleteMessageBatchInput) *string { return in.QueueUrl }, (*Queue).deleteBatch),
	"ChangeMessageVisibility":      on(func(in *changeRequest) *string { return in.QueueUrl }, (*Queue).changeVisibility),
	"ChangeMessageVisibilityBatch": on(func(in *sqs.ChangeMessageVisibilityBatchInput) *string { return in.QueueUrl }, (*Queue).changeVisibilityBatch),
	"GetQueueAttributes":           on(func(in *sqs.GetQueueAttributesInput) *string { return in.QueueUrl }, (*Queue).attributes),
	"PurgeQueue":                   on(func(in *sqs.PurgeQueueInput) *string { return in.QueueUrl }, (*Queue).purge),
	"TagQueue":                     on(func(in *sqs.TagQueueInput) *string { return in.QueueUrl }, (*Queue).tag),
	"UntagQueue":                   on(func(in *sqs.UntagQueueInput) *string { return in.QueueUrl }, (*Queue).untag),
	"ListQueueTags":                on(func(in *sqs.ListQueueTagsInput) *string { return in.QueueUrl }, (*Queue).listTags),

	"AddPermission":    on(func(in *sqs.AddPermissionInput) *string { return in.QueueUrl }, (*Queue).addPermission),
	"RemovePermission": on(func(in *sqs.RemovePermissionInput) *string { return in.QueueUrl }, (*Queue).removePermission),

	"SetQueueAttributes":         onServer((*Server).setAttributes),
	"DeleteQueue":                onServer((*Server).deleteQueue),
	"StartMessageMoveTask":       onServer((*Server).startMove),
	"ListMessageMoveTasks":       onServer((*Server).listMoves),
	"CancelMessageMoveTask":      onServer((*Server).cancelMove),
	"CreateQueue":                onServer((*Server).createQueue),
	"GetQueueUrl":                onServer((*Server).queueURL),
	"ListQueues":                 onServer((*Server).listQueues),
	"ListDeadLetterSourceQueues": onServer((*Server).listSources),
}

// on is an operation of one queue.
func on[I, O any](queueURL func(*I) *string, run func(*Queue, context.Context, *I) (*O, error)) operation {
	return onServer(func(s *Server, ctx context.Context, in *I) (*O, error) {
		u := queueURL(in)
		if u == nil {
			return nil, missing("QueueUrl")
		}
		return run(s.at(u), ctx, in)
	})
}

// onServer is an operation of the account.
func onServer[I, O any](run func(*Server, context.Context, *I) (*O, error)) operation {
	return func(ctx context.Context, s *Server, body []byte) (any, error) {
		in := new(I)
		if err := decode(body, in); err != nil {
			return nil, err
		}
		return run(s, ctx, in)
	}
}

// ServeHTTP answers one AWS JSON 1.0 request, POSTed to / or to the path of a
// queue's URL (F-133), and GET / for health checks. It aborts the connection, as net/http documents, to lose an
// answer and when the client has gone. Paths under /_sqsfifo/ are the control
// endpoint, see [Server.Advance], [Queue.Window] and [Queue.Suppressed] and the
// package documentation.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, controlPrefix):
		s.serveControl(w, r)
		return
	case isQuery(r):
		refuseQuery(w)
		return
	case r.URL.Path == "/" && r.Header.Get("X-Amz-Target") == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"status":"ok"}`+"\n")
		return
	}
	w.Header().Set(requestIDHeader, uuid.NewString())
	out, err := s.serve(w, r)
	var b []byte
	if err == nil {
		b, err = encode(out)
	}
	var (
		refusal   *apiError
		truncated *truncatedError
	)
	switch {
	case err == nil:
		writeAnswer(w, http.StatusOK, b)
	case errors.As(err, &refusal):
		writeError(w, refusal)
	case errors.As(err, &truncated):
		if b, err = encode(truncated.out); err == nil {
			truncateAnswer(w, b)
		}
	case errors.Is(err, syscall.ECONNRESET):
		resetConnection(w)
	default:
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) (any, error) {
	if r.Method != http.MethodPost {
		return nil, unknownOperation.because("The method is %s; AWS JSON 1.0 uses POST.", r.Method)
	}
	if mediaType(r) != contentType {
		return nil, unknownOperation.because("The content type is not %s; the query protocol is not served.", contentType)
	}
	if _, ok := queueName(r.URL.Path); r.URL.Path != "/" && !ok {
		return nil, unknownOperation.because("The path is neither / nor that of a queue's URL.")
	}
	target := r.Header.Get("X-Amz-Target")
	name, ok := strings.CutPrefix(target, "AmazonSQS.")
	run := operations[name]
	if !ok || run == nil {
		return nil, unknownOperation.because("The operation %q is not served.", target)
	}
	in := &accounted{from: http.MaxBytesReader(w, r.Body, maxRequestBytes), total: &s.reading}
	defer in.release()
	body, err := io.ReadAll(in)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, requestTooLarge.because("The request is longer than %d bytes.", tooLarge.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.Header().Set("Connection", "close")
		return nil, requestTimeout.because("The body of the request did not arrive in time.")
	case errors.Is(err, errTooMuchReading):
		w.Header().Set("Connection", "close")
		return nil, serviceUnavailable.because("The fake is reading other requests of %d bytes. Please try again.", maxReading)
	case err != nil:
		return nil, serializationFailed.because("The body of the request did not arrive whole.")
	}
	return run(withCaller(r), s, body)
}

var errTooMuchReading = errors.New("too many bodies at a time")

// accounted reads a body as long as all bodies together fit into maxReading.
type accounted struct {
	from  io.Reader
	total *atomic.Int64
	read  int64
}

func (a *accounted) Read(p []byte) (int, error) {
	n, err := a.from.Read(p)
	a.read += int64(n)
	if a.total.Add(int64(n)) > maxReading {
		return n, errTooMuchReading
	}
	return n, err
}

func (a *accounted) release() { a.total.Add(-a.read) }

// isQuery reports whether a request is of the older query protocol.
func isQuery(r *http.Request) bool {
	return mediaType(r) == "application/x-www-form-urlencoded" || r.URL.RawQuery != "" && r.URL.Query().Has("Action")
}

// mediaType is that of the request's body, without its parameters, "" if it is malformed.
func mediaType(r *http.Request) string {
	text := r.Header.Get("Content-Type")
	if text == contentType { // as SDKs send it
		return text
	}
	m, _, err := mime.ParseMediaType(text)
	if err != nil {
		return ""
	}
	return m
}

// refuseQuery answers as the query protocol does, whose clients read nothing else.
// The text is unrecorded.
func refuseQuery(w http.ResponseWriter) {
	id := uuid.NewString()
	w.Header().Set(requestIDHeader, id)
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `<?xml version="1.0"?>
<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message><Detail/></Error><RequestId>%s</RequestId></ErrorResponse>
`, unsupportedOperation.query, "This fake does not serve the query protocol. Use an SDK that speaks AWS JSON 1.0, such as boto3 1.28.82, aws-sdk-go 1.47.6 or later.", id)
}
