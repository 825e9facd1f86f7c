package memory

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
)

// Two events of a group are in one request. Another process is sending the first event, so
// both events must wait. The store says about the second event that it has recorded other
// bytes, or that the key belongs to another event. The store says so only once, and the
// caller still hears of it once.
func TestADifferenceIsReportedWhileTheEventIsHeld(t *testing.T) {
	policy := newPolicy(t)
	for _, payload := range []string{"b", "x"} {
		synctest.Test(t, func(t *testing.T) {
			options := Options{Store: new(idempotency.Memory), Policy: policy}
			other, m := New(options), New(options)
			defer func() { _, _ = other.Close(t.Context()) }()
			defer func() { _, _ = m.Close(t.Context()) }()
			submit := func(m *Memory, key, payload, body string) *Record {
				r := &Record{SendAnyway: true}
				require.NoError(t, m.Claim(r, idempotency.Key{Scope: "s", Operation: "o", Value: key}, idempotency.FingerprintOf("test/1", []byte(payload)),
					Message{Body: []byte(body), Group: "g"}, idempotency.Dataset{}))
				m.Identify(r, key, "g", body, payload, [32]byte{})
				return r
			}
			require.Equal(t, verdict.KindGo, admit(t, other, submit(other, "second", "b", "first bytes")).Kind)
			time.Sleep(policy.Config().Lease)
			require.Equal(t, verdict.KindGo, admit(t, other, submit(other, "first", "a", "a")).Kind)

			first, second := submit(m, "first", "a", "a"), submit(m, "second", payload, "other bytes")
			var drifts, reuses int
			var last verdict.Kind
			for range 3 {
				a := []Attempt{{Record: first, First: true}, {Record: second, First: true, Follows: true}}
				m.Admit(t.Context(), a)
				require.Equal(t, []verdict.Kind{verdict.KindWait, verdict.KindHold}, []verdict.Kind{a[0].Kind, a[1].Kind})
				v := admit(t, m, second)
				for _, v := range []verdict.Verdict{a[1].Verdict, v} {
					if v.Drift {
						drifts++
					}
					if v.Reuse != verdict.ReuseNone {
						reuses++
					}
				}
				if last = v.Kind; last == verdict.KindAdopt {
					second.Adopt()
					m.Identify(second, "second", "g", "first bytes", payload, [32]byte{})
				} else {
					break
				}
			}
			assert.Equal(t, verdict.KindGo, last)
			if payload == "b" {
				assert.Equal(t, []int{1, 0}, []int{drifts, reuses})
			} else {
				assert.Equal(t, []int{0, 1}, []int{drifts, reuses})
			}
			assert.EqualValues(t, drifts, m.StoreStats().Drifts)
		})
	}
}
