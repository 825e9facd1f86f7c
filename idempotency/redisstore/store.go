package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// Config configures a [Store].
type Config struct {
	// Client is a *redis.Client (from redis.NewClient or redis.NewFailoverClient) or a
	// *redis.ClusterClient. The caller closes Client after the store. The client's
	// timeouts bound the duration of calls and of Close.
	Client redis.UniversalClient

	// Prefix precedes the names of all Redis keys of the store, for example "shop:". It
	// must not contain braces. Stores with different prefixes are independent.
	Prefix string

	// AllowLoss accepts server settings that may lose acknowledged writes.
	// [Store.Weaknesses] names these settings.
	AllowLoss bool

	// Logger receives a record after a backward step of the server's clock. Nil disables
	// logging.
	Logger *slog.Logger
}

// Store is an [idempotency.Store] in Redis. It is safe for concurrent use. Any number of
// stores and processes may share a server.
type Store struct {
	client     redis.UniversalClient
	prefix     string
	scripts    scripts
	weaknesses []string
	logger     *slog.Logger
	clocks     clocks

	mu       sync.Mutex
	closed   bool
	calls    sync.WaitGroup                        // running calls; grows under mu
	claiming map[idempotency.Token]<-chan struct{} // closed at the end of the running claim
}

var _ idempotency.Store = (*Store)(nil)

// Open returns a store over a server or cluster. It returns an
// [*idempotency.InvalidError] for servers that cannot run the store and, without
// AllowLoss, for settings that may lose acknowledged writes. Open does not detect later
// changes of settings.
func Open(ctx context.Context, c Config) (*Store, error) { return open(ctx, c, serverClock) }

func open(ctx context.Context, c Config, clock string) (*Store, error) {
	if c.Client == nil {
		return nil, wrong("Config.Client", "nil", "make one with redis.NewClient and pass it")
	}
	if i := strings.IndexAny(c.Prefix, "{}"); i >= 0 {
		return nil, wrong("Config.Prefix", fmt.Sprintf("%q", c.Prefix), fmt.Sprintf("brace at position %d; the first braces of a key choose its slot in a cluster, use a prefix without them", i))
	}
	s := &Store{client: c.Client, prefix: c.Prefix, scripts: newScripts(clock), logger: cmp.Or(c.Logger, slog.New(slog.DiscardHandler)), claiming: map[idempotency.Token]<-chan struct{}{}}
	seen := map[string]bool{}
	err := s.primaries(ctx, func(ctx context.Context, node *redis.Client) error {
		weak, err := checkServer(ctx, node)
		if err != nil {
			return err
		}
		if len(weak) > 0 && !c.AllowLoss {
			return wrong(weak[0].setting, weak[0].found, weak[0].rule+", or set Config.AllowLoss")
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
	if err := s.watchClocks(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Weaknesses names the settings that may lose acknowledged writes, for example
// "appendfsync is everysec". Without [Config.AllowLoss] the list is empty, because [Open]
// refuses such settings.
func (s *Store) Weaknesses() []string { return append([]string(nil), s.weaknesses...) }

// Close waits for running calls. Later calls return [idempotency.ErrClosed]. The client
// stays open.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.calls.Wait()
	return nil
}

// begin adds a running call to s.calls. The caller must end it with s.calls.Done.
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

// await runs f in a goroutine, because the driver may ignore the end of ctx. It returns
// when f or ctx ends. f must not use memory that the caller may change.
func await[T any](ctx context.Context, s *Store, f func() (T, error)) (T, error) {
	var none, value T
	err := s.begin(ctx)
	if err != nil {
		return none, err
	}
	done := make(chan struct{}) // closed when value and err are set
	go func() {
		defer s.calls.Done()
		defer close(done)
		value, err = f()
	}()
	select {
	case <-done:
		if err != nil && ctx.Err() != nil {
			return none, fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return value, err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// enter marks the tokens as running until a call of leave. It first waits for the end of
// earlier claims with these tokens. Their callers may have stopped waiting and now repeat
// the claims: an earlier claim must not reach the server after its repetition.
func (s *Store) enter(ctx context.Context, tokens []idempotency.Token) (leave func(), err error) {
	done := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		running := s.running(tokens)
		if running == nil {
			break
		}
		s.mu.Unlock()
		select {
		case <-running:
		case <-ctx.Done():
		}
		s.mu.Lock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	// The caller may have stopped waiting and repeated the claim. This claim must not
	// reach the server after the repetition.
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, t := range tokens {
		s.claiming[t] = done
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, t := range tokens {
			delete(s.claiming, t)
		}
		close(done)
	}, nil
}

// running returns nil if no claim with any of the tokens is running. Otherwise it returns
// a channel that closes at the end of such a claim. The caller holds mu.
func (s *Store) running(tokens []idempotency.Token) <-chan struct{} {
	for _, t := range tokens {
		if done := s.claiming[t]; done != nil {
			return done
		}
	}
	return nil
}

// ambiguous wraps the error of a write. The driver may send a write several times, so an
// error of the last attempt does not prove that nothing was written.
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

// ClaimBatch implements [idempotency.Store] with one round trip for claims of different
// keys. A batch is not a transaction.
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
	tokens := make([]idempotency.Token, len(claims))
	for i, c := range claims {
		calls[i], tokens[i] = s.claimCall(c), c.Token
	}
	rounds := roundsOf(calls)
	answers, err := await(ctx, s, func() ([]answer, error) {
		leave, err := s.enter(ctx, tokens)
		if err != nil {
			return nil, err
		}
		defer leave()
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
		s.watchClock(s.nameOf(claims[i].Key), a)
		d, ok := decisions[a.word]
		if !ok {
			return nil, ambiguous(errAnswer)
		}
		if d == idempotency.DecisionFull {
			outs[i] = idempotency.Outcome{Decision: d}
			continue
		}
		outs[i] = idempotency.NewOutcome(d, a.record, claims[i])
	}
	return outs, nil
}

// decisions maps the claim script's words to decisions.
var decisions = func() map[string]idempotency.Decision {
	m := map[string]idempotency.Decision{}
	for d := idempotency.DecisionNew; d <= idempotency.DecisionFull; d++ {
		m[d.String()] = d
	}
	return m
}()

// roundsOf divides calls into rounds with at most one call per key. A round is sent after
// the previous round's answers. The driver may resend calls of a round in any order, so
// calls of one key need separate rounds.
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

// Extend implements [idempotency.Store].
func (s *Store) Extend(ctx context.Context, ref idempotency.Ref, lease time.Duration) error {
	return s.Finish(ctx, ref, idempotency.Extended(lease))
}

// Finish implements [idempotency.Store].
func (s *Store) Finish(ctx context.Context, ref idempotency.Ref, t idempotency.Ending) error {
	if err := ref.Check(); err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c := s.endingCall(ref, t)
	answers, err := await(ctx, s, func() ([]answer, error) { return s.run(ctx, s.scripts.finish, []call{c}) })
	if err != nil {
		return ambiguous(err)
	}
	if answers[0].word == "made" {
		return nil
	}
	_, err = idempotency.ApplyEnding(answers[0].record, ref, t, answers[0].record.ReadAt)
	return err
}
