package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/dynamostore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

// The store with key records keeps every promise of a store.
func TestStoreWithKeyRecords(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Storage {
		_, client := newFake("keys", "records")
		var offset atomic.Int64
		return storetest.Storage{
			Open: func() (idempotency.Store, error) {
				return dynamostore.Open(context.Background(), dynamostore.Config{
					Client: client, Table: "keys", KeyRecords: "records", Slack: 1,
					Clock: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) },
				})
			},
			Advance:  func(d time.Duration) { offset.Add(int64(d)) },
			MaxBytes: dynamostore.MaxBytes,
		}
	})
}

func datasetClaim(n int) idempotency.Claim {
	c := claimOf(fmt.Sprintf("sha256:%064x", n))
	c.Terms.TTL = time.Hour
	c.Dataset = idempotency.Dataset{ID: "storms", Version: "v10.3.1", SourceURI: "s3://b/k", ArtifactChecksum: "sha256:00", CARELabel: "CARE-1", ReplaySafe: true}
	return c
}

// A key record has the fields of the key specification. It is written at the first success
// and then never again: not by a repetition, by a failure, or when the key is used again
// after its expiry, also if DynamoDB has removed the expired item.
func TestKeyRecord(t *testing.T) {
	tables, client := newFake("keys", "records")
	var offset time.Duration
	s, err := dynamostore.Open(t.Context(), dynamostore.Config{
		Client: client, Table: "keys", KeyRecords: "records", Slack: 1, Clock: func() time.Time { return time.Unix(1_700_000_000, 0).Add(offset) },
	})
	if err != nil {
		t.Fatal(err)
	}
	finish := func(out idempotency.Outcome, e idempotency.Ending) {
		t.Helper()
		if err := s.Finish(t.Context(), out.Ref(), e); err != nil {
			t.Fatal(err)
		}
	}
	c := datasetClaim(1)
	finish(claim(t, s, c, idempotency.DecisionNew), idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll, Reason: "no"}))
	if n := len(tables.tables["records"]); n != 0 {
		t.Fatalf("%d key records of a failed operation", n)
	}
	c.Token = idempotency.NewToken()
	out := claim(t, s, c, idempotency.DecisionNew)
	finish(out, idempotency.Completed(idempotency.Result{MessageID: "m"}))
	finish(out, idempotency.Completed(idempotency.Result{MessageID: "m"}))
	id := c.Key.ID().String()
	want := attributes{
		"key_id": {"S": id}, "idempotency_key": {"S": c.Key.Value}, "dataset_id": {"S": "storms"}, "version": {"S": "v10.3.1"}, "source_uri": {"S": "s3://b/k"},
		"artifact_checksum": {"S": "sha256:00"}, "care_label": {"S": "CARE-1"}, "replay_safe": {"BOOL": true}, "timestamp": {"S": "2023-11-14T22:13:20Z"}, "operation_type": {"S": "test.run"},
	}
	got := tables.tables["records"][id]
	for name, value := range want {
		if !reflect.DeepEqual(got[name], value) {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	for _, remove := range []bool{false, true} {
		offset += 3 * time.Hour
		if remove { // time to live
			delete(tables.tables["keys"], id)
		}
		c.Token = idempotency.NewToken()
		finish(claim(t, s, c, idempotency.DecisionNew), idempotency.Completed(idempotency.Result{MessageID: "again"}))
	}
	if n := tables.puts["records"]; n != 1 || !reflect.DeepEqual(tables.tables["records"][id], got) {
		t.Fatalf("%d writes of the key record, now %v", n, tables.tables["records"][id])
	}
	// An alien key, not UTF-8, has its record, too.
	c = claimOf("\xff")
	finish(claim(t, s, c, idempotency.DecisionNew), idempotency.Completed(idempotency.Result{}))
	if got := tables.tables["records"][c.Key.ID().String()]; got["idempotency_key"] != nil || got["key"]["B"] != "/w==" {
		t.Fatalf("the record of a key of bytes: %v", got)
	}
}

// Clients that lose requests or answers at any place, and end there, leave no key completed
// without its record, and no record without its completed key. Later clients take over.
func TestKeyRecordsUnderFaults(t *testing.T) {
	tables, client := newFake("keys", "records")
	s, err := dynamostore.Open(t.Context(), dynamostore.Config{Client: client, Table: "keys", KeyRecords: "records", Slack: 1})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	transactions := 0
	tables.fault = func(operation string) (before, after error) {
		if operation == "TransactWriteItems" {
			transactions++
		}
		switch random.IntN(6) {
		case 0:
			return errNetwork, nil
		case 1:
			return nil, errNetwork
		}
		return nil, nil
	}
	const keys = 100
	completed := map[int]bool{}
	for range 60 {
		for n := range keys {
			c := datasetClaim(n)
			c.Terms.Lease, c.Resend = time.Millisecond, true
			out, err := s.Claim(t.Context(), c)
			if err != nil || !out.Decision.Granted() {
				completed[n] = completed[n] || err == nil && out.Decision == idempotency.DecisionDuplicate
				continue
			}
			if random.IntN(4) == 0 {
				continue // the client is killed
			}
			if err := s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{})); err == nil {
				completed[n] = true
			} else if !errors.Is(err, errNetwork) {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Millisecond)
	}
	if len(completed) < keys || transactions < keys {
		t.Fatalf("%d of %d keys completed, %d transactions", len(completed), keys, transactions)
	}
	succeeded := 0
	for id, it := range tables.tables["keys"] {
		if it["status"]["S"] == "succeeded" {
			succeeded++
			if tables.tables["records"][id] == nil {
				t.Errorf("the completed key %s has no record", id)
			}
		} else if tables.tables["records"][id] != nil {
			t.Errorf("the key %s has a record and status %v", id, it["status"])
		}
	}
	if n := tables.puts["records"]; n != succeeded || n != keys {
		t.Errorf("%d writes of key records, %d completed keys", n, succeeded)
	}
	// Repeated conditions: each later claim is a duplicate and writes no record.
	tables.fault = nil
	for n := range keys {
		claim(t, s, datasetClaim(n), idempotency.DecisionDuplicate)
	}
}

func TestKeyRecordsTable(t *testing.T) {
	_, client := newFake("keys")
	for _, name := range []string{"keys", "none"} {
		if _, err := dynamostore.Open(t.Context(), dynamostore.Config{Client: client, Table: "keys", KeyRecords: name}); err == nil {
			t.Errorf("a table %s for the key records is accepted", name)
		}
	}
}
