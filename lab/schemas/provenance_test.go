package schemas

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// alteringClient is a client of a fake queue. While the field `wrong` is set, it answers as
// if SQS had stored altered content.
type alteringClient struct {
	*sqstest.Queue
	wrong bool
}

func (c *alteringClient) SendMessage(ctx context.Context, in *sqs.SendMessageInput, o ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	out, err := c.Queue.SendMessage(ctx, in, o...)
	if err == nil && c.wrong {
		out.MD5OfMessageBody = aws.String("00000000000000000000000000000000")
	}
	return out, err
}

func (c *alteringClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out, err := c.Queue.SendMessageBatch(ctx, in, o...)
	if err == nil && c.wrong {
		out.Successful[0].MD5OfMessageBody = aws.String("00000000000000000000000000000000")
	}
	return out, err
}

// records sends events so that each outcome occurs, first without and then with the
// dataset members of the envelope. It returns the lines that ProvenanceWriter wrote.
func records(t *testing.T) []string {
	t.Helper()
	var ledger bytes.Buffer
	for _, dataset := range []*sqsfifo.Dataset{nil, {
		ID: "landsat-c2l2", Version: "2.0.1", SourceURI: "s3://usgs-landsat/collection02/scene.json",
		ArtifactChecksum: "sha256:88bedf22ee", CARELabel: "CARE-Compliant",
	}} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t)
			client := &alteringClient{Queue: q}
			p := newProducer(t, client, q, func(c *sqsfifo.Config[item]) {
				c.Telemetry.Provenance = sqsfifo.ProvenanceWriter(&ledger)
				c.Delivery.OnGroupFailure = sqsfifo.GroupFailureSkip
				identify := c.Identify
				c.Identify = func(i item) (sqsfifo.Identity, error) {
					if i.id == "nameless" {
						return sqsfifo.Identity{}, errors.New("no identity")
					}
					id, err := identify(i)
					id.Dataset = dataset
					return id, err
				}
			})
			send := func(ctx context.Context, id, note string) error {
				_, err := p.Send(ctx, item{id: id, group: "p32r29", at: time.Date(2020, 12, 4, 19, 2, 11, 0, time.UTC), payload: map[string]any{"note": note}})
				return err
			}
			require.NoError(t, send(t.Context(), "stored", ""))
			require.NoError(t, send(t.Context(), "stored", ""), "a duplicate")
			require.Error(t, send(t.Context(), "stored", "another payload"))
			require.Error(t, send(t.Context(), "nameless", ""))
			q.Inject(sqstest.Throttle(), 1)
			require.NoError(t, send(t.Context(), "throttled once", ""))
			client.wrong = true
			require.Error(t, send(t.Context(), "altered", ""))
			client.wrong = false
			q.Inject(sqstest.LoseAnswer(), 1000)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.Error(t, send(ctx, "in doubt", ""))
			q.ClearFaults()
			require.NoError(t, p.Close(t.Context()))
		})
	}
	return strings.Split(strings.TrimSuffix(ledger.String(), "\n"), "\n")
}

// TestProvenanceRecords validates a producer's provenance records against the schema. The
// records have all outcomes that the schema names.
func TestProvenanceRecords(t *testing.T) {
	schema := compile(t, "provenance-record.schema.json")
	outcomes := map[string]bool{}
	for _, line := range records(t) {
		assert.NoError(t, validate(t, schema, line), line)
		var r sqsfifo.ProvenanceRecord
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		outcomes[string(r.Outcome)] = true
	}
	known := definition(t).Properties["outcome"].Enum
	for _, outcome := range known {
		assert.True(t, outcomes[outcome], "no record has the outcome %s", outcome)
	}
	assert.Len(t, outcomes, len(known))
}

// recordSchema is the part of the schema used by the tests.
type recordSchema struct {
	Properties map[string]struct{ Enum []string }
}

func definition(t *testing.T) (d recordSchema) {
	t.Helper()
	text, err := os.ReadFile("../../docs/kfm/schemas/provenance-record.schema.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

// TestSchemaHasTheFieldsOfARecord compares the schema's properties with the JSON fields of
// sqsfifo.ProvenanceRecord.
func TestSchemaHasTheFieldsOfARecord(t *testing.T) {
	properties := definition(t).Properties
	record := reflect.TypeFor[sqsfifo.ProvenanceRecord]()
	for i := range record.NumField() {
		name, _, _ := strings.Cut(record.Field(i).Tag.Get("json"), ",")
		assert.Contains(t, properties, name)
		delete(properties, name)
	}
	assert.Empty(t, properties, "no field of a record is called so")
}

// TestSchemaRefusesBrokenRecords changes a valid record in several ways. The schema
// refuses each changed record.
func TestSchemaRefusesBrokenRecords(t *testing.T) {
	schema := compile(t, "provenance-record.schema.json")
	good := records(t)[0]
	require.NoError(t, validate(t, schema, good))
	for name, change := range map[string]func(r map[string]any){
		"no outcome":                func(r map[string]any) { delete(r, "outcome") },
		"unknown outcome":           func(r map[string]any) { r["outcome"] = "lost" },
		"stored with an error":      func(r map[string]any) { r["error_type"] = "RequestThrottled" },
		"in doubt without an error": func(r map[string]any) { r["outcome"] = "in_doubt" },
		"stored without a key":      func(r map[string]any) { delete(r, "dedupe_key") },
		"duplicate that is not one": func(r map[string]any) { r["outcome"] = "duplicate" },
		"short hash":                func(r map[string]any) { r["body_hash"] = "5d41" },
		"local time":                func(r map[string]any) { r["time"] = "2025-12-04T11:03:21-06:00" },
		"a payload":                 func(r map[string]any) { r["payload"] = map[string]any{} },
		"attempts as text":          func(r map[string]any) { r["attempts"] = "1" },
	} {
		var r map[string]any
		require.NoError(t, json.Unmarshal([]byte(good), &r))
		change(r)
		text, err := json.Marshal(r)
		require.NoError(t, err)
		assert.Error(t, validate(t, schema, string(text)), name)
	}
}
