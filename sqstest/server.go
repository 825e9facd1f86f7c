package sqstest

// Deviations from AWS in this file:
//   - AWS JSON 1.0 only; the older query protocol (F-134) is refused.
//   - AddPermission and RemovePermission are answered as unknown operations.
//   - Signatures, credentials and the request's date are not looked at, so that
//     any client works, also one that lives in virtual time.
//   - The statuses of requests that no SDK makes (no POST, other content type, too
//     large) are HTTP's own, unrecorded.

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

// maxRequestBytes lets a full batch through even if each of its characters is
// escaped as \u00XX, and stops what no sender has reason to send.
const maxRequestBytes = 8 << 20

// Server is the queues of one account, which it puts behind AWS's wire format.
// It is an http.Handler, so that httptest.NewServer or http.Server gives it a
// socket and any SDK can talk to it; [Server.Client] talks to it without one. In
// process it answers every call of *sqs.Client that it knows with the client's
// signature, like a [Queue] and with the same errors: [Server.CreateQueue] makes
// queues, and [Server.Queue] returns the value behind a name, to look into. It is
// safe for concurrent use.
//
// Create one with [NewServer].
type Server struct {
	mu      sync.RWMutex // no other lock is taken while it is held
	queues  map[string]*Queue
	deleted map[string]time.Time // on the clock of the account
	offset  time.Duration
	tasks   []*moveTask

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

// operation decodes one request, runs it and returns the SDK's output type. base
// is the address that the request came to.
type operation func(ctx context.Context, s *Server, base string, body []byte) (any, error)

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

	"SetQueueAttributes":         onServer((*Server).setAttributes),
	"DeleteQueue":                onServer((*Server).deleteQueue),
	"StartMessageMoveTask":       onServer((*Server).startMove),
	"ListMessageMoveTasks":       onServer((*Server).listMoves),
	"CancelMessageMoveTask":      onServer((*Server).cancelMove),
	"CreateQueue":                onAddress((*Server).createQueue),
	"GetQueueUrl":                onAddress((*Server).queueURL),
	"ListQueues":                 onAddress((*Server).listQueues),
	"ListDeadLetterSourceQueues": onAddress((*Server).listSources),
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
	return onAddress(func(s *Server, ctx context.Context, _ string, in *I) (*O, error) { return run(s, ctx, in) })
}

// onAddress is an operation that answers with the URL of a queue. It is the
// address that the request came to, so that an SDK that takes the queue's URL for
// its endpoint comes back here.
func onAddress[I, O any](run func(s *Server, ctx context.Context, base string, in *I) (*O, error)) operation {
	return func(ctx context.Context, s *Server, base string, body []byte) (any, error) {
		in := new(I)
		if err := decode(body, in); err != nil {
			return nil, err
		}
		return run(s, ctx, base, in)
	}
}

func baseOf(r *http.Request) string {
	scheme := r.URL.Scheme
	switch {
	case scheme != "":
	case r.TLS != nil:
		scheme = "https"
	default:
		scheme = "http"
	}
	return scheme + "://" + r.Host
}

// ServeHTTP answers one AWS JSON 1.0 request, POSTed to / or to the path of a
// queue's URL (F-133). It aborts the connection, as net/http documents, to lose an
// answer and when the client has gone. Paths under /_sqsfifo/ are the control
// endpoint, see [Server.Advance], [Queue.Window] and [Queue.Suppressed] and the
// package documentation.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, controlPrefix) {
		s.serveControl(w, r)
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
	if m, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || m != contentType {
		return nil, unknownOperation.because("The content type is not %s; the query protocol is not served.", contentType)
	}
	if _, ok := queueName(r.URL.Path); !ok && r.URL.Path != "/" {
		return nil, unknownOperation.because("The path is neither / nor that of a queue's URL.")
	}
	target := r.Header.Get("X-Amz-Target")
	name, ok := strings.CutPrefix(target, "AmazonSQS.")
	run := operations[name]
	if !ok || run == nil {
		return nil, unknownOperation.because("The operation %q is not served.", target)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, requestTooLarge.because("The request is longer than %d bytes.", tooLarge.Limit)
	case err != nil:
		return nil, serializationFailed.because("%v", err)
	}
	return run(r.Context(), s, baseOf(r), body)
}
