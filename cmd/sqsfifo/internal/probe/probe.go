package probe

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
)

// Client is the subset of *sqs.Client that a probe calls.
type Client interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// Config describes a probe.
type Config struct {
	Client   Client
	QueueURL string

	// Source is the event_source of the messages: <organization>.<domain>.<pipeline>.
	Source string

	// Window adds a check that takes five minutes. It finds out whether the queue
	// recognises a duplicate for five minutes and not longer.
	Window bool

	// Clean makes Run receive and delete its messages at the end.
	Clean bool
}

// Result is the result of a check.
type Result string

// Differs means that the queue behaves in another way than package sqsfifo expects.
const (
	AsExpected Result = "as_expected"
	Differs    Result = "differs"
	Note       Result = "note"
	NotTried   Result = "not_tried"
)

// Check is one test of the queue with its result.
type Check struct {
	Name   string `json:"check"`
	Result Result `json:"result"`
	Answer string `json:"answer"`
}

// Report is the result of a probe.
type Report struct {
	Run    string // ID of the run, part of each of its messages
	Groups []string
	Checks []Check

	// Sent is the number of this run's messages that SQS confirmed, and Deleted the number
	// that Clean deleted. Returned counts how often Clean received another sender's message
	// and tried to make the message visible again.
	Sent, Deleted, Returned int
}

// Differs reports whether any check has the result Differs.
func (r *Report) Differs() bool {
	for _, c := range r.Checks {
		if c.Result == Differs {
			return true
		}
	}
	return false
}

// prober is the state of one call of Run.
type prober struct {
	Config
	report  Report
	ids     map[string]bool // message IDs of this run
	attrs   map[string]string
	hashing bool // the queue accepts messages without a deduplication ID and hashes their bodies
}

// Run tests a queue with all checks. If it returns an error, the report has the checks made
// before the error.
func Run(ctx context.Context, c Config) (*Report, error) {
	var random [6]byte
	_, _ = rand.Read(random[:]) // never fails (crypto/rand)
	p := &prober{Config: c, ids: map[string]bool{}}
	p.report.Run = hex.EncodeToString(random[:])
	p.report.Groups = []string{"sqsfifo-probe-" + p.report.Run, "sqsfifo-probe-" + p.report.Run + "-2"}
	err := p.run(ctx)
	if c.Clean && len(p.ids) > 0 {
		// The messages of the run are deleted even if a check failed.
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, p.cleanUp(limit))
	}
	p.report.Sent = len(p.ids)
	return &p.report, err
}

func (p *prober) run(ctx context.Context) error {
	steps := []func(context.Context) error{p.attributes, p.contentBased, p.sameMessage, p.ownHash, p.otherBody, p.attributeOnly, p.otherGroup, p.hiddenPayload}
	if p.Window {
		steps = append(steps, p.window)
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (p *prober) add(name string, v Result, format string, args ...any) {
	answer := fmt.Sprintf(format, args...)
	if v == Differs {
		answer += "; ask again after a minute, which a change of an attribute takes, and then use a queue of SQS or another emulator"
	}
	p.report.Checks = append(p.report.Checks, Check{name, v, answer})
}

// body returns the body of the message with this name: an envelope whose payload has the
// name and the run's ID. Messages with different names have different bodies.
func (p *prober) body(name string) (string, error) {
	at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	key, err := sqsfifo.JoinKey("sqsfifo-probe", p.report.Run, name)
	if err != nil {
		return "", err
	}
	body, err := canonicaljson.Marshal(sqsfifo.Envelope[map[string]string]{
		DedupeKey: key, EventID: sqsfifo.DeriveEventID(p.Source, key, at), EventSource: p.Source, EventTime: at,
		Payload: map[string]string{"sqsfifo_probe": p.report.Run, "name": name},
	})
	return string(body), err
}

type message struct {
	name       string // distinguishes the body from the bodies of other messages
	group      int
	id         string // explicit deduplication ID; "" for none
	attributes map[string]types.MessageAttributeValue
}

type stored struct{ id, sequence string }

// send sends a message. If the queue does not hash bodies and the message has no
// deduplication ID, send uses the hash of the body as the ID.
func (p *prober) send(ctx context.Context, m message) (stored, error) {
	body, err := p.body(m.name)
	if err != nil {
		return stored{}, err
	}
	in := &sqs.SendMessageInput{
		QueueUrl: &p.QueueURL, MessageBody: &body, MessageGroupId: &p.report.Groups[m.group], MessageAttributes: m.attributes,
	}
	if m.id == "" && !p.hashing {
		m.id = sqsfifo.BodyHash(body)
	}
	if m.id != "" {
		in.MessageDeduplicationId = &m.id
	}
	out, err := p.Client.SendMessage(ctx, in)
	if err != nil {
		return stored{}, fmt.Errorf("sqs:SendMessage: %w", err)
	}
	s := stored{aws.ToString(out.MessageId), aws.ToString(out.SequenceNumber)}
	p.ids[s.id] = true
	return s, nil
}

// refusedBy returns the error code of SQS's refusal, or "".
func refusedBy(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

func denied(err error) bool { return strings.HasPrefix(refusedBy(err), "AccessDenied") }
