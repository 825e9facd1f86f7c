package idempotency_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// unresolvedStore returns a store with one operation in progress whose lease has ended.
func unresolvedStore(t *testing.T) (store *idempotency.Memory, claim idempotency.Claim, clock *time.Time) {
	t.Helper()
	now := time.Date(2025, 12, 4, 17, 0, 0, 0, time.UTC)
	store = &idempotency.Memory{Now: func() time.Time { return now }}
	claim = idempotency.Claim{
		Key: idempotency.Key{Scope: "kfm", Operation: "send", Value: "k"}, Token: idempotency.NewToken(),
		Fingerprint: idempotency.FingerprintOf("test/1", []byte("k")), Group: "g", Body: []byte(`{}`),
		Terms: idempotency.Terms{Lease: time.Second, TTL: time.Hour},
	}
	out, err := store.Claim(t.Context(), claim)
	require.NoError(t, err)
	require.Equal(t, idempotency.DecisionNew, out.Decision)
	now = now.Add(time.Minute)
	return store, claim, &now
}

func lookUp(t *testing.T, store idempotency.Store, key idempotency.Key) idempotency.Record {
	t.Helper()
	records, err := store.Lookup(t.Context(), key)
	require.NoError(t, err)
	return records[0]
}

var noEffect = idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll, Reason: "not in the queue"})

func TestResolve(t *testing.T) {
	for _, c := range []struct {
		name string
		t    idempotency.Ending
		want idempotency.Status
		then idempotency.Decision
	}{
		{"it took effect", idempotency.Completed(idempotency.Result{MessageID: "m-1"}), idempotency.StatusSucceeded, idempotency.DecisionDuplicate},
		{"it did not", noEffect, idempotency.StatusFailed, idempotency.DecisionNew},
	} {
		t.Run(c.name, func(t *testing.T) {
			store, claim, _ := unresolvedStore(t)
			found := lookUp(t, store, claim.Key)
			require.NoError(t, idempotency.Resolve(t.Context(), store, found, c.t))
			resolved := lookUp(t, store, claim.Key)
			assert.Equal(t, c.want, resolved.Status)
			assert.Equal(t, found.Created, resolved.Created)
			assert.Equal(t, found.Body, resolved.Body)
			claim.Token = idempotency.NewToken()
			out, err := store.Claim(t.Context(), claim)
			require.NoError(t, err)
			assert.Equal(t, c.then, out.Decision)
		})
	}
}

// The caller of Resolve reads the record. Then another claimant runs the operation again.
// Resolve must return an error, because the caller does not know of the second run.
func TestResolveTooLate(t *testing.T) {
	again := func(t *testing.T, store idempotency.Store, claim idempotency.Claim) idempotency.Outcome {
		t.Helper()
		claim.Token, claim.Resend = idempotency.NewToken(), true
		out, err := store.Claim(t.Context(), claim)
		require.NoError(t, err)
		require.Equal(t, idempotency.DecisionReclaimed, out.Decision)
		return out
	}
	t.Run("it runs again", func(t *testing.T) {
		store, claim, _ := unresolvedStore(t)
		found := lookUp(t, store, claim.Key)
		again(t, store, claim)
		var inProgress *idempotency.InProgressError
		require.ErrorAs(t, idempotency.Resolve(t.Context(), store, found, noEffect), &inProgress)
	})
	t.Run("it ran again and is in doubt again", func(t *testing.T) {
		store, claim, clock := unresolvedStore(t)
		found := lookUp(t, store, claim.Key)
		again(t, store, claim)
		*clock = clock.Add(time.Minute)
		require.ErrorIs(t, idempotency.Resolve(t.Context(), store, found, noEffect), idempotency.ErrStaleClaim)
		require.Equal(t, idempotency.StatusRunning, lookUp(t, store, claim.Key).Status)
		assert.NoError(t, idempotency.Resolve(t.Context(), store, lookUp(t, store, claim.Key), noEffect), "with what is found out now")
	})
	t.Run("it was resolved", func(t *testing.T) {
		store, claim, _ := unresolvedStore(t)
		found := lookUp(t, store, claim.Key)
		require.NoError(t, store.Finish(t.Context(), again(t, store, claim).Ref(), idempotency.Completed(idempotency.Result{MessageID: "m-2"})))
		require.ErrorIs(t, idempotency.Resolve(t.Context(), store, found, noEffect), idempotency.ErrStaleClaim)
		assert.Equal(t, "m-2", lookUp(t, store, claim.Key).Result.MessageID)
		require.ErrorIs(t, idempotency.Resolve(t.Context(), store, lookUp(t, store, claim.Key), noEffect), idempotency.ErrStaleClaim)
	})
	t.Run("a claim that was taken back is none", func(t *testing.T) {
		store, claim, _ := unresolvedStore(t)
		out := again(t, store, claim)
		require.NoError(t, store.Finish(t.Context(), out.Ref(), idempotency.Released()))
		require.ErrorIs(t, store.Finish(t.Context(), out.Ref(), idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForAll})), idempotency.ErrStaleClaim)
		assert.NoError(t, idempotency.Resolve(t.Context(), store, lookUp(t, store, claim.Key), noEffect))
	})
}

func TestResolveWantsProof(t *testing.T) {
	store, claim, _ := unresolvedStore(t)
	found := lookUp(t, store, claim.Key)
	for _, t1 := range []idempotency.Ending{
		{},
		idempotency.Released(),
		idempotency.FailedWith(idempotency.Failure{}),
		idempotency.FailedWith(idempotency.Failure{Proof: idempotency.ProofForClaim}),
	} {
		var invalid *idempotency.InvalidError
		require.ErrorAs(t, idempotency.Resolve(context.Background(), store, found, t1), &invalid)
	}
	assert.True(t, found.Equal(lookUp(t, store, claim.Key)), "nothing was changed")
}

func TestResolutionCheck(t *testing.T) {
	for _, r := range []idempotency.Resolution{idempotency.ResolutionTookEffect, idempotency.ResolutionNoEffect, idempotency.ResolutionGiveUp} {
		require.NoError(t, r.Check())
	}
	for _, r := range []idempotency.Resolution{"", "delivered", "Give_Up"} {
		var invalid *idempotency.InvalidError
		require.ErrorAs(t, r.Check(), &invalid)
		assert.Equal(t, "Resolution", invalid.Field)
	}
}
