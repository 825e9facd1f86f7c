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

// combine merges the state of an event in this process with its state in the store. If
// the states differ, the result is the earlier state in this list: verdict.Altered, verdict.Stored,
// verdict.InDoubt, verdict.Unanswered, Clear.
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
		{"no store", verdict.Unknown, verdict.Clear},
		{"no store", verdict.InDoubt, verdict.InDoubt},
		{"no store", verdict.Stored, verdict.Stored},
		{"no store", verdict.Altered, verdict.Altered},
		{"unasked", verdict.Clear, verdict.Unanswered},
		{"unasked", verdict.Stored, verdict.Stored},
		{"clear", verdict.Unknown, verdict.Clear},
		{"clear", verdict.InDoubt, verdict.InDoubt},
		{"in doubt", verdict.Clear, verdict.InDoubt},
		{"in doubt", verdict.Stored, verdict.Stored},
		{"in doubt", verdict.Altered, verdict.Altered},
		{"stored", verdict.Unknown, verdict.Stored},
		{"stored", verdict.InDoubt, verdict.Stored},
		{"stored", verdict.Altered, verdict.Altered},
	} {
		k := combine(process.Known{State: tc.here}, false, claims[tc.there](), false, false, false, false)
		assert.Equal(t, tc.want, k.State, "%s there, %v here", tc.there, tc.here)
		if tc.there == "stored" && k.State == verdict.Stored {
			assert.True(t, k.Before)
			result, _ := k.Recorded()
			assert.Equal(t, "m", result.MessageID)
		}
	}
	k := combine(process.Known{}, false, claims["unasked"](), false, false, false, true)
	assert.Equal(t, verdict.Clear, k.State, "an event that is refused does not depend on a silent store")
	k = combine(process.Known{}, false, claims["unasked"](), false, true, false, false)
	assert.Equal(t, verdict.Clear, k.State, "an event without a claim does not depend on the store")
	k = combine(process.Known{}, false, nil, true, false, false, false)
	assert.Equal(t, verdict.Unanswered, k.State, "an event without a claim yet depends on the store")
	k = combine(process.Known{}, false, nil, false, false, true, false)
	assert.Equal(t, attempt.Altered, k.Fate())
}
