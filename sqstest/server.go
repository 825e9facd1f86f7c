package sqstest

// Deviations from AWS in this file:
//   - AWS JSON 1.0 only; the older query protocol (F-134) is refused.
//   - Eight operations; the others are answered as unknown.
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

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/uuid"
)

// maxRequestBytes lets a full batch through even if each of its characters is
// escaped as \u00XX, and stops what no sender has reason to send.
const maxRequestBytes = 8 << 20

// Server puts queues behind AWS's wire format. It is an http.Handler, so that
// httptest.NewServer or http.Server gives it a socket and any SDK can talk to it;
// [Server.Client] talks to it without one. It is safe for concurrent use.
//
// Create one with [NewServer].
type Server struct {
	queues map[string]*Queue
}

// NewServer returns a server of the given queues, which stay usable in process.
// Of queues with the same name the last is served.
func NewServer(queues ...*Queue) *Server {
	s := &Server{queues: make(map[string]*Queue, len(queues))}
	for _, q := range queues {
		if q != nil {
			s.queues[q.config.Name] = q
		}
	}
	return s
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
type operation func(ctx context.Context, s *Server, r *http.Request, body []byte) (any, error)

// operations is keyed by what follows "AmazonSQS." in X-Amz-Target.
var operations = map[string]operation{
	"SendMessage": on(func(in *sqs.SendMessageInput) *string { return in.QueueUrl }, (*Queue).send),
	"SendMessageBatch": on(func(in *sqs.SendMessageBatchInput) *string { return in.QueueUrl },
		(*Queue).sendBatch),
	"ReceiveMessage": on(func(in *receiveRequest) *string { return in.QueueUrl }, (*Queue).receive),
	"DeleteMessage":  on(func(in *sqs.DeleteMessageInput) *string { return in.QueueUrl }, (*Queue).deleteMessage),
	"DeleteMessageBatch": on(func(in *sqs.DeleteMessageBatchInput) *string { return in.QueueUrl },
		(*Queue).deleteBatch),
	"ChangeMessageVisibility": on(func(in *changeRequest) *string { return in.QueueUrl }, (*Queue).changeVisibility),
	"GetQueueAttributes": on(func(in *sqs.GetQueueAttributesInput) *string { return in.QueueUrl },
		(*Queue).attributes),
	"GetQueueUrl": getQueueURL,
}

func on[I, O any](queueURL func(*I) *string, run func(*Queue, context.Context, *I) (*O, error)) operation {
	return func(ctx context.Context, s *Server, _ *http.Request, body []byte) (any, error) {
		in := new(I)
		if err := decode(body, in); err != nil {
			return nil, err
		}
		u := queueURL(in)
		if u == nil {
			return nil, missing("QueueUrl")
		}
		name, _ := queueName(*u)
		q := s.queues[name]
		if q == nil {
			return nil, noSuchQueue()
		}
		return run(q, ctx, in)
	}
}

// getQueueURL answers with the address that the request came to, so that an
// SDK that takes the queue's URL for its endpoint comes back here.
func getQueueURL(ctx context.Context, s *Server, r *http.Request, body []byte) (any, error) {
	in := new(sqs.GetQueueUrlInput)
	if err := decode(body, in); err != nil {
		return nil, err
	}
	q := s.queues[aws.ToString(in.QueueName)]
	if q == nil && in.QueueName != nil {
		return nil, noSuchQueue()
	}
	if q == nil {
		return nil, missing("QueueName")
	}
	out, err := q.queueURL(ctx, in)
	if err != nil {
		return nil, err
	}
	scheme := r.URL.Scheme
	switch {
	case scheme != "":
	case r.TLS != nil:
		scheme = "https"
	default:
		scheme = "http"
	}
	out.QueueUrl = aws.String(scheme + "://" + r.Host + "/" + Account + "/" + q.config.Name)
	return out, nil
}

// ServeHTTP answers one AWS JSON 1.0 request, POSTed to / or to the path of a
// queue's URL (F-133). It aborts the connection, as net/http documents, to lose an
// answer and when the client has gone.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(requestIDHeader, uuid.NewString())
	out, err := s.serve(w, r)
	var b []byte
	if err == nil {
		b, err = encode(out)
	}
	var refusal *apiError
	switch {
	case err == nil:
		writeAnswer(w, http.StatusOK, b)
	case errors.As(err, &refusal):
		writeError(w, refusal)
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
	return run(r.Context(), s, r, body)
}
