package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// MaxBytes is the size limit for a record's body. A response has a separate limit of the
// same size.
const MaxBytes = 180 << 10

// Config configures a [Store].
type Config struct {
	// Client is a client for the table's region.
	Client *dynamodb.Client

	Table string

	// KeyRecords, if not empty, is the name of a second table with the same key, for the key
	// records of the KFM key specification v10.3.1. When an operation succeeds, its record is
	// written there once, in one transaction with the completion: idempotency_key,
	// dataset_id, version, source_uri, artifact_checksum, care_label, replay_safe and
	// timestamp. The store never changes or deletes a key record. A key that is used again
	// after its expiry keeps its first one.
	//
	// To make the table append-only for everybody, deny dynamodb:UpdateItem and
	// dynamodb:DeleteItem on it, and enable neither time to live nor replicas. A completion
	// costs the write units of a transaction: twice those of the two items.
	KeyRecords string

	// Slack is the largest difference between the clocks of two clients. The default is 1
	// s.
	Slack time.Duration

	// Clock is this client's clock; nil means time.Now.
	Clock func() time.Time
}

// Store is an [idempotency.Store] in a DynamoDB table. It is safe for concurrent use. Any
// number of stores and processes may share a table. A Store needs no Close.
type Store struct {
	client *dynamodb.Client
	table  string

	keyRecords string // table of the key records, or empty

	slack time.Duration
	clock func() time.Time
}

var _ idempotency.Store = (*Store)(nil)

// Open returns a store over an existing, active table. The partition key must be key_id,
// a string, without a sort key. For other tables, and for global tables, Open returns an
// [*idempotency.InvalidError].
func Open(ctx context.Context, c Config) (*Store, error) {
	switch {
	case c.Client == nil:
		return nil, wrong("Config.Client", "nil", "make one with dynamodb.NewFromConfig and pass it")
	case c.Table == "":
		return nil, wrong("Config.Table", "empty", "name the table")
	case c.Table == c.KeyRecords:
		return nil, wrong("Config.KeyRecords", "the same as Config.Table", "name a table of its own, which nothing deletes from")
	case c.Slack < 0:
		return nil, wrong("Config.Slack", c.Slack.String(), "want 0, which is 1s, or more")
	}
	if c.Slack == 0 {
		c.Slack = time.Second
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	for _, name := range []string{c.Table, c.KeyRecords} {
		if name == "" {
			continue
		}
		out, err := c.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			return nil, fmt.Errorf("dynamostore: open %s: %w", name, err)
		}
		if err := checkTable(out.Table); err != nil {
			return nil, err
		}
	}
	return &Store{client: c.Client, table: c.Table, keyRecords: c.KeyRecords, slack: c.Slack, clock: c.Clock}, nil
}

func checkTable(t *types.TableDescription) error {
	if t.TableStatus != types.TableStatusActive && t.TableStatus != types.TableStatusUpdating {
		return wrong("TableStatus", string(t.TableStatus), "wait until it is ACTIVE")
	}
	if n := len(t.Replicas); n > 0 || aws.ToString(t.GlobalTableVersion) != "" {
		return wrong("Replicas", fmt.Sprintf("%d, global table version %q", n, aws.ToString(t.GlobalTableVersion)), "a global table accepts the same claim in two regions; use a table of one region")
	}
	for _, a := range t.AttributeDefinitions {
		if aws.ToString(a.AttributeName) == "key_id" && a.AttributeType == types.ScalarAttributeTypeS &&
			len(t.KeySchema) == 1 && aws.ToString(t.KeySchema[0].AttributeName) == "key_id" {
			return nil
		}
	}
	return wrong("KeySchema", "another", "want the partition key key_id of type S and no sort key; create such a table")
}

// now returns this client's time.
func (s *Store) now() time.Time { return time.UnixMicro(s.clock().UnixMicro()).UTC() }

// Claim implements [idempotency.Store].
func (s *Store) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if err := c.Check(); err != nil {
		return idempotency.Outcome{}, err
	}
	if err := checkSize("Claim.Body", c.Body); err != nil {
		return idempotency.Outcome{}, err
	}
	return s.claim(ctx, c)
}

func checkSize(field string, b []byte) error {
	if len(b) > MaxBytes {
		return &idempotency.InvalidError{Field: field, Rule: fmt.Sprintf("%d bytes, want at most %d in DynamoDB; store it elsewhere and its address here", len(b), MaxBytes)}
	}
	return nil
}

// attempts is the number of times that a call tries to claim, finish or extend while
// other calls change the record.
const attempts = 10

// claim reads the record, decides, and writes the granted record unless another call has
// changed the record. It takes the new fence after reading the record, so that the new
// fence is greater than the fence in the record.
func (s *Store) claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	id := c.Key.ID()
	newVersion := idempotency.NewToken() // version of each record that this call writes
	var granted idempotency.Outcome
	// Once the variable `granted` is set, a put may have changed the record, so an error
	// is ambiguous.
	failed := func(err error) (idempotency.Outcome, error) {
		if granted.Decision != idempotency.DecisionNone {
			return idempotency.Outcome{}, ambiguous(err)
		}
		return idempotency.Outcome{}, fmt.Errorf("dynamostore: nothing was claimed: %w", err)
	}
	for range attempts {
		found, version, err := s.get(ctx, id)
		if err != nil {
			return failed(err)
		}
		// An earlier put of this call succeeded, but its answer was lost, and DynamoDB
		// refused the SDK's repetition.
		if version == newVersion {
			return granted, nil
		}
		now := s.now()
		d := idempotency.Decide(found, c, now)
		if !d.Granted() {
			found.ReadAt = now
			return idempotency.NewOutcome(d, found, c), nil
		}
		var fence int64
		if d != idempotency.DecisionRenewed {
			if fence, err = s.draw(ctx, id); err != nil {
				return failed(err)
			}
		}
		r := idempotency.Grant(found, s.slacken(c), d, fence, now)
		r.Body = append([]byte(nil), r.Body...)
		granted = idempotency.NewOutcome(d, r, c)
		made, err := s.put(ctx, itemOf(r, newVersion), version)
		if err != nil {
			return idempotency.Outcome{}, ambiguous(err)
		}
		if made {
			return granted, nil
		}
	}
	// At each of the attempts, another call changed the record between the read and the
	// put.
	return idempotency.Outcome{Decision: idempotency.DecisionInProgress, Record: idempotency.Record{Key: c.Key}}, nil
}

// slacken adapts a claim's terms to clocks that differ by up to Config.Slack. A client
// with a fast clock must not take the claim over too early, and a client with a slow
// clock must not run the operation again too late.
func (s *Store) slacken(c idempotency.Claim) idempotency.Claim {
	c.Terms.Lease = s.longer(c.Terms.Lease)
	if c.Terms.ResendFor != idempotency.Forever {
		c.Terms.ResendFor = max(0, c.Terms.ResendFor-s.slack)
	}
	return c
}

// longer returns the lease plus Config.Slack. It does not change a lease of less than a
// millisecond: such a lease is invalid and must stay invalid. It does not change a lease
// if the sum would be more than Forever, the largest duration.
func (s *Store) longer(lease time.Duration) time.Duration {
	if lease < time.Millisecond || lease >= idempotency.Forever-s.slack {
		return lease
	}
	return lease + s.slack
}

// ClaimBatch implements [idempotency.Store]. Claims of different keys run concurrently,
// 16 at a time, each as a separate write.
func (s *Store) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if err := idempotency.CheckBatch(claims); err != nil {
		return nil, err
	}
	byKey := map[idempotency.Key][]int{}
	for i, c := range claims {
		if err := checkSize(fmt.Sprintf("claims[%d].Claim.Body", i), c.Body); err != nil {
			return nil, err
		}
		byKey[c.Key] = append(byKey[c.Key], i)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	outs, errs := make([]idempotency.Outcome, len(claims)), make([]error, len(claims))
	sameKey := slices.Collect(maps.Values(byKey))
	concurrently(len(sameKey), func(n int) {
		for _, i := range sameKey[n] {
			if outs[i], errs[i] = s.claim(ctx, claims[i]); errs[i] != nil {
				return
			}
		}
	})
	for _, err := range errs {
		if errors.Is(err, idempotency.ErrAmbiguous) {
			return nil, err
		} else if err != nil { // other claims of the batch may have been granted
			return nil, ambiguous(err)
		}
	}
	return outs, nil
}

// concurrently calls f with the numbers below n, at most 16 at a time, and waits for all.
func concurrently(n int, f func(int)) {
	slots := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	wg.Wait()
}

// Extend implements [idempotency.Store].
func (s *Store) Extend(ctx context.Context, ref idempotency.Ref, lease time.Duration) error {
	return s.Finish(ctx, ref, idempotency.Extended(s.longer(lease)))
}

// Finish implements [idempotency.Store].
func (s *Store) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	if err := ref.Check(); err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		return err
	}
	if result, ok := t.Result(); ok {
		if err := checkSize("Result.Response", result.Response); err != nil {
			return err
		}
	}
	wrote := false
	for range attempts {
		found, version, err := s.get(ctx, ref.Key.ID())
		if err != nil {
			if wrote {
				return ambiguous(err)
			}
			return fmt.Errorf("dynamostore: nothing was changed: %w", err)
		}
		r, err := idempotency.ApplyEnding(found, ref, t, s.now())
		if err != nil && wrote {
			// An earlier put of this call may have succeeded and caused err: after a lost
			// answer, DynamoDB refuses the SDK's repetition.
			return ambiguous(err)
		}
		if err != nil {
			return err
		}
		if found.Equal(r) && found.Status != idempotency.StatusRunning { // already finished
			return nil
		}
		made := false
		if s.keyRecords != "" && r.Status == idempotency.StatusSucceeded {
			made, err = s.complete(ctx, r, version)
		} else {
			made, err = s.put(ctx, itemOf(r, idempotency.NewToken()), version)
		}
		if err != nil {
			return ambiguous(err)
		}
		if made {
			return nil
		}
		wrote = true
	}
	return ambiguous(idempotency.ErrBusy)
}

func ambiguous(err error) error {
	return fmt.Errorf("dynamostore: %w: %w", idempotency.ErrAmbiguous, err)
}

func keyOf(id string) item {
	return item{"key_id": &types.AttributeValueMemberS{Value: id}}
}

// get returns the record and its version, or zero values without a record.
func (s *Store) get(ctx context.Context, id idempotency.KeyID) (idempotency.Record, idempotency.Token, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: keyOf(id.String()), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return idempotency.Record{}, idempotency.Token{}, err
	}
	return item(out.Item).parse()
}

// put writes the item if the stored record has the given version. The zero version means
// that no record is stored. put reports whether it wrote the item.
func (s *Store) put(ctx context.Context, it item, version idempotency.Token) (made bool, err error) {
	_, err = s.client.PutItem(ctx, s.conditional(it, version))
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return false, nil
	}
	return err == nil, err
}

// conditional returns the input of put.
func (s *Store) conditional(it item, version idempotency.Token) *dynamodb.PutItemInput {
	in := &dynamodb.PutItemInput{TableName: &s.table, Item: it, ConditionExpression: &absent}
	if version != (idempotency.Token{}) {
		in.ConditionExpression = aws.String("version_token = :at")
		in.ExpressionAttributeValues = item{":at": &types.AttributeValueMemberB{Value: version[:]}}
	}
	return in
}

// bucketBits is the number of bits at the start of a key ID that choose the counter for
// the key's fences (numbers of granted claims). Each fence ends with these bits, so
// different counters never give the same fence.
const bucketBits = 12

// draw returns a new fence (number of a granted claim). Its counter is at least the time
// in milliseconds, so fences grow even after the table was restored from an old backup.
func (s *Store) draw(ctx context.Context, id idempotency.KeyID) (int64, error) {
	in := &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: keyOf("fence:" + id.String()[:bucketBits/4]),
		UpdateExpression:          aws.String("SET last_fence = :n"),
		ConditionExpression:       aws.String("attribute_not_exists(last_fence) OR last_fence < :n"),
		ExpressionAttributeValues: item{":n": numberOf(s.now().UnixMilli())},
		ReturnValues:              types.ReturnValueUpdatedNew,
	}
	out, err := s.client.UpdateItem(ctx, in)
	var ahead *types.ConditionalCheckFailedException
	if errors.As(err, &ahead) {
		in.UpdateExpression, in.ConditionExpression = aws.String("ADD last_fence :n"), nil
		in.ExpressionAttributeValues = item{":n": numberOf(1)}
		out, err = s.client.UpdateItem(ctx, in)
	}
	if err != nil {
		return 0, err
	}
	p := parser{item: out.Attributes}
	sequence := p.number("last_fence")
	if p.err != nil || sequence <= 0 {
		return 0, fmt.Errorf("the counter of fences of %.3s is not a number", id)
	}
	return sequence<<bucketBits | int64(id[0])<<4 | int64(id[1])>>4, nil
}

func wrong(field, found, rule string) error {
	return fmt.Errorf("dynamostore: %w", &idempotency.InvalidError{Field: field, Found: found, Rule: rule})
}
