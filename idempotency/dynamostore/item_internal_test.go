package dynamostore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// dynalite has no global tables, so this test only checks table descriptions.
func TestGlobalTablesAreRefused(t *testing.T) {
	table := func(change func(*types.TableDescription)) *types.TableDescription {
		d := &types.TableDescription{
			TableStatus:          types.TableStatusActive,
			AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key_id"), AttributeType: types.ScalarAttributeTypeS}},
			KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String("key_id"), KeyType: types.KeyTypeHash}},
		}
		change(d)
		return d
	}
	if err := checkTable(table(func(*types.TableDescription) {})); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*types.TableDescription){
		"Replicas": func(d *types.TableDescription) {
			d.Replicas = []types.ReplicaDescription{{RegionName: aws.String("eu-west-1")}}
		},
		"Replicas ": func(d *types.TableDescription) { d.GlobalTableVersion = aws.String("2017.11.29") },
		"TableStatus": func(d *types.TableDescription) {
			d.TableStatus = types.TableStatusDeleting
		},
		"KeySchema": func(d *types.TableDescription) {
			d.KeySchema = append(d.KeySchema, types.KeySchemaElement{AttributeName: aws.String("s"), KeyType: types.KeyTypeRange})
		},
	} {
		var got *idempotency.InvalidError
		if err := checkTable(table(change)); !errors.As(err, &got) || got.Field != strings.TrimSpace(want) {
			t.Errorf("got %v, want a InvalidError about %s", err, want)
		}
	}
}

// A conversion to an item and back keeps all fields of a record, including Prior, which
// package storetest does not compare.
func TestItem(t *testing.T) {
	at := func(n int) time.Time { return time.Date(2026, 1, n, 0, 0, 0, 1000, time.UTC) }
	r := idempotency.Record{
		Key: idempotency.Key{Scope: "s\x00", Operation: "o", Value: "\xff"}, Generation: 2, Fingerprint: idempotency.FingerprintOf("f/1", nil),
		ExactHash: idempotency.ExactHashOf(nil, "g"), Group: "g", Body: []byte("b"), Status: idempotency.StatusRunning, Token: idempotency.NewToken(),
		Fence: 3, Attempts: 4, LeaseUntil: at(1), DoubtSince: at(2), ResendUntil: at(3), Reason: "r", Created: at(4), Expires: at(5),
		Result:  idempotency.Result{Response: []byte("x"), MessageID: "m", SequenceNumber: "n"},
		Dataset: idempotency.Dataset{ID: "1", Version: "2", SourceURI: "3", ArtifactChecksum: "4", CARELabel: "5", ReplaySafe: true},
		Prior:   idempotency.PriorState{Status: idempotency.StatusFailed, Created: at(6), Expires: at(7)},
	}
	want := idempotency.NewToken()
	got, version, err := itemOf(r, want).parse()
	if err != nil || version != want || !got.Equal(r) {
		t.Errorf("got %+v, %v, %v, want %+v", got, version, err, r)
	}
	for name := range itemOf(r, want) {
		it := itemOf(r, want)
		it[name] = &types.AttributeValueMemberBOOL{Value: true}
		if _, _, err := it.parse(); err == nil && name != "key_id" && name != "remove_at" {
			t.Errorf("%s of another type was read", name)
		}
	}
}
