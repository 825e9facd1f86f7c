package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// MaxBytes is the largest body, and the largest response, of a record.
const MaxBytes = 180 << 10

// Config configures a [Store].
type Config struct {
	// Client is that of the region of the table.
	Client *dynamodb.Client

	Table string

	// Slack is by how much the clocks of two clients may differ. The default is 1 s.
	Slack time.Duration

	// Clock is the clock of this client; nil is time.Now.
	Clock func() time.Time
}

// SettingError is a property of the table or of [Config] with which the store would not
// keep its promises.
type SettingError struct {
	Setting string // for example "replicas"
	Found   string
	Rule    string // what is wanted, and the way to get it
}

func (e *SettingError) Error() string {
	return fmt.Sprintf("dynamostore: %s is %s: %s", e.Setting, e.Found, e.Rule)
}

// Store is an [idempotency.Store] in a table of DynamoDB. It is safe for concurrent use.
// Any number of stores and processes may share a table. It holds nothing that must be
// closed.
type Store struct {
	client *dynamodb.Client
	table  string
	slack  time.Duration
	clock  func() time.Time
}

var _ idempotency.Store = (*Store)(nil)

// Open returns a store over a table that exists and is active, whose partition key is
// key_id, a string, without a sort key. It refuses others, and global tables, with a
// [*SettingError].
func Open(ctx context.Context, c Config) (*Store, error) {
	switch {
	case c.Client == nil:
		return nil, &SettingError{Setting: "Config.Client", Found: "nil", Rule: "make one with dynamodb.NewFromConfig and pass it"}
	case c.Table == "":
		return nil, &SettingError{Setting: "Config.Table", Found: "empty", Rule: "name the table"}
	case c.Slack < 0:
		return nil, &SettingError{Setting: "Config.Slack", Found: c.Slack.String(), Rule: "want 0, which is 1s, or more"}
	}
	if c.Slack == 0 {
		c.Slack = time.Second
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	out, err := c.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &c.Table})
	if err != nil {
		return nil, fmt.Errorf("dynamostore: open: %w", err)
	}
	if err := checkTable(out.Table); err != nil {
		return nil, err
	}
	return &Store{client: c.Client, table: c.Table, slack: c.Slack, clock: c.Clock}, nil
}

func checkTable(t *types.TableDescription) error {
	if t.TableStatus != types.TableStatusActive && t.TableStatus != types.TableStatusUpdating {
		return &SettingError{Setting: "TableStatus", Found: string(t.TableStatus), Rule: "wait until it is ACTIVE"}
	}
	if n := len(t.Replicas); n > 0 || aws.ToString(t.GlobalTableVersion) != "" {
		return &SettingError{Setting: "Replicas", Found: fmt.Sprintf("%d, global table version %q", n, aws.ToString(t.GlobalTableVersion)), Rule: "a global table accepts the same claim in two regions; use a table of one region"}
	}
	for _, a := range t.AttributeDefinitions {
		if aws.ToString(a.AttributeName) == "key_id" && a.AttributeType == types.ScalarAttributeTypeS &&
			len(t.KeySchema) == 1 && aws.ToString(t.KeySchema[0].AttributeName) == "key_id" {
			return nil
		}
	}
	return &SettingError{Setting: "KeySchema", Found: "another", Rule: "want the partition key key_id of type S and no sort key; create such a table"}
}

// now returns the time of this client.
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

// attempts is how often a claim or transition meets another writer of its record before
// it gives up.
const attempts = 10

// claim reads the record, decides, and writes if nobody else has written since. A fence is
// drawn after the read, so that it is greater than that of the record.
func (s *Store) claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	id := c.Key.ID()
	version := idempotency.NewToken() // of all writes of this call
	var granted idempotency.Outcome
	// What fails before the first write has changed nothing.
	failed := func(err error) (idempotency.Outcome, error) {
		if granted.Decision != idempotency.Undecided {
			return idempotency.Outcome{}, ambiguous(err)
		}
		return idempotency.Outcome{}, fmt.Errorf("dynamostore: nothing was claimed: %w", err)
	}
	for range attempts {
		found, at, err := s.get(ctx, id)
		if err != nil {
			return failed(err)
		}
		if at == version { // the driver repeated a write that had been made
			return granted, nil
		}
		now := s.now()
		d := idempotency.Decide(found, c, now)
		if !d.Granted() {
			found.ReadAt = now
			return idempotency.NewOutcome(d, found, c), nil
		}
		var fence int64
		if d != idempotency.Renewed {
			if fence, err = s.draw(ctx, id); err != nil {
				return failed(err)
			}
		}
		r := idempotency.Grant(found, s.slacken(c), d, fence, now)
		r.Body = append([]byte(nil), r.Body...)
		granted = idempotency.NewOutcome(d, r, c)
		made, err := s.put(ctx, itemOf(r, version), at)
		if err != nil {
			return idempotency.Outcome{}, ambiguous(err)
		}
		if made {
			return granted, nil
		}
	}
	return idempotency.Outcome{Decision: idempotency.InProgress, Record: idempotency.Record{Key: c.Key}}, nil // others are writing it
}

// slacken makes the claim's lease longer and its time for resending shorter, so that both
// are judged safely by a clock that differs by the slack.
func (s *Store) slacken(c idempotency.Claim) idempotency.Claim {
	if c.Terms.Lease < idempotency.Forever-s.slack {
		c.Terms.Lease += s.slack
	}
	if c.Terms.ResendFor != idempotency.Forever {
		c.Terms.ResendFor = max(0, c.Terms.ResendFor-s.slack)
	}
	return c
}

// ClaimBatch implements [idempotency.Store]. Claims of different keys are made
// concurrently, 16 at a time, and each is a write of its own.
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
	concurrently(byKey, func(indexes []int) {
		for _, i := range indexes {
			if outs[i], errs[i] = s.claim(ctx, claims[i]); errs[i] != nil {
				return
			}
		}
	})
	for _, err := range errs {
		if errors.Is(err, idempotency.ErrAmbiguous) {
			return nil, err
		} else if err != nil { // others of the batch may have been made
			return nil, ambiguous(err)
		}
	}
	return outs, nil
}

// concurrently calls f for each value, at most 16 at a time, and waits.
func concurrently[K comparable, V any](values map[K]V, f func(V)) {
	slots := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for _, v := range values {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f(v)
		})
	}
	wg.Wait()
}

// Complete implements [idempotency.Store]. It writes only if the record still has the
// fence.
func (s *Store) Complete(ctx context.Context, ref idempotency.Ref, result idempotency.Result) error {
	return s.settle(ctx, ref, idempotency.Completed(result))
}

// Fail implements [idempotency.Store].
func (s *Store) Fail(ctx context.Context, ref idempotency.Ref, failure idempotency.Failure) error {
	return s.settle(ctx, ref, idempotency.FailedWith(failure))
}

// Release implements [idempotency.Store].
func (s *Store) Release(ctx context.Context, ref idempotency.Ref) error {
	return s.settle(ctx, ref, idempotency.Released())
}

func (s *Store) settle(ctx context.Context, ref idempotency.Ref, t idempotency.Transition) error {
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
		found, at, err := s.get(ctx, ref.Key.ID())
		if err != nil {
			if wrote {
				return ambiguous(err)
			}
			return fmt.Errorf("dynamostore: nothing was changed: %w", err)
		}
		r, err := idempotency.Settle(found, ref, t, s.now())
		if err != nil {
			return err
		}
		if found.Equal(r) && found.Status != idempotency.Running { // made before
			return nil
		}
		made, err := s.put(ctx, itemOf(r, idempotency.NewToken()), at)
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

// get returns the record and its version, both zero if there is none.
func (s *Store) get(ctx context.Context, id idempotency.KeyID) (idempotency.Record, idempotency.Token, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table, Key: keyOf(id.String()), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return idempotency.Record{}, idempotency.Token{}, err
	}
	return item(out.Item).parse()
}

// put writes the item if the record still has the version, and reports whether it did.
func (s *Store) put(ctx context.Context, it item, at idempotency.Token) (made bool, err error) {
	in := &dynamodb.PutItemInput{TableName: &s.table, Item: it, ConditionExpression: aws.String("attribute_not_exists(key_id)")}
	if at != (idempotency.Token{}) {
		in.ConditionExpression = aws.String("version_token = :at")
		in.ExpressionAttributeValues = item{":at": &types.AttributeValueMemberB{Value: at[:]}}
	}
	_, err = s.client.PutItem(ctx, in)
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return false, nil
	}
	return err == nil, err
}

// bucketBits is how many bits of a key ID choose the counter of its fences. They are the
// lowest bits of a fence, so that the fences of different counters differ.
const bucketBits = 12

// draw returns a fence that was never given before: the time in milliseconds if the
// counter is behind it, or else the next number. So fences go on growing when
// the table is restored from a backup.
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
