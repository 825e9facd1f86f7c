package dynamostore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/dynamostore"
)

// A handler runs at most once per key. go test compiles this example and does not run it,
// because it needs a DynamoDB table named idempotency.
func Example() {
	ctx := context.Background()
	client := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String("http://127.0.0.1:8000")})
	store, err := dynamostore.Open(ctx, dynamostore.Config{Client: client, Table: "idempotency"})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: idempotency.TTLWebhook, Lease: time.Minute})
	if err != nil {
		fmt.Println(err)
		return
	}
	guard, err := idempotency.NewGuard(idempotency.GuardConfig{Store: store, Policy: policy})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := guard.Do(ctx, idempotency.Request{
		Key:         idempotency.Key{Scope: "tenant-7", Operation: "webhooks.handle", Value: "evt_1"},
		Fingerprint: idempotency.FingerprintOf("webhooks/1", []byte(`{"amount":10}`)),
	}, func(context.Context, idempotency.Outcome) (idempotency.Result, error) {
		return idempotency.Result{Response: []byte("handled")}, nil
	})
	fmt.Println(answer, err)
}
