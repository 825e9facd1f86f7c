package guide_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// NewPolicy accepts the policy computed in the guide, but refuses a TTL shorter by a
// second and a capacity lower by one record.
func TestTheGuidesPolicyAddsUp(t *testing.T) {
	policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{
		TTL:    135 * time.Second, // Caller + Retry + Network + Clock, the shortest TTL allowed
		Caller: 10 * time.Second, Retry: 90 * time.Second, Network: 30 * time.Second, Clock: 5 * time.Second,
		Lease:    20 * time.Second, // the longest duration of one run
		Rate:     80,               // new keys a second
		Capacity: 12960,            // 1.2 times the new keys during one TTL, the lowest capacity allowed
	})
	require.NoError(t, err)
	var broken *idempotency.InvalidError
	less := policy.Config()
	less.TTL -= time.Second
	_, err = idempotency.NewPolicy(less)
	require.ErrorAs(t, err, &broken)
	assert.Equal(t, "PolicyConfig.TTL", broken.Field)
	less = policy.Config()
	less.Capacity--
	_, err = idempotency.NewPolicy(less)
	require.ErrorAs(t, err, &broken)
	assert.Equal(t, "PolicyConfig.Capacity", broken.Field)
}

func TestScopesOfTheGuide(t *testing.T) {
	platform, tenant, agent := "api", "a:b", "c"
	scope := idempotency.JoinScope(platform, tenant, agent)
	assert.NotEqual(t, idempotency.JoinScope("api", "a", "b:c"), scope)
}

// webhook is an event that its provider delivers several times.
type webhook struct {
	ID   string
	Body []byte
}

// The guide's handler of webhooks books an event once for any number of deliveries. If a
// booking fails without an effect, the next delivery books the event.
func TestWebhooksOfTheGuide(t *testing.T) {
	policy, err := idempotency.NewPolicy(idempotency.PolicyConfig{TTL: idempotency.TTLWebhook, Lease: time.Minute})
	require.NoError(t, err)
	guard, err := idempotency.NewGuard(idempotency.GuardConfig{Store: new(idempotency.Memory), Policy: policy})
	require.NoError(t, err)
	booked, down := 0, true
	book := func(context.Context, webhook) error {
		if down {
			return idempotency.NoEffect(errors.New("the books are closed"))
		}
		booked++
		return nil
	}
	handle := func(ctx context.Context, event webhook) (idempotency.Answer, error) {
		answer, err := guard.Do(ctx, idempotency.Request{
			Key:         idempotency.Key{Scope: "provider", Operation: "webhooks.handle", Value: event.ID},
			Fingerprint: idempotency.FingerprintOf("webhook/1", event.Body),
		}, func(ctx context.Context, claimed idempotency.Outcome) (idempotency.Result, error) {
			return idempotency.Result{}, book(ctx, event) // if book had no effect, wrap its error in idempotency.NoEffect
		})
		return answer, err
	}
	event := webhook{"evt_1", []byte(`{"amount":10}`)}
	_, err = handle(t.Context(), event)
	require.Error(t, err)
	down = false
	for i := range 3 {
		answer, err := handle(t.Context(), event)
		require.NoError(t, err)
		assert.Equal(t, i > 0, answer.Duplicate)
	}
	assert.Equal(t, 1, booked)
	event.Body = []byte(`{"amount":11}`)
	_, err = handle(t.Context(), event)
	var conflict *idempotency.ConflictError
	require.ErrorAs(t, err, &conflict)
}
