package memory

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/attempt"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/process"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory/store"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

func newPolicy(t *testing.T) idempotency.Policy {
	t.Helper()
	policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: time.Hour, Lease: 30 * time.Second, Window: 5 * time.Minute})
	require.NoError(t, err)
	return policy
}

// combine merges the state of an event in this process with its state in the store. If the
// states differ, the result is the earlier state in this list: verdict.StateAltered,
// verdict.StateStored, verdict.StateInDoubt, verdict.StateUnanswered, verdict.StateClear.
func TestCombine(t *testing.T) {
	policy := newPolicy(t)
	key := idempotency.Key{Scope: "s", Operation: "o", Value: "v"}
	is := idempotency.FingerprintOf("test/1", []byte("p"))
	memory := func(s idempotency.Store) *Memory { return New(Options{Store: s, Policy: policy}) }

	claims := map[string]func() *store.Claim{
		"no store": func() *store.Claim { return nil },
		"unasked": func() *store.Claim {
			k, err := memory(new(idempotency.Memory)).claims.Claim(key, is, Message{}, idempotency.Dataset{})
			require.NoError(t, err)
			return k
		},
		"clear": func() *store.Claim {
			m, r := memory(new(idempotency.Memory)), &Record{}
			require.NoError(t, m.Claim(r, key, is, Message{}, idempotency.Dataset{}))
			m.LookUp(t.Context(), []Attempt{{Record: r}})
			return r.claim.Load()
		},
		"in doubt": func() *store.Claim {
			s := new(idempotency.Memory)
			_, err := s.Claim(t.Context(), idempotency.Claim{Key: key, Token: idempotency.NewToken(), Fingerprint: is, Terms: policy.Terms()})
			require.NoError(t, err)
			m, r := memory(s), &Record{}
			require.NoError(t, m.Claim(r, key, is, Message{}, idempotency.Dataset{}))
			m.LookUp(t.Context(), []Attempt{{Record: r}})
			return r.claim.Load()
		},
		"stored": func() *store.Claim {
			s := new(idempotency.Memory)
			out, err := s.Claim(t.Context(), idempotency.Claim{Key: key, Token: idempotency.NewToken(), Fingerprint: is, Terms: policy.Terms()})
			require.NoError(t, err)
			require.NoError(t, s.Finish(t.Context(), out.Ref(), idempotency.Completed(idempotency.Result{MessageID: "m"})))
			m, r := memory(s), &Record{}
			require.NoError(t, m.Claim(r, key, is, Message{}, idempotency.Dataset{}))
			m.LookUp(t.Context(), []Attempt{{Record: r}})
			return r.claim.Load()
		},
	}
	for _, tc := range []struct {
		there string
		here  verdict.State
		want  verdict.State
	}{
		{"no store", verdict.StateUnknown, verdict.StateClear},
		{"no store", verdict.StateInDoubt, verdict.StateInDoubt},
		{"no store", verdict.StateStored, verdict.StateStored},
		{"no store", verdict.StateAltered, verdict.StateAltered},
		{"unasked", verdict.StateClear, verdict.StateUnanswered},
		{"unasked", verdict.StateStored, verdict.StateStored},
		{"clear", verdict.StateUnknown, verdict.StateClear},
		{"clear", verdict.StateInDoubt, verdict.StateInDoubt},
		{"in doubt", verdict.StateClear, verdict.StateInDoubt},
		{"in doubt", verdict.StateStored, verdict.StateStored},
		{"in doubt", verdict.StateAltered, verdict.StateAltered},
		{"stored", verdict.StateUnknown, verdict.StateStored},
		{"stored", verdict.StateInDoubt, verdict.StateStored},
		{"stored", verdict.StateAltered, verdict.StateAltered},
	} {
		k := combine(process.Known{State: tc.here}, false, claims[tc.there](), false, false, false, false)
		assert.Equal(t, tc.want, k.State, "%s there, %v here", tc.there, tc.here)
		if tc.there == "stored" && k.State == verdict.StateStored {
			assert.True(t, k.Before)
			result, _ := k.Recorded()
			assert.Equal(t, "m", result.MessageID)
		}
	}
	k := combine(process.Known{}, false, claims["unasked"](), false, false, false, true)
	assert.Equal(t, verdict.StateClear, k.State, "an event that is refused does not depend on a silent store")
	k = combine(process.Known{}, false, claims["unasked"](), false, true, false, false)
	assert.Equal(t, verdict.StateClear, k.State, "an event without a claim does not depend on the store")
	k = combine(process.Known{}, false, nil, true, false, false, false)
	assert.Equal(t, verdict.StateUnanswered, k.State, "an event without a claim yet depends on the store")
	k = combine(process.Known{}, false, nil, false, false, true, false)
	assert.Equal(t, attempt.FateAltered, k.Fate())
}

// A submission without a claim does not know whether the store has its event: the name of the
// queue, which is in the key, may become known and another submission claim the event.
func TestAwaitRecordOfADeferredClaim(t *testing.T) {
	m := New(Options{Store: new(idempotency.Memory), Policy: newPolicy(t)})
	r := new(Record)
	r.DeferClaim()
	assert.True(t, m.AwaitRecord(r, nil))
	r.DropClaim()
	assert.False(t, m.AwaitRecord(r, nil))
}
