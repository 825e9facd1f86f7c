package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Config configures a [Store].
type Config struct {
	// Client is a *redis.Client (of redis.NewClient or redis.NewFailoverClient) or a
	// *redis.ClusterClient. The caller closes it after the store. Its timeouts bound
	// how long a call, and Close, may take.
	Client redis.UniversalClient

	// Prefix precedes the names of all keys of the store, for example "shop:". It must
	// not contain braces. Stores with different prefixes never meet.
	Prefix string

	// AllowLoss accepts settings of the server under which acknowledged writes may be
	// lost. They are named by [Store.Weaknesses].
	AllowLoss bool
}

// Store is an [idempotency.Store] in Redis. It is safe for concurrent use. Any number
// of stores and processes may share a server.
type Store struct {
	client     redis.UniversalClient
	prefix     string
	scripts    scripts
	weaknesses []string

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup // under way; grows with mu
}

var _ idempotency.Store = (*Store)(nil)

// Open returns a store over a server or cluster. It refuses, with a [*SettingError],
// servers that cannot run it, and settings under which an acknowledged write may be lost
// unless the configuration allows them. Settings that are changed later are not noticed.
func Open(ctx context.Context, c Config) (*Store, error) { return open(ctx, c, serverClock) }

func open(ctx context.Context, c Config, clock string) (*Store, error) {
	if c.Client == nil {
		return nil, &SettingError{Setting: "Config.Client", Found: "nil", Rule: "make one with redis.NewClient and pass it"}
	}
	if i := strings.IndexAny(c.Prefix, "{}"); i >= 0 {
		return nil, &SettingError{Setting: "Config.Prefix", Found: fmt.Sprintf("%q", c.Prefix), Rule: fmt.Sprintf("brace at position %d; the first braces of a key choose its slot in a cluster, use a prefix without them", i)}
	}
	s := &Store{client: c.Client, prefix: c.Prefix, scripts: newScripts(clock)}
	seen := map[string]bool{}
	err := s.primaries(ctx, func(ctx context.Context, node *redis.Client) error {
		weak, err := checkServer(ctx, node)
		if err != nil {
			return err
		}
		if len(weak) > 0 && !c.AllowLoss {
			return &SettingError{Setting: weak[0].setting, Found: weak[0].found, Rule: weak[0].rule + ", or set Config.AllowLoss"}
		}
		for _, w := range weak {
			if text := w.setting + " is " + w.found; !seen[text] {
				seen[text] = true
				s.weaknesses = append(s.weaknesses, text)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Weaknesses names the settings under which acknowledged writes may be lost, for
// example "appendfsync is everysec". It is empty unless [Config.AllowLoss] is set.
func (s *Store) Weaknesses() []string { return append([]string(nil), s.weaknesses...) }

// Close waits for the calls under way. Later calls return [idempotency.ErrClosed]. The
// client stays open.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	return nil
}

// begin notes a call under way, which ends with s.calls.Done.
func (s *Store) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return idempotency.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

// result is what a call that ran aside came to.
type result[T any] struct {
	value T
	err   error
}

// await runs f, which the driver may not end with ctx, and returns when it or ctx
// has ended. f must not touch what the caller may change.
func await[T any](ctx context.Context, s *Store, f func() (T, error)) (T, error) {
	var none T
	if err := s.begin(ctx); err != nil {
		return none, err
	}
	done := make(chan result[T], 1)
	go func() {
		defer s.calls.Done()
		value, err := f()
		done <- result[T]{value, err}
	}()
	select {
	case r := <-done:
		if r.err != nil && ctx.Err() != nil {
			return none, fmt.Errorf("%w: %w", ctx.Err(), r.err)
		}
		return r.value, r.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// ambiguous is the error of a write that had no answer. The driver repeats calls, so that
// even an error of the server does not prove that nothing was made.
func ambiguous(err error) error {
	if err == nil || err == idempotency.ErrClosed {
		return err
	}
	return fmt.Errorf("redisstore: %w: %w", idempotency.ErrAmbiguous, err)
}

// Claim implements [idempotency.Store].
func (s *Store) Claim(ctx context.Context, c idempotency.Claim) (idempotency.Outcome, error) {
	if err := c.Check(); err != nil {
		return idempotency.Outcome{}, err
	}
	outs, err := s.claim(ctx, []idempotency.Claim{c})
	if err != nil {
		return idempotency.Outcome{}, err
	}
	return outs[0], nil
}

// ClaimBatch implements [idempotency.Store]: one round trip for claims of different
// keys. It is not a transaction.
func (s *Store) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if err := idempotency.CheckBatch(claims); err != nil {
		return nil, err
	}
	return s.claim(ctx, claims)
}

func (s *Store) claim(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	calls := make([]call, len(claims))
	for i, c := range claims {
		calls[i] = s.claimCall(c)
	}
	rounds := roundsOf(calls)
	answers, err := await(ctx, s, func() ([]answer, error) {
		all := make([]answer, len(calls))
		for _, round := range rounds {
			part := make([]call, len(round))
			for j, i := range round {
				part[j] = calls[i]
			}
			answers, err := s.run(ctx, s.scripts.claim, part)
			if err != nil {
				return nil, err
			}
			for j, i := range round {
				all[i] = answers[j]
			}
		}
		return all, nil
	})
	if err != nil {
		return nil, ambiguous(err)
	}
	outs := make([]idempotency.Outcome, len(claims))
	for i, a := range answers {
		d, ok := decisions[a.word]
		if !ok {
			return nil, ambiguous(errAnswer)
		}
		if d == idempotency.Full {
			outs[i] = idempotency.Outcome{Decision: d}
			continue
		}
		outs[i] = idempotency.NewOutcome(d, a.record, claims[i])
	}
	return outs, nil
}

// decisions are those that the script of claims returns.
var decisions = func() map[string]idempotency.Decision {
	m := map[string]idempotency.Decision{}
	for d := idempotency.New; d <= idempotency.Full; d++ {
		m[d.String()] = d
	}
	return m
}()

// roundsOf divides calls into rounds in which each key is called once, so that the
// calls of one key are made in their order whatever the driver repeats.
func roundsOf(calls []call) (rounds [][]int) {
	count := map[string]int{}
	for i, c := range calls {
		n := count[c.keys[0]]
		count[c.keys[0]]++
		if n == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[n] = append(rounds[n], i)
	}
	return rounds
}

// Complete implements [idempotency.Store].
func (s *Store) Complete(ctx context.Context, ref idempotency.Ref, result idempotency.Result) error {
	return s.settle(ctx, ref, idempotency.Completed(result))
}

// Fail implements [idempotency.Store].
func (s *Store) Fail(ctx context.Context, ref idempotency.Ref, failure idempotency.Failure) error {
	return s.settle(ctx, ref, idempotency.FailedWith(failure))
}

// Release implements [idempotency.Store]. A release that is repeated more than an hour
// later is a stale claim.
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
	if err := ctx.Err(); err != nil {
		return err
	}
	c := s.settleCall(ref, t)
	answers, err := await(ctx, s, func() ([]answer, error) { return s.run(ctx, s.scripts.settle, []call{c}) })
	if err != nil {
		return ambiguous(err)
	}
	if answers[0].word == "made" {
		return nil
	}
	_, err = idempotency.Settle(answers[0].record, ref, t, answers[0].record.ReadAt)
	return err
}
