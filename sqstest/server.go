package sqstest

// Deviations from AWS in this file:
//   - AWS JSON 1.0 only. A request in the older query protocol is refused in XML (F-134).
//   - GET / answers a health check.
//   - Signatures, credentials and the request's date are not checked, so any client works,
//     also in a testing/synctest bubble, where the year is 2000.
//   - Requests that SDKs never send (a method other than POST, an unknown content type,
//     more than 8 MiB) get an ordinary HTTP status.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

// maxRequestBytes allows a full batch even if each character is escaped as \u00XX. No
// sender needs more.
const maxRequestBytes = 8 << 20

// Server holds the queues of one account and serves them in AWS's wire format. A Server is
// safe for concurrent use. Create a server with [NewServer].
//
// A Server is an http.Handler: with httptest.NewServer or http.Server any SDK can use it.
// [Server.Client] returns an SDK client that uses the server without a socket.
//
// For calls in process, a Server has a method for each supported call of *sqs.Client, with
// the same name, signature and errors. [Server.CreateQueue] makes a queue, and
// [Server.Queue] returns a queue by name.
type Server struct {
	mu      sync.RWMutex // no other lock is taken while mu is held
	queues  map[string]*Queue
	deleted map[string]time.Time // time of each delete, by name, on the account's clock
	offset  time.Duration
	tasks   []*moveTask
	usage   *usage // nil without bounds

	defaults Config // of queues made by CreateQueue

	reading atomic.Int64 // total size of the request bodies being read

	starting sync.Mutex // held while a message move task is added
}

// NewServer returns a server for the given queues; without queues the account is empty. The
// queues stay usable in process. Of several queues with one name, the last one is served.
func NewServer(queues ...*Queue) *Server {
	s := &Server{queues: make(map[string]*Queue, len(queues)), deleted: map[string]time.Time{}}
	for _, q := range queues {
		if q != nil {
			s.queues[q.config.Name] = q
		}
	}
	return s
}

// Queue returns the queue with the name, or nil.
func (s *Server) Queue(name string) *Queue {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.queues[name]
}

// Queues returns the queues in the order of their names.
func (s *Server) Queues() []*Queue {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []*Queue
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if q := s.queues[name]; !q.gone.Load() {
			out = append(out, q)
		}
	}
	return out
}

// SetDefaults sets the fields of c that no attribute of AWS sets, such as Account and
// NoWaits, in each queue that CreateQueue makes from now on. Its other fields are the
// defaults of attributes that CreateQueue does not name. Name, Standard,
// DisableContentBasedDeduplication and DeadLetterQueue are ignored.
func (s *Server) SetDefaults(c Config) error {
	c.Name, c.Standard, c.DeadLetterQueue, c.MaxReceiveCount = "", false, nil, 0
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.defaults = c
	return nil
}

// Advance moves the clocks of all queues forward by d, including queues made later. A d
// of zero or less changes nothing. See [Queue.Advance].
func (s *Server) Advance(d time.Duration) {
	if d <= 0 {
		return
	}
	s.mu.Lock()
	s.offset = ahead(s.offset, d)
	s.mu.Unlock()
	for _, q := range s.Queues() {
		q.Advance(d)
	}
}

// Client returns a real *sqs.Client whose requests the server answers in memory. The client
// has no socket, so it works inside a testing/synctest bubble. Signing, retries,
// serialization and checksums are the SDK's own.
//
// Options are applied last; an option that sets HTTPClient bypasses the server.
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

// Client returns a client of a [Server] with only this queue.
func (q *Queue) Client(optFns ...func(*sqs.Options)) *sqs.Client {
	return NewServer(q).Client(optFns...)
}

// operation decodes one request, runs it and returns the SDK's output type.
type operation func(ctx context.Context, s *Server, body []byte) (any, error)

// operations is keyed by the text after "AmazonSQS." in X-Amz-Target.
var operations = map[string]operation{
	"SendMessage":                  onNamedQueue((*Queue).send),
	"SendMessageBatch":             onNamedQueue((*Queue).sendBatch),
	"ReceiveMessage":               onNamedQueue((*Queue).receive),
	"DeleteMessage":                onNamedQueue((*Queue).deleteMessage),
	"DeleteMessageBatch":           onNamedQueue((*Queue).deleteBatch),
	"ChangeMessageVisibility":      onNamedQueue((*Queue).changeVisibility),
	"ChangeMessageVisibilityBatch": onNamedQueue((*Queue).changeVisibilityBatch),
	"GetQueueAttributes":           onNamedQueue((*Queue).attributes),
	"PurgeQueue":                   onNamedQueue((*Queue).purge),
	"TagQueue":                     onNamedQueue((*Queue).tag),
	"UntagQueue":                   onNamedQueue((*Queue).untag),
	"ListQueueTags":                onNamedQueue((*Queue).listTags),

	"AddPermission":    onNamedQueue((*Queue).addPermission),
	"RemovePermission": onNamedQueue((*Queue).removePermission),

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

// onNamedQueue returns an operation. The operation decodes an input and passes it to the
// function `run`, together with the queue named by the input's QueueUrl.
func onNamedQueue[I, O any](run func(*Queue, context.Context, *I) (*O, error)) operation {
	return onServer(func(s *Server, ctx context.Context, in *I) (*O, error) {
		u := queueURLOf(in)
		if u == nil {
			return nil, missing("QueueUrl")
		}
		return run(s.queueAt(u), ctx, in)
	})
}

// onServer returns an operation. The operation decodes an input and passes it to the
// function `run`, together with the server. onServer is for operations on the server or on
// several queues, such as CreateQueue.
func onServer[I, O any](run func(*Server, context.Context, *I) (*O, error)) operation {
	return func(ctx context.Context, s *Server, body []byte) (any, error) {
		in := new(I)
		if err := decode(body, in); err != nil {
			return nil, err
		}
		return run(s, ctx, in)
	}
}

// ServeHTTP answers one AWS JSON 1.0 request, POSTed to / or to the path of a queue's URL
// (F-133). It answers GET / for health checks.
//
// Paths under /_sqsfifo/ are the control endpoint, see [Server.Advance], [Queue.Window],
// [Queue.Suppressed] and the package documentation.
//
// If a fault breaks the connection, or if the client has gone, ServeHTTP may panic with
// http.ErrAbortHandler. net/http then aborts the connection.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, controlPrefix):
		s.serveControl(w, r)
		return
	case s.serveLocalStack(w, r) || refuseOtherService(w, r):
		return
	case isQuery(r):
		refuseXML(w, unsupportedOperation, "This fake does not serve the query protocol. Use an SDK that speaks AWS JSON 1.0, such as boto3 1.28.82, aws-sdk-go 1.47.6 or later.")
		return
	case r.URL.Path == "/" && r.Header.Get("X-Amz-Target") == "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"status":"ok"}`+"\n")
		return
	}
	w.Header().Set(requestIDHeader, uuid.NewString())
	// The SDK compares the Date header with the client's clock, so do not use a queue's
	// clock, which may be ahead.
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
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
	if _, _, ok := queueName(r.URL.Path); r.URL.Path != "/" && !ok {
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

// accounted is a reader of one request body. It fails if the bodies of all requests being
// read exceed maxReading bytes in total.
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

// isQuery reports whether a request uses the older query protocol.
func isQuery(r *http.Request) bool {
	return mediaType(r) == "application/x-www-form-urlencoded" || r.URL.RawQuery != "" && r.URL.Query().Has("Action")
}

// mediaType returns the media type of the request's body without parameters, or "" if
// the header is malformed.
func mediaType(r *http.Request) string {
	text := r.Header.Get("Content-Type")
	if text == contentType { // SDKs send exactly this
		return text
	}
	m, _, err := mime.ParseMediaType(text)
	if err != nil {
		return ""
	}
	return m
}

// refuseXML refuses a request in the XML of the older query protocol, so that its client can
// show the error text. The text is the fake's own, not AWS's.
func refuseXML(w http.ResponseWriter, class *errorClass, text string) {
	id := uuid.NewString()
	w.Header().Set(requestIDHeader, id)
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(class.status)
	fmt.Fprintf(w, `<?xml version="1.0"?>
<ErrorResponse xmlns="http://queue.amazonaws.com/doc/2012-11-05/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message><Detail/></Error><RequestId>%s</RequestId></ErrorResponse>
`, class.query, text, id)
}

// refuseOtherService refuses a request that its signature addresses to another service of
// AWS. It reports whether it did.
func refuseOtherService(w http.ResponseWriter, r *http.Request) bool {
	_, service := scopeOf(r.Header.Get("Authorization"))
	if service == "" || service == "sqs" {
		return false
	}
	text := fmt.Sprintf("This fake serves only SQS, and the request is for the service %q. Point the endpoint of that client elsewhere; AWS_ENDPOINT_URL_SQS, unlike AWS_ENDPOINT_URL, is read by SQS clients alone.", service)
	if r.Header.Get("X-Amz-Target") == "" {
		refuseXML(w, unknownOperation, text)
	} else {
		writeError(w, unknownOperation.because("%s", text))
	}
	return true
}
