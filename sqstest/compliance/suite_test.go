package compliance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest/compliance"
)

// Refresh is the type of the events that the producers of these tests send.
type Refresh struct {
	Tile string         `json:"tile"`
	At   time.Time      `json:"at"`
	Info map[string]int `json:"info"`
}

var refreshes = []Refresh{
	{"p32r29", time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC), map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9, "j": 10}},
	{"p32r29", time.Date(2025, 12, 20, 0, 0, 0, 0, time.UTC), map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9, "j": 10}},
}

func identifyRefresh(r Refresh) (sqsfifo.Identity, error) {
	key, err := sqsfifo.JoinKey("soil", r.Tile, r.At.Format(time.RFC3339))
	return sqsfifo.Identity{DedupeKey: key, Group: r.Tile, Time: r.At}, err
}

// sendRefresh is the Send function of a producer without defects.
func sendRefresh(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
	return sendWith(ctx, client, queueURL, r, identifyRefresh)
}

func sendWith(ctx context.Context, client *sqs.Client, queueURL string, r Refresh, identify func(Refresh) (sqsfifo.Identity, error)) error {
	producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[Refresh]{QueueURL: queueURL, Source: "kfm.soils.refresh", Identify: identify})
	if err != nil {
		return err
	}
	if _, err := producer.Send(ctx, r); err != nil {
		return err
	}
	return producer.Close(ctx)
}

func TestCompliantProducerPasses(t *testing.T) {
	compliance.TestProducer(t, compliance.Suite[Refresh]{Send: sendRefresh, Events: refreshes})
}

// The events of this producer are from the organization acme, which the suite takes from
// the first message. A suite for another organization fails, and so does a producer whose
// events have two organizations.
func TestOrganization(t *testing.T) {
	send := func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
		producer, err := sqsfifo.NewProducer(client, sqsfifo.Config[Refresh]{
			QueueURL: queueURL, Organization: "acme", Source: "acme.soils.refresh", Identify: identifyRefresh,
		})
		if err != nil {
			return err
		}
		if _, err := producer.Send(ctx, r); err != nil {
			return err
		}
		return producer.Close(ctx)
	}
	compliance.TestProducer(t, compliance.Suite[Refresh]{Send: send, Events: refreshes})
	compliance.TestProducer(t, compliance.Suite[Refresh]{Send: send, Events: refreshes, Organization: "acme"})

	synctest.Test(t, func(t *testing.T) {
		failures, err := compliance.Failures(t.Context(), compliance.Suite[Refresh]{Send: send, Events: refreshes, Organization: "kfm"})
		require.NoError(t, err)
		require.ErrorContains(t, failures["Envelope Contract"], `of the organization "acme"`)
		failures, err = compliance.Failures(t.Context(), compliance.Suite[Refresh]{Events: refreshes, Send: func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
			if r.At.Equal(refreshes[1].At) {
				return sendRefresh(ctx, client, queueURL, r)
			}
			return send(ctx, client, queueURL, r)
		}})
		require.NoError(t, err)
		require.ErrorContains(t, failures["Envelope Contract"], `of the organization "kfm"`)
		_, err = compliance.Failures(t.Context(), compliance.Suite[Refresh]{Send: send, Events: refreshes, Organization: "Acme"})
		require.ErrorContains(t, err, `the organization "Acme"`)
	})
}

// raw sends a body with the SDK alone, as a producer without package sqsfifo does.
func raw(ctx context.Context, client *sqs.Client, queueURL, group, body string, attributes map[string]string) error {
	in := &sqs.SendMessageInput{QueueUrl: &queueURL, MessageGroupId: &group, MessageBody: &body}
	for name, value := range attributes {
		if in.MessageAttributes == nil {
			in.MessageAttributes = map[string]types.MessageAttributeValue{}
		}
		in.MessageAttributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
	}
	_, err := client.SendMessage(ctx, in)
	return err
}

// envelope returns a message body in canonical form, made without this module's
// encoder.
func envelope(key, id string, at time.Time, payload string) string {
	return fmt.Sprintf(`{"dedupe_key":%q,"event_id":%q,"event_source":"kfm.soils.refresh","event_time":%q,"payload":%s}`,
		key, id, at.UTC().Format(time.RFC3339Nano), payload)
}

func payloadOf(t *testing.T, r Refresh) string {
	t.Helper()
	out, err := json.Marshal(map[string]any{"at": r.At, "info": r.Info, "tile": r.Tile})
	require.NoError(t, err)
	return string(out)
}

// unordered writes the members in the order of the map's iteration.
func unordered(m map[string]int) string {
	var b strings.Builder
	for k, v := range m {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%d", k, v)
	}
	return "{" + b.String() + "}"
}

func withoutRetries(c *sqs.Client) *sqs.Client {
	return sqs.New(c.Options(), func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} })
}

// Each of these producers has one defect and fails exactly one case.
func TestBrokenProducersFailTheirCase(t *testing.T) {
	const stableID = "0193917a-6b80-7c3e-9a5d-2f1b8c4d6e70"
	keyOf := func(r Refresh) string { return "soil|" + r.At.Format(time.RFC3339) }
	sends, parked := 0, []Refresh(nil)
	for _, tc := range []struct {
		name, fails, says string
		send              func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error
	}{
		{
			"random event_id", "Replay Window Collision", "the member /event_id differs; the first byte that differs",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				return raw(ctx, client, queueURL, r.Tile, envelope(keyOf(r), uuid.Must(uuid.NewV7()).String(), r.At, payloadOf(t, r)), nil)
			},
		},
		{
			"time.Now in event_time", "Determinism Over Time", "clock reading",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				return sendWith(ctx, client, queueURL, r, func(r Refresh) (sqsfifo.Identity, error) {
					id, err := identifyRefresh(r)
					id.Time = time.Now()
					return id, err
				})
			},
		},
		{
			"key only in an attribute", "Attribute Ignorance", "unique_key",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				body := envelope("soil", stableID, refreshes[0].At, `{"tile":"p32r29"}`)
				return raw(ctx, client, queueURL, r.Tile, body, map[string]string{"unique_key": keyOf(r)})
			},
		},
		{
			"key only in an attribute without an identity name", "Attribute Ignorance", "differ in attributes alone",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				body := envelope("soil", stableID, refreshes[0].At, `{"tile":"p32r29"}`)
				return raw(ctx, client, queueURL, r.Tile, body, map[string]string{"observed": keyOf(r)})
			},
		},
		{
			"map-ordered payload", "Canonical Form", "SF033",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				return raw(ctx, client, queueURL, r.Tile, envelope(keyOf(r), stableID, r.At, unordered(r.Info)), nil)
			},
		},
		{
			"dedupe key reused", "Payload Mismatch", "one dedupe_key",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				return sendWith(ctx, client, queueURL, r, func(r Refresh) (sqsfifo.Identity, error) {
					return sqsfifo.Identity{DedupeKey: "soil|" + r.Tile, Group: r.Tile, Time: r.At}, nil
				})
			},
		},
		{
			"two events with one body", "Distinct Events Never Collapse", "one body",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				return raw(ctx, client, queueURL, r.Tile, envelope("soil", stableID, refreshes[0].At, `{"tile":"p32r29"}`), nil)
			},
		},
		{
			"minted deduplication ID", "Hash Behavior", "not the SHA-256 of the body",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				body := envelope(keyOf(r), stableID, r.At, payloadOf(t, r))
				_, err := client.SendMessage(ctx, &sqs.SendMessageInput{
					QueueUrl: &queueURL, MessageGroupId: &r.Tile, MessageBody: &body, MessageDeduplicationId: aws.String(keyOf(r)),
				})
				return err
			},
		},
		{
			"group that changes", "Replay Window Collision", "message group",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				return raw(ctx, client, queueURL, fmt.Sprint(rand.Uint64()), envelope(keyOf(r), stableID, r.At, payloadOf(t, r)), nil)
			},
		},
		{
			"event_id of version 4", "Envelope Contract", "SF042",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				return raw(ctx, client, queueURL, r.Tile, envelope(keyOf(r), "9b7439e1-2c8a-4d9c-bc66-c9bcdf06e4b2", r.At, payloadOf(t, r)), nil)
			},
		},
		{
			"number of the attempt in the payload", "Timeout After Commit", "stored 2 times",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				for attempt := 0; ; attempt++ {
					body := envelope(keyOf(r), stableID, r.At, fmt.Sprintf(`{"attempt":%d}`, attempt))
					err := raw(ctx, withoutRetries(client), queueURL, r.Tile, body, nil)
					if err == nil || attempt == 3 {
						return err
					}
				}
			},
		},
		{
			"failed event sent after the next", "Group Order", "out of order",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				send := func(r Refresh) error {
					return raw(ctx, withoutRetries(client), queueURL, r.Tile, envelope(keyOf(r), stableID, r.At, payloadOf(t, r)), nil)
				}
				var refused *types.RequestThrottled
				if err := send(r); !errors.As(err, &refused) {
					waiting := parked
					parked = nil
					for _, p := range waiting {
						err = errors.Join(err, send(p))
					}
					return err
				}
				if parked == nil {
					parked = []Refresh{r} // report success now and send the event with the next one
					return nil
				}
				return refused
			},
		},
		{
			"batch ID renewed now and then", "Retry Storm", "were accepted",
			func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
				sends++
				return raw(ctx, client, queueURL, r.Tile, envelope(keyOf(r), stableID, r.At, fmt.Sprintf(`{"batch":%d}`, sends/200)), nil)
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failures, err := compliance.Failures(t.Context(), compliance.Suite[Refresh]{Send: tc.send, Events: refreshes})
				require.NoError(t, err)
				var failed []string
				for name, err := range failures {
					if err != nil {
						failed = append(failed, name)
					}
				}
				require.Equal(t, []string{tc.fails}, failed, "%v", failures)
				assert.ErrorContains(t, failures[tc.fails], tc.says)
				assert.ErrorContains(t, failures[tc.fails], "\nrule: ", "a failure names its rule and the rule's source")
			})
		})
	}
}

func TestSuiteRefusesWhatItCannotJudge(t *testing.T) {
	failing := errors.New("no credentials")
	for name, tc := range map[string]struct {
		suite compliance.Suite[Refresh]
		says  string
	}{
		"no Send":   {compliance.Suite[Refresh]{Events: refreshes}, "needs Send"},
		"one event": {compliance.Suite[Refresh]{Send: sendRefresh, Events: refreshes[:1]}, "two Events"},
		"nothing is sent": {compliance.Suite[Refresh]{Events: refreshes, Send: func(context.Context, *sqs.Client, string, Refresh) error {
			return nil
		}}, "sent 0 messages for event 0"},
		"two are sent": {compliance.Suite[Refresh]{Events: refreshes, Send: func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
			return errors.Join(sendRefresh(ctx, client, queueURL, r), sendRefresh(ctx, client, queueURL, r))
		}}, "sent 2 messages for event 0"},
		"Send fails": {compliance.Suite[Refresh]{Events: refreshes, Send: func(context.Context, *sqs.Client, string, Refresh) error {
			return failing
		}}, "event 0: no credentials"},
	} {
		err := compliance.CheckProducer(t.Context(), tc.suite)
		require.ErrorContains(t, err, tc.says, name)
	}
}

// The retry storm of the suite has as many events and duplicate attempts as the example
// in the KFM glossary on idempotency keys.
func TestRetryStormFigures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, duplicates, accepted, err := compliance.RetryStorm(t.Context(), compliance.Suite[Refresh]{Send: sendRefresh, Events: refreshes})
		require.NoError(t, err)
		assert.Equal(t, 80*600, events)
		assert.Equal(t, 2880, duplicates)
		assert.Zero(t, accepted)
	})
}

func TestCheckProducer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, compliance.CheckProducer(t.Context(), compliance.Suite[Refresh]{Send: sendRefresh, Events: refreshes}))
		err := compliance.CheckProducer(t.Context(), compliance.Suite[Refresh]{Events: refreshes, Send: func(ctx context.Context, client *sqs.Client, queueURL string, r Refresh) error {
			return raw(ctx, client, queueURL, r.Tile, `{ "tile": "p32r29" }`, nil)
		}})
		for _, name := range []string{"Hash Behavior", "Envelope Contract", "Canonical Form"} {
			require.ErrorContains(t, err, name)
		}
	})
}

// A tool without a *testing.T checks a producer by the error of CheckProducer.
func ExampleCheckProducer() {
	err := compliance.CheckProducer(context.Background(), compliance.Suite[Refresh]{Send: sendRefresh, Events: refreshes})
	fmt.Println(err)
	// Output: <nil>
}
