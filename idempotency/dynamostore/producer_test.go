package dynamostore_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/dynamostore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest/producertest"
)

// TestProducer runs the tests of package producertest with this store, for example
// restarts, crashes, repetitions after more than five minutes, and an unreachable table.
func TestProducer(t *testing.T) {
	producertest.Run(t, func(t *testing.T) producertest.Storage {
		client, table := newTable(t, "key_id", types.ScalarAttributeTypeS)
		var ahead atomic.Int64
		line := new(line)
		client = dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = line })
		return producertest.Storage{
			Storage: storetest.Storage{
				Open: func() (idempotency.Store, error) {
					return dynamostore.Open(context.Background(), dynamostore.Config{
						Client: client, Table: table, Clock: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
					})
				},
				Advance: func(d time.Duration) { ahead.Add(int64(d)) },
			},
			Outage: func() (end func(), err error) {
				line.cut.Store(true)
				return func() { line.cut.Store(false) }, nil
			},
		}
	})
}

// line is the HTTP client of the stores, with a switch for outages. While the field `cut` is
// true, every second request fails immediately, and the other requests get no answer.
type line struct {
	cut      atomic.Bool
	requests atomic.Int64
}

func (l *line) Do(r *http.Request) (*http.Response, error) {
	if !l.cut.Load() {
		return http.DefaultClient.Do(r)
	}
	if l.requests.Add(1)%2 == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return nil, errors.New("connection refused")
}
