package store_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

const (
	oneAttempt   = 20 * time.Second
	storeTimeout = 5 * time.Second
	lease        = 30 * time.Second
	resendFor    = 265 * time.Second
)

var errDown = errors.New("the database is down")

// rig combines a claimant and a store with simulated failures.
type rig struct {
	*store.Claimant
	options store.Options
	t       *testing.T
	memory  *idempotency.Memory
	begin   time.Time

	slow time.Duration // delay of the store before it returns from a call

	mu    sync.Mutex
	fails func(call string) (before, after error) // errors of a call, before or after its effect
	calls map[string]int
}

func with(t *testing.T, change func(*store.Options, *idempotency.PolicyConfig), test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, memory: new(idempotency.Memory), begin: time.Now(), calls: map[string]int{}}
		policy := idempotency.PolicyConfig{
			TTL: time.Hour, Retry: 4 * time.Minute, Clock: 5 * time.Second, Lease: lease, Window: 5 * time.Minute, StoreTimeout: storeTimeout,
		}
		o := store.Options{Store: &flaky{r.memory, r}, Attempt: oneAttempt, Now: func() time.Duration { return time.Since(r.begin) }}
		if change != nil {
			change(&o, &policy)
		}
		var err error
		o.Policy, err = idempotency.NewPolicy(policy)
		require.NoError(t, err)
		require.Equal(t, resendFor, o.Policy.Terms().ResendFor)
		r.options = o
		r.Claimant = store.New(o)
		test(t, r)
		r.fail(nil)
		_, _ = r.Close(context.Background())
	})
}

func (r *rig) fail(f func(call string) (before, after error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = f
}

func (r *rig) called(call string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[call]
}

// failBefore makes every store call fail before it has an effect: see rig.fail.
func failBefore(string) (before, after error) { return errDown, nil }

// flaky is a store in memory. Its calls fail as the function r.fails says, and take the
// time r.slow.
type flaky struct {
	*idempotency.Memory
	r *rig
}

func (s *flaky) do(call string, f func() error) error {
	s.r.mu.Lock()
	s.r.calls[call]++
	var before, after error
	if s.r.fails != nil {
		before, after = s.r.fails(call)
	}
	s.r.mu.Unlock()
	if before != nil {
		return before
	}
	if err := f(); err != nil {
		return err
	}
	time.Sleep(s.r.slow)
	return after
}

func (s *flaky) ClaimBatch(ctx context.Context, all []idempotency.Claim) (out []idempotency.Outcome, err error) {
	err = s.do("claim", func() (err error) { out, err = s.Memory.ClaimBatch(ctx, all); return err })
	return out, err
}

func (s *flaky) Lookup(ctx context.Context, keys ...idempotency.Key) (out []idempotency.Record, err error) {
	err = s.do("lookup", func() (err error) { out, err = s.Memory.Lookup(ctx, keys...); return err })
	return out, err
}

func (s *flaky) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	return s.do(t.String(), func() error { return s.Memory.Finish(ctx, ref, t) })
}

// claim returns the claim of a new submission of an event.
func (r *rig) claim(key, payload, body string) *store.Claim {
	r.t.Helper()
	k, err := r.Claim(keyOf(key), idempotency.FingerprintOf("test/1", []byte(payload)), store.Message{Body: []byte(body), Group: "g"}, idempotency.Dataset{})
	require.NoError(r.t, err)
	return k
}

func keyOf(key string) idempotency.Key {
	return idempotency.Key{Scope: "s", Operation: "o", Value: key}
}

func (r *rig) event(key string) *store.Claim { return r.claim(key, key, key) }

func (r *rig) ask(k *store.Claim) verdict.Verdict {
	v := make([]verdict.Verdict, 1)
	r.Ask(context.Background(), []*store.Claim{k}, v)
	return v[0]
}

func (r *rig) look(k *store.Claim) verdict.Verdict {
	v := make([]verdict.Verdict, 1)
	r.LookUp(context.Background(), []*store.Claim{k}, v)
	return v[0]
}

func (r *rig) record(key string) idempotency.Record {
	r.t.Helper()
	records, err := r.memory.Lookup(context.Background(), keyOf(key))
	require.NoError(r.t, err)
	return records[0]
}

// waitForWrites waits until the claimant has written all results and releases.
func (r *rig) waitForWrites() {
	time.Sleep(100 * time.Millisecond)
	synctest.Wait()
}

var (
	stored    = attempt.Answer{Fate: attempt.FateStored, MessageID: "id", Sequence: "7"}
	doubtful  = attempt.Answer{Fate: attempt.FateInDoubt}
	unsent    = attempt.Answer{Fate: attempt.FateNotStored}
	throttled = attempt.Answer{Fate: attempt.FateNotStored, Load: attempt.LoadThrottled}
	refused   = attempt.Answer{Fate: attempt.FateNotStored, Code: "InvalidMessageContents"}
)
