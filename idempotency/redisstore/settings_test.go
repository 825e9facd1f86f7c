package redisstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/redisstore"
)

func refused(t *testing.T, c redisstore.Config, setting, found string) {
	t.Helper()
	_, err := redisstore.Open(t.Context(), c)
	var got *idempotency.InvalidError
	if !errors.As(err, &got) || got.Field != setting || got.Found != found {
		t.Errorf("got %v, want a InvalidError that %s is %s", err, setting, found)
	}
}

// Open refuses each setting that may lose acknowledged writes. With AllowLoss, Open
// accepts the setting and Weaknesses reports it.
func TestWeakSettings(t *testing.T) {
	server := newServer(t, durable...)
	client := server.client()
	defer client.Close()
	if s := newStore(t, server, redisstore.Config{}); len(s.Weaknesses()) != 0 {
		t.Errorf("durable settings have the weaknesses %v", s.Weaknesses())
	}
	for _, tc := range []struct{ setting, weak, strong string }{
		{"appendonly", "no", "yes"},
		{"appendfsync", "everysec", "always"},
		{"appendfsync", "no", "always"},
		{"no-appendfsync-on-rewrite", "yes", "no"},
		{"maxmemory-policy", "volatile-ttl", "noeviction"},
		{"maxmemory-policy", "allkeys-lru", "noeviction"},
	} {
		if err := client.ConfigSet(t.Context(), tc.setting, tc.weak).Err(); err != nil {
			t.Fatal(err)
		}
		refused(t, redisstore.Config{Client: client}, tc.setting, tc.weak)
		s := newStore(t, server, redisstore.Config{AllowLoss: true})
		if want := tc.setting + " is " + tc.weak; !slices.Equal(s.Weaknesses(), []string{want}) {
			t.Errorf("got the weaknesses %q, want %q", s.Weaknesses(), want)
		}
		if err := client.ConfigSet(t.Context(), tc.setting, tc.strong).Err(); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, redisstore.Config{}, "Config.Client", "nil")
	refused(t, redisstore.Config{Client: client, Prefix: "a{b"}, "Config.Prefix", `"a{b"`)
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	refused(t, redisstore.Config{Client: ring}, "Config.Client", "*redis.Ring")
}

func TestReplicaIsRefused(t *testing.T) {
	server := newServer(t, append(slices.Clone(durable), "--replicaof", "127.0.0.1 1")...)
	client := server.client()
	defer client.Close()
	refused(t, redisstore.Config{Client: client}, "role", `"slave"`)
}

// If the server forbids CONFIG, Open reports its settings as unknown.
func TestHiddenSettings(t *testing.T) {
	server := newServer(t, append(slices.Clone(durable), "--rename-command", "CONFIG", "")...)
	client := server.client()
	defer client.Close()
	refused(t, redisstore.Config{Client: client}, "appendfsync", "unknown")
}

// A server with full memory refuses new keys, answers duplicates, records the results of
// running operations, and drops no record.
func TestFullServer(t *testing.T) {
	server := newServer(t, durable...)
	s := newStore(t, server, redisstore.Config{})
	done := claim(t, s, claimOf("done"), idempotency.DecisionNew)
	running := claim(t, s, claimOf("running"), idempotency.DecisionNew)
	failing := claim(t, s, claimOf("failing"), idempotency.DecisionNew)
	if err := s.Finish(t.Context(), done.Ref(), idempotency.Completed(idempotency.Result{Response: []byte("r")})); err != nil {
		t.Fatal(err)
	}
	client := server.client()
	defer client.Close()
	if err := client.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		claim(t, s, claimOf("new"), idempotency.DecisionFull)
		claim(t, s, claimOf("done"), idempotency.DecisionDuplicate)
		claim(t, s, claimOf("running"), idempotency.DecisionInProgress)
	}
	outs, err := s.ClaimBatch(t.Context(), []idempotency.Claim{claimOf("new"), claimOf("done"), claimOf("new")})
	if err != nil || outs[0].Decision != idempotency.DecisionFull || outs[1].Decision != idempotency.DecisionDuplicate || outs[2].Decision != idempotency.DecisionFull {
		t.Errorf("got %v, %v, want full, duplicate, full", outs, err)
	}
	if err := s.Finish(t.Context(), running.Ref(), idempotency.Completed(idempotency.Result{Response: make([]byte, 100_000)})); err != nil {
		t.Errorf("completion on a full server: %v", err)
	}
	if err := s.Finish(t.Context(), failing.Ref(), idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForClaim})); err != nil {
		t.Errorf("failure on a full server: %v", err)
	}
	if err := client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	claim(t, s, claimOf("new"), idempotency.DecisionNew)
	claim(t, s, claimOf("running"), idempotency.DecisionDuplicate)
}

// The server removes a released record one hour after the release, and a succeeded or
// failed record one hour after its expiry time. It removes no other records.
func TestRemoval(t *testing.T) {
	server := sharedServer(t)
	client := server.client()
	defer client.Close()
	prefix := newPrefix()
	s := newStore(t, server, redisstore.Config{Client: client, Prefix: prefix})
	ctx := context.Background()
	ttl := func(value string) time.Duration {
		t.Helper()
		d, err := client.PTTL(ctx, redisstore.RecordName(s, claimOf(value).Key)).Result()
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	expect := func(doing, value string, want time.Duration) {
		t.Helper()
		got := ttl(value)
		if want < 0 && got != -1 || want > 0 && (got <= want-time.Minute || got > want+time.Second) {
			t.Errorf("%s: the server removes the record in %v, want about %v (-1: never)", doing, got, want)
		}
	}
	const never, hour = -1, time.Hour
	out := claim(t, s, claimOf("a"), idempotency.DecisionNew)
	expect("running", "a", never)
	if err := s.Finish(ctx, out.Ref(), idempotency.FailedWith(idempotency.Failure{})); err != nil {
		t.Fatal(err)
	}
	expect("in doubt", "a", never)
	if err := s.Finish(ctx, out.Ref(), idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll})); err != nil {
		t.Fatal(err)
	}
	expect("failed", "a", 25*hour)
	out = claim(t, s, claimOf("a"), idempotency.DecisionNew)
	expect("failed and claimed", "a", never)
	if err := s.Finish(ctx, out.Ref(), idempotency.Released()); err != nil {
		t.Fatal(err)
	}
	expect("failed, claimed and released", "a", 25*hour)
	out = claim(t, s, claimOf("a"), idempotency.DecisionNew)
	if err := s.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
		t.Fatal(err)
	}
	expect("succeeded", "a", 25*hour)

	out = claim(t, s, claimOf("b"), idempotency.DecisionNew)
	if err := s.Finish(ctx, out.Ref(), idempotency.Released()); err != nil {
		t.Fatal(err)
	}
	expect("released", "b", hour)
	claim(t, s, claimOf("b"), idempotency.DecisionNew)
	expect("released and claimed", "b", never)

	c := claimOf("c")
	c.Terms.TTL = idempotency.Forever
	out = claim(t, s, c, idempotency.DecisionNew)
	if err := s.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
		t.Fatal(err)
	}
	expect("succeeded for ever", "c", never)

	// An expired record can still be completed, because the server keeps it for one hour.
	d := claimOf("d")
	d.Terms.Lease, d.Terms.TTL = time.Millisecond, time.Millisecond
	out = claim(t, s, d, idempotency.DecisionNew)
	time.Sleep(5 * time.Millisecond)
	for range 2 {
		if err := s.Finish(ctx, out.Ref(), idempotency.Completed(idempotency.Result{})); err != nil {
			t.Fatal(err)
		}
	}
	expect("completed after its TTL", "d", hour)

	// Fences grow even after the record was deleted: their counter is a separate Redis
	// key.
	if err := client.Del(ctx, redisstore.RecordName(s, d.Key)).Err(); err != nil {
		t.Fatal(err)
	}
	if again := claim(t, s, d, idempotency.DecisionNew); again.Record.Fence <= out.Record.Fence || again.Record.Generation != 1 {
		t.Errorf("after its removal: fence %d in generation %d, want more than %d in generation 1", again.Record.Fence, again.Record.Generation, out.Record.Fence)
	}
}

// The upper bits of a fence are a counter. Usually each claim sets the counter to the
// server's time in milliseconds. If the counter is already greater, because the clock was
// set back, the claim increases the counter by one.
func TestFencesWithoutTime(t *testing.T) {
	client := sharedServer(t).client()
	defer client.Close()
	s := newStore(t, nil, redisstore.Config{Client: client})
	c := claimOf("a")
	ahead := time.Now().Add(24 * time.Hour).UnixMilli()
	if err := client.Set(t.Context(), redisstore.FenceName(s, c.Key), ahead, 0).Err(); err != nil {
		t.Fatal(err)
	}
	for i := range int64(3) {
		out := claim(t, s, c, idempotency.DecisionNew)
		if got, want := out.Record.Fence>>12, ahead+1+i; got != want {
			t.Errorf("the fence is %d, want %d", got, want)
		}
		if err := s.Finish(t.Context(), out.Ref(), idempotency.Released()); err != nil {
			t.Fatal(err)
		}
	}
}
