package dynamostore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/dynamostore"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Storage {
		client, table := newTable(t, "key_id", types.ScalarAttributeTypeS)
		var offset atomic.Int64
		return storetest.Storage{
			Open: func() (idempotency.Store, error) {
				return dynamostore.Open(context.Background(), dynamostore.Config{
					Client: client, Table: table, Slack: 1, // all stores of the suite share one clock
					Clock: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) },
				})
			},
			Advance:  func(d time.Duration) { offset.Add(int64(d)) },
			MaxBytes: dynamostore.MaxBytes,
		}
	})
}

func claimOf(value string) idempotency.Claim {
	return idempotency.Claim{
		Key: idempotency.Key{Scope: "tenant", Operation: "test.run", Value: value}, Token: idempotency.NewToken(),
		Fingerprint: idempotency.FingerprintOf("test/1", []byte(value)), Body: []byte("body"),
		Terms: idempotency.Terms{Lease: time.Minute, TTL: time.Hour, ResendFor: 5 * time.Minute},
	}
}

func claim(t *testing.T, s idempotency.Store, c idempotency.Claim, want idempotency.Decision) idempotency.Outcome {
	t.Helper()
	out, err := s.Claim(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	if out.Decision != want {
		t.Fatalf("claim of %s: got %v, want %v", c.Key.Value, out.Decision, want)
	}
	return out
}

// The clocks of clients may differ by Config.Slack, here 2 s. A client whose clock is 2 s
// ahead must not take over a claim before the lease ends. A client whose clock is 2 s
// behind must not run an operation again after ResendFor.
func TestSlack(t *testing.T) {
	client, table := newTable(t, "key_id", types.ScalarAttributeTypeS)
	start := time.Now().Truncate(time.Microsecond)
	at := func(offset time.Duration) *dynamostore.Store {
		s, err := dynamostore.Open(t.Context(), dynamostore.Config{
			Client: client, Table: table, Slack: 2 * time.Second,
			Clock: func() time.Time { return start.Add(offset) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const slack = 2 * time.Second
	claim(t, at(0), claimOf("a"), idempotency.DecisionNew)
	claim(t, at(time.Minute+slack-time.Microsecond), claimOf("a"), idempotency.DecisionInProgress) // just before the end of the one-minute lease
	claim(t, at(5*time.Minute-slack), claimOf("a"), idempotency.DecisionUnresolved)
	claim(t, at(5*time.Minute-slack-time.Second), claimOf("a"), idempotency.DecisionReclaimed)
	c := claimOf("b")
	// ResendFor is shorter than the slack of 2 s, so the store permits no second run.
	c.Terms.ResendFor = time.Second
	claim(t, at(0), c, idempotency.DecisionNew)
	claim(t, at(2*time.Minute), claimOf("b"), idempotency.DecisionUnresolved)
}

func TestOpen(t *testing.T) {
	client, table := newTable(t, "key_id", types.ScalarAttributeTypeS)
	_, otherKey := newTable(t, "id", types.ScalarAttributeTypeS)
	_, otherType := newTable(t, "key_id", types.ScalarAttributeTypeB)
	for name, tc := range map[string]struct {
		config  dynamostore.Config
		setting string
	}{
		"no client":        {dynamostore.Config{Table: table}, "Config.Client"},
		"no table":         {dynamostore.Config{Client: client}, "Config.Table"},
		"slack":            {dynamostore.Config{Client: client, Table: table, Slack: -1}, "Config.Slack"},
		"another key":      {dynamostore.Config{Client: client, Table: otherKey}, "KeySchema"},
		"another key type": {dynamostore.Config{Client: client, Table: otherType}, "KeySchema"},
	} {
		_, err := dynamostore.Open(t.Context(), tc.config)
		var got *idempotency.InvalidError
		if !errors.As(err, &got) || got.Field != tc.setting {
			t.Errorf("%s: got %v, want a InvalidError about %s", name, err, tc.setting)
		}
	}
	var absent *types.ResourceNotFoundException
	if _, err := dynamostore.Open(t.Context(), dynamostore.Config{Client: client, Table: "absent"}); !errors.As(err, &absent) {
		t.Errorf("an absent table: got %v, want ResourceNotFoundException", err)
	}
}

func TestSizes(t *testing.T) {
	client, table := newTable(t, "key_id", types.ScalarAttributeTypeS)
	s, err := dynamostore.Open(t.Context(), dynamostore.Config{Client: client, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	invalid := func(field string, err error) {
		t.Helper()
		var got *idempotency.InvalidError
		if !errors.As(err, &got) || got.Field != field {
			t.Errorf("got %v, want an InvalidError about %s", err, field)
		}
	}
	big := claimOf("big")
	big.Body = make([]byte, dynamostore.MaxBytes+1)
	_, err = s.Claim(t.Context(), big)
	invalid("Claim.Body", err)
	_, err = s.ClaimBatch(t.Context(), []idempotency.Claim{claimOf("a"), big})
	invalid("claims[1].Claim.Body", err)
	out := claim(t, s, claimOf("a"), idempotency.DecisionNew)
	invalid("Result.Response", s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{Response: big.Body})))

	// The largest accepted record fits into an item.
	text := func(n int) string { return string(make([]byte, n)) }
	letters := func(n int) string { return fmt.Sprintf("%0*d", n, 0) }
	c := claimOf(text(idempotency.MaxValue))
	c.Key.Scope, c.Key.Operation, c.Group = text(idempotency.MaxScope), letters(idempotency.MaxOperation), text(idempotency.MaxGroup)
	c.Body = make([]byte, dynamostore.MaxBytes)
	f := letters(idempotency.MaxField)
	c.Dataset = idempotency.Dataset{ID: f, Version: f, SourceURI: f, ArtifactChecksum: f, CARELabel: f}
	out = claim(t, s, c, idempotency.DecisionNew)
	if err := s.Finish(t.Context(), out.Ref(), idempotency.FailedWith(idempotency.Failure{Reason: letters(idempotency.MaxReason)})); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{Response: c.Body, MessageID: f, SequenceNumber: f})); err != nil {
		t.Fatal(err)
	}
}

// The attribute remove_at is the time after which DynamoDB may delete a record. Released
// records have this attribute. Succeeded and failed records have it only if they have an
// expiry time. DynamoDB must never delete any other record.
func TestRemoval(t *testing.T) {
	client, table := newTable(t, "key_id", types.ScalarAttributeTypeS)
	s, err := dynamostore.Open(t.Context(), dynamostore.Config{Client: client, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	removal := func(want bool, doing string) {
		t.Helper()
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{
			"key_id": &types.AttributeValueMemberS{Value: claimOf("a").Key.ID().String()},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := out.Item["remove_at"]; ok != want {
			t.Errorf("%s: the item has remove_at: %v, want %v", doing, ok, want)
		}
	}
	settle := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	out := claim(t, s, claimOf("a"), idempotency.DecisionNew)
	removal(false, "running")
	settle(s.Finish(t.Context(), out.Ref(), idempotency.FailedWith(idempotency.Failure{})))
	removal(false, "in doubt")
	settle(s.Finish(t.Context(), out.Ref(), idempotency.Released()))
	removal(true, "released")
	c := claimOf("a")
	c.Terms.TTL = idempotency.Forever
	out = claim(t, s, c, idempotency.DecisionNew)
	removal(false, "released and claimed")
	settle(s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{})))
	removal(false, "succeeded for ever")
}

// After a lost answer the SDK repeats a write. The condition of the repeated write fails,
// and the call recognises its own first write in the record.
func TestLostAnswers(t *testing.T) {
	client, table := newTable(t, "key_id", types.ScalarAttributeTypeS)
	var lost sync.Map
	lossy := dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("lose", func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
				out, meta, err := next.HandleDeserialize(ctx, in)
				if middleware.GetOperationName(ctx) == "PutItem" && err == nil {
					if _, done := lost.LoadOrStore(ctx.Value(callKey{}), true); !done {
						return out, meta, lostAnswer{}
					}
				}
				return out, meta, err
			}), middleware.Before)
		})
	})
	s, err := dynamostore.Open(t.Context(), dynamostore.Config{Client: lossy, Table: table})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Claim(context.WithValue(t.Context(), callKey{}, 1), claimOf("a"))
	if err != nil || out.Decision != idempotency.DecisionNew || out.Record.Attempts != 1 {
		t.Fatalf("claim: got %v, %v, want new", out, err)
	}
	if err := s.Finish(context.WithValue(t.Context(), callKey{}, 2), out.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
		t.Errorf("complete: %v", err)
	}
	n := 0
	lost.Range(func(any, any) bool { n++; return true })
	if n != 2 {
		t.Errorf("%d answers were lost, want 2", n)
	}
	claim(t, s, claimOf("a"), idempotency.DecisionDuplicate)
}

type callKey struct{}

// lostAnswer is an error that the driver treats as a network error.
type lostAnswer struct{}

func (lostAnswer) Error() string        { return "the answer was lost" }
func (lostAnswer) RetryableError() bool { return true }

// Fences grow even if the clock stands still or is set back. Without the lower 12 bits, a
// fence is the time in milliseconds, or the last fence plus 1 if that is larger.
func TestFences(t *testing.T) {
	client, table := newTable(t, "key_id", types.ScalarAttributeTypeS)
	now := time.Now()
	s, err := dynamostore.Open(t.Context(), dynamostore.Config{Client: client, Table: table, Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []time.Duration{0, 0, -time.Hour, 2 * time.Hour} {
		now = now.Add(step)
		out := claim(t, s, claimOf("a"), idempotency.DecisionNew)
		want := now.UnixMilli() + int64(i)
		switch i {
		case 2:
			want += time.Hour.Milliseconds()
		case 3:
			want -= 3
		}
		if got := out.Record.Fence >> 12; got != want {
			t.Errorf("grant %d: the fence is %d, want %d", i, got, want)
		}
		if err := s.Finish(t.Context(), out.Ref(), idempotency.Released()); err != nil {
			t.Fatal(err)
		}
	}
}
