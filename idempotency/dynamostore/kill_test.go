package dynamostore_test

import (
	"context"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/dynamostore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

const (
	childEndpoint = "DYNAMOSTORE_TEST_ENDPOINT"
	childTable    = "DYNAMOSTORE_TEST_TABLE"
)

func newClient(endpoint string) *dynamodb.Client {
	return dynamodb.New(dynamodb.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(endpoint),
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

func TestClient(t *testing.T) {
	storetest.Client(t, func() (idempotency.Store, error) {
		return dynamostore.Open(context.Background(), dynamostore.Config{Client: newClient(os.Getenv(childEndpoint)), Table: os.Getenv(childTable)})
	})
}

// In fifty rounds (five with -short) client processes are killed during their calls. No
// acknowledged change is lost. No key is granted to two clients.
func TestKilledClients(t *testing.T) {
	client, table := newTable(t, "key_id", types.ScalarAttributeTypeS)
	s, err := dynamostore.Open(t.Context(), dynamostore.Config{Client: client, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	storetest.KillClients(t, s, storetest.Killing{Test: "TestClient", Env: []string{
		childEndpoint + "=" + aws.ToString(client.Options().BaseEndpoint), childTable + "=" + table,
	}})
}
