// Package identity has call sites with attributes of all kinds: what tells events
// apart, and what tells requests, users, hosts and settings apart.
package identity

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
)

const readings = "https://sqs.eu-north-1.amazonaws.com/42/readings.fifo"

type reading struct {
	ID      string  `json:"id"`
	Station string  `json:"station"`
	Celsius float64 `json:"celsius"`
	Batch   string  `json:"-"`
}

type settings struct{ Region, ReplyTo string }

type station struct {
	client *sqs.Client
	region string
	host   string
}

func mark(label string) types.MessageAttributeValue {
	return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(label)}
}

func (s *station) send(ctx context.Context, route, text string, labels map[string]types.MessageAttributeValue) error {
	_, err := s.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(readings), MessageGroupId: &route, MessageBody: &text, MessageAttributes: labels,
	})
	return err
}

func (r reading) text() string {
	text, _ := json.Marshal(r)
	return string(text)
}

// value is what was measured, without what tells two measurements apart.
func (r reading) value() string { return strconv.FormatFloat(r.Celsius, 'f', 1, 64) }

// site correlation ID: right
func (s *station) correlation(ctx context.Context, r reading, correlationID string) error {
	return s.send(ctx, r.Station, r.text(), map[string]types.MessageAttributeValue{"correlation_id": mark(correlationID)})
}

// site request ID of a header: right
func (s *station) request(ctx context.Context, req *http.Request, r reading) error {
	return s.send(ctx, r.Station, r.text(), map[string]types.MessageAttributeValue{"X-Request-Id": mark(req.Header.Get("X-Request-Id"))})
}

type requestKey struct{}

// site request ID of a context: right
func (s *station) requestOfContext(ctx context.Context, r reading) error {
	id, _ := ctx.Value(requestKey{}).(string)
	return s.send(ctx, r.Station, r.text(), map[string]types.MessageAttributeValue{"request_id": mark(id)})
}

// site fresh request ID: right
func (s *station) freshRequest(ctx context.Context, r reading) error {
	return s.send(ctx, r.Station, r.text(), map[string]types.MessageAttributeValue{"requestId": mark(uuid.NewString())})
}

// site user: right
func (s *station) user(ctx context.Context, r reading, userID string) error {
	return s.send(ctx, r.Station, r.text(), map[string]types.MessageAttributeValue{"user_id": mark(userID)})
}

// site host: right
func (s *station) hostName(ctx context.Context, r reading) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{"host": mark(host)})
}

// site region of a setting: right
func (s *station) regionOf(ctx context.Context, r reading) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{"region": mark(s.region), "node": mark(s.host)})
}

// site region of an argument: right
func (s *station) regionGiven(ctx context.Context, r reading, region string) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{"aws_region": mark(region)})
}

// site environment variable: right
func (s *station) environment(ctx context.Context, r reading) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{"stage": mark(os.Getenv("STAGE")), "job_name": mark(os.Getenv("JOB_NAME"))})
}

// site reply address of the settings: right
func (s *station) replyTo(ctx context.Context, cfg settings, r reading) error {
	return s.send(ctx, r.Station, r.text(), map[string]types.MessageAttributeValue{"reply_to": mark(cfg.ReplyTo)})
}

// site setting beside a value: right
func (s *station) setting(ctx context.Context, cfg *settings, r reading) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{"deployment": mark(cfg.Region)})
}

// site label beside an ID: right
func (s *station) label(ctx context.Context, r reading, campaign string) error {
	return s.send(ctx, r.Station, r.text(), map[string]types.MessageAttributeValue{"campaign": mark(campaign)})
}

type measured struct {
	EventID string `json:"event_id"`
	Celsius string `json:"celsius"`
}

// site ID of the transport beside an event ID: right
func (s *station) transport(ctx context.Context, r reading, messageID string) error {
	text, _ := json.Marshal(measured{EventID: r.ID, Celsius: r.value()})
	return s.send(ctx, r.Station, string(text), map[string]types.MessageAttributeValue{"message_id": mark(messageID)})
}

// site name of the job beside its ID: right
func (s *station) jobName(ctx context.Context, jobID, name, station string) error {
	text, _ := json.Marshal(map[string]string{"job_id": jobID, "station": station})
	return s.send(ctx, station, string(text), map[string]types.MessageAttributeValue{"job_name": mark(name)})
}

// site trace context: right
func (s *station) traced(ctx context.Context, r reading, parent string) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{"traceparent": mark(parent), "b3": mark(parent)})
}

// site version of the schema: right
func (s *station) versioned(ctx context.Context, r reading, version string) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{"schemaVersion": mark(version), "Content-Type": mark("text/plain")})
}

// site time of the send: right
func (s *station) derived(ctx context.Context, r reading) error {
	return s.send(ctx, r.Station, r.text(), map[string]types.MessageAttributeValue{"frost": mark(strconv.FormatBool(r.Celsius < 0))})
}

// site correlation ID without another ID: right
func (s *station) correlationAlone(ctx context.Context, r reading, correlationID string) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{"x-correlation-id": mark(correlationID), "session_id": mark(correlationID)})
}

// site event ID beside a value: wrong SF001
func (s *station) eventID(ctx context.Context, r reading) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{
		"event_id": mark(r.ID), // want `SF001: attribute "event_id" identifies the event`
	})
}

// site event ID beside the ID of an entity: wrong SF001
func (s *station) eventOfEntity(ctx context.Context, r reading, eventID string) error {
	return s.send(ctx, r.Station, r.text(), map[string]types.MessageAttributeValue{
		"event_id": mark(eventID), // want `SF001: attribute "event_id" identifies the event`
	})
}

// site key of a job: wrong SF001
func (s *station) job(ctx context.Context, r reading) error {
	return s.send(ctx, r.Station, r.text(), map[string]types.MessageAttributeValue{
		"job_id": mark(r.Batch), // want `SF001: attribute "job_id"`
	})
}

// site transaction: wrong SF001
func (s *station) transaction(ctx context.Context, r reading, txn string) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{
		"transactionId": mark(txn), // want `SF001: attribute "transactionId"`
	})
}

// site kind of the event: wrong SF001
func (s *station) kind(ctx context.Context, r reading, kind string) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{
		"kind": mark(kind), // want `SF001: warning: attribute "kind" is not in the body`
	})
}

// site user beside a value: wrong SF001
func (s *station) userAlone(ctx context.Context, r reading, userID string) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{
		"observer": mark(userID), // want `SF001: warning: attribute "observer" is not in the body`
	})
}

// site name of the job alone: wrong SF001
func (s *station) jobNameAlone(ctx context.Context, name, station string, args []string) error {
	text, _ := json.Marshal(args)
	return s.send(ctx, station, string(text), map[string]types.MessageAttributeValue{
		"job_name": mark(name), // want `SF001: attribute "job_name"`
	})
}

// site several attributes: wrong SF001
func (s *station) several(ctx context.Context, r reading) error {
	return s.send(ctx, r.Station, r.value(), map[string]types.MessageAttributeValue{
		"campaign": mark(r.Batch),
		"event_id": mark(r.ID), // want `SF001: attribute "event_id" identifies the event .*also "campaign"`
	})
}

// site constant body: wrong SF001
func (s *station) constantBody(ctx context.Context, r reading) error {
	return s.send(ctx, r.Station, "measured", map[string]types.MessageAttributeValue{
		"event_id": mark(r.ID), // want `SF001: attribute "event_id"`
	})
}
