package dynamostore

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// keyRecordOf returns the key record of a succeeded operation. The fields of the KFM key
// specification v10.3.1 have the names of the specification.
func keyRecordOf(r idempotency.Record) item {
	it := item{
		"key_id":      &types.AttributeValueMemberS{Value: r.Key.ID().String()},
		"replay_safe": &types.AttributeValueMemberBOOL{Value: r.Dataset.ReplaySafe},
	}
	if utf8.ValidString(r.Key.Value) {
		it.text("idempotency_key", r.Key.Value)
	}
	it.bytes("key", []byte(r.Key.Value))
	it.bytes("scope", []byte(r.Key.Scope))
	it.text("operation_type", r.Key.Operation)
	it.text("dataset_id", r.Dataset.ID)
	it.text("version", r.Dataset.Version)
	it.text("source_uri", r.Dataset.SourceURI)
	it.text("artifact_checksum", r.Dataset.ArtifactChecksum)
	it.text("care_label", r.Dataset.CARELabel)
	it.text("timestamp", r.ReadAt.UTC().Format(time.RFC3339Nano))
	return it
}

// complete writes the item of a succeeded operation and its key record in one transaction.
// It reports whether it wrote the item. A key that was used again after its expiry keeps
// its first key record.
func (s *Store) complete(ctx context.Context, r idempotency.Record, version idempotency.Token) (made bool, err error) {
	in := s.conditional(itemOf(r, idempotency.NewToken()), version)
	_, err = s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{
			TableName: in.TableName, Item: in.Item, ConditionExpression: in.ConditionExpression, ExpressionAttributeValues: in.ExpressionAttributeValues,
		}},
		{Put: &types.Put{TableName: &s.keyRecords, Item: keyRecordOf(r), ConditionExpression: &absent}},
	}})
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) || len(cancelled.CancellationReasons) != 2 {
		return err == nil, err
	}
	const failed, conflict = "ConditionalCheckFailed", "TransactionConflict"
	first, second := aws.ToString(cancelled.CancellationReasons[0].Code), aws.ToString(cancelled.CancellationReasons[1].Code)
	switch {
	case first == failed || first == conflict || second == conflict:
		return false, nil
	case second == failed:
		return s.put(ctx, in.Item, version)
	}
	return false, err
}

// absent is the condition that no item with the key is stored.
var absent = "attribute_not_exists(key_id)"
