package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
)

func (r *rig) prepare(k ...*store.Claim) { r.Prepare(context.Background(), k) }

// Prepare claims events in advance. The next Ask then returns KindGo without a store
// call, if the rest of the lease is long enough for an attempt.
func TestPrepare(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		first := r.event("first")
		r.prepare(first)
		require.Equal(t, verdict.KindGo, r.ask(first).Kind)
		require.Equal(t, verdict.KindGo, r.ask(first).Kind)
		require.EqualValues(t, 1, r.Stats().Renewed, "each attempt has its own answer")

		calls := r.called("claim")
		a, b := r.event("a"), r.event("b")
		r.prepare(a, b)
		require.Equal(t, calls+1, r.called("claim"))
		require.Equal(t, idempotency.StatusRunning, r.record("a").Status)
		require.Equal(t, verdict.StateClear, a.Known().State)
		time.Sleep(lease - oneAttempt - window.Arrival)
		require.Equal(t, verdict.KindGo, r.ask(a).Kind)
		require.Equal(t, calls+1, r.called("claim"))
		require.True(t, r.MayLeave(a))
		time.Sleep(time.Nanosecond)
		require.Equal(t, verdict.KindGo, r.ask(b).Kind)
		require.Equal(t, calls+2, r.called("claim"), "the lease was too short")
		require.EqualValues(t, 3, r.Stats().New)
		require.EqualValues(t, 2, r.Stats().Renewed)
		r.prepare(a, b)
		require.Equal(t, calls+2, r.called("claim"), "both claims are granted")
	})
}

// The store refuses three claims: another claimant has the first event, the second is
// already stored, and the third has another event's key. Prepare ignores the refusals and
// does not count them. The next Ask calls the store again, and returns KindWait, KindKnown
// and KindRefuse.
func TestPrepareGrantsNoMore(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		mine, done, other := r.event("held"), r.event("done"), r.claim("key", "payload", "body")
		for _, k := range []*store.Claim{mine, done, other} {
			require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		}
		r.Attempted(done, &stored, new(waiter))
		r.waitForWrites()
		all := []*store.Claim{r.event("held"), r.event("done"), r.claim("key", "another payload", "body")}
		r.prepare(all...)
		require.Zero(t, r.Stats().Waits+r.Stats().Duplicates+r.Stats().Conflicts, "Ask counts")
		require.Equal(t, verdict.StateInDoubt, all[0].Known().State, "the other claimant may be sending")
		require.Equal(t, verdict.StateStored, all[1].Known().State)
		v := make([]verdict.Verdict, 3)
		r.Ask(t.Context(), all, v)
		require.Equal(t, []verdict.Kind{verdict.KindWait, verdict.KindKnown, verdict.KindRefuse}, []verdict.Kind{v[0].Kind, v[1].Kind, v[2].Kind})
	})
}

// The store has recorded the event with other bytes than the claim has, and Prepare finds
// this out. The next Ask returns KindAdopt and reports the difference (Drift). After Adopt,
// the claim has the recorded bytes: Ask returns KindGo, and does not report the
// difference again.
func TestPrepareOtherBytes(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		require.Equal(t, verdict.KindGo, r.ask(r.claim("k", "payload", "first bytes")).Kind)
		time.Sleep(lease)
		k := r.claim("k", "payload", "other bytes")
		r.prepare(k)
		v := r.ask(k)
		require.Equal(t, verdict.Verdict{Kind: verdict.KindAdopt, Drift: true}, v)
		require.Equal(t, "first bytes", string(k.Adopt().Body))
		require.Equal(t, verdict.Verdict{Kind: verdict.KindGo}, r.ask(k))
		require.EqualValues(t, 1, r.Stats().Drifts)
	})
}

// Prepare finds that the store has recorded the event with other bytes. Then the store
// fails. With FailOpen, Ask permits attempts without the store, but not with bytes known to
// differ: Ask returns verdict.KindAdopt until Adopt has replaced the bytes.
func TestPrepareOtherBytesFailOpen(t *testing.T) {
	with(t, func(o *store.Options, _ *idempotency.PolicyConfig) { o.FailOpen = true }, func(t *testing.T, r *rig) {
		require.Equal(t, verdict.KindGo, r.ask(r.claim("k", "payload", "first bytes")).Kind)
		time.Sleep(lease)
		k := r.claim("k", "payload", "other bytes")
		r.prepare(k)
		r.fail(failBefore)
		require.Equal(t, verdict.Verdict{Kind: verdict.KindAdopt, Drift: true}, r.ask(k))
		require.Equal(t, "first bytes", string(k.Adopt().Body))
		v := r.ask(k)
		require.Equal(t, verdict.KindGo, v.Kind)
		require.ErrorIs(t, v.Err, errDown)
		require.EqualValues(t, 1, r.Stats().Drifts)
	})
}

// Prepare claims an event, but no attempt follows. Release then removes the claim from
// the store.
func TestPrepareIsReleased(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		k := r.event("k")
		r.prepare(k)
		r.Release(k)
		r.waitForWrites()
		require.Equal(t, idempotency.StatusAbsent, r.record("k").Status)
	})
}

// If the store fails, Prepare gets no claim. For a second afterwards, Prepare makes no call
// of the store. Ask makes its call anyway.
func TestPrepareWithoutStore(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.fail(failBefore)
		k := r.event("k")
		r.prepare(k)
		r.prepare(k)
		require.Equal(t, 1, r.called("claim"))
		r.fail(nil)
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		require.Equal(t, 2, r.called("claim"))
	})
}

// The store grants a claim to a call of Prepare, but the store's answer is lost
// (ErrAmbiguous). The next Ask claims the event with the same token, so the store renews
// the claim, and Ask begins it again.
func TestPrepareAmbiguous(t *testing.T) {
	with(t, nil, func(t *testing.T, r *rig) {
		r.fail(func(string) (before, after error) { return nil, idempotency.ErrAmbiguous })
		k := r.event("k")
		r.prepare(k)
		r.fail(nil)
		require.Equal(t, verdict.KindGo, r.ask(k).Kind)
		require.EqualValues(t, 1, r.Stats().New)
		require.Equal(t, 1, r.called("release"))
	})
}

// damagingStore is a store that returns other bytes than it has recorded.
type damagingStore struct{ idempotency.Store }

func (s damagingStore) ClaimBatch(ctx context.Context, all []idempotency.Claim) ([]idempotency.Outcome, error) {
	out, err := s.Store.ClaimBatch(ctx, all)
	for i := range out {
		out[i].Record.Body = []byte("damaged")
	}
	return out, err
}

func (s damagingStore) Lookup(ctx context.Context, keys ...idempotency.Key) ([]idempotency.Record, error) {
	out, err := s.Store.Lookup(ctx, keys...)
	for i := range out {
		out[i].Body = []byte("damaged")
	}
	return out, err
}

// The store returns a message that does not match its hash. The message is never sent:
// the event waits, or with FailOpen is sent with its own bytes.
func TestDamagedRecord(t *testing.T) {
	for _, failOpen := range []bool{false, true} {
		damage := func(o *store.Options, _ *idempotency.PolicyConfig) {
			o.FailOpen, o.Store = failOpen, damagingStore{o.Store}
		}
		with(t, damage, func(t *testing.T, r *rig) {
			require.Equal(t, verdict.KindGo, r.ask(r.claim("k", "payload", "first bytes")).Kind)
			time.Sleep(lease)
			k := r.claim("k", "payload", "other bytes")
			found := r.look(k)
			r.prepare(k)
			asked := r.ask(k)
			if failOpen {
				require.Equal(t, verdict.KindGo, found.Kind)
				require.Equal(t, verdict.KindGo, asked.Kind)
				return
			}
			for _, v := range []verdict.Verdict{found, asked} {
				require.Equal(t, verdict.KindWait, v.Kind)
				require.ErrorContains(t, v.Err, "the store returned other bytes")
			}
		})
	}
}
