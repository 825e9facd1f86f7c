package doubt

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The first Send of an event ends in doubt. No attempt of a resend may reach SQS after
// SQS has forgotten the first attempt, because SQS would store the event again.
func TestResendOfAnEventInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		doubt := producertest.InDoubt(t, p, q, sqstest.LoseAnswer(), sqstest.DropRequest())
		require.Len(t, q.Messages(), 1)
		time.Sleep(time.Until(doubt.ResendBefore) - 5*time.Second)
		go func() {
			time.Sleep(40 * time.Second)
			q.ClearFaults()
		}()
		_, err := p.Send(t.Context(), producertest.Sample)
		var again *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &again, "nobody can tell any more")
		assert.Equal(t, doubt.ResendBefore, again.ResendBefore)
		time.Sleep(time.Minute)
		assert.Len(t, q.Messages(), 1)
	})
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		first := producertest.InDoubt(t, p, q, sqstest.LoseAnswer())
		time.Sleep(4 * time.Minute)
		second := producertest.InDoubt(t, p, q, sqstest.LoseAnswer())
		assert.Equal(t, first.ResendBefore, second.ResendBefore)
		q.ClearFaults()
		time.Sleep(time.Until(second.ResendBefore) - time.Second)
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.Len(t, q.Messages(), 1)
	})
}

// An event is attempted twice, minutes apart, and ends in doubt. For five minutes after
// the last attempt, another event with the same dedupe key is a conflict.
func TestKeyIsTakenFromTheLastAttemptOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		producertest.InDoubt(t, p, q, sqstest.DropRequest())
		time.Sleep(4 * time.Minute)
		producertest.InDoubt(t, p, q, sqstest.LoseAnswer())
		q.ClearFaults()
		p.Resume(producertest.Sample.PathRow)
		time.Sleep(90 * time.Second)
		other := producertest.Sample
		other.Cloud = 50
		_, err := p.Send(t.Context(), other)
		var conflict *sqsfifo.ConflictError
		require.ErrorAs(t, err, &conflict)
	})
}

// In one request, SQS refuses the first copy of an event and stores the second. The event
// is therefore stored, so another event with its dedupe key is a conflict.
func TestRefusedCopyOfAStoredEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.Order = sqsfifo.OrderRuns })
		first := func(position int, _ types.SendMessageBatchRequestEntry) bool { return position == 0 }
		q.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, first), 1)
		results := p.SendBatch(t.Context(), []producertest.Scene{producertest.Sample, producertest.Sample})
		require.Error(t, results[0].Err)
		require.NoError(t, results[1].Err)
		p.Resume(producertest.Sample.PathRow)
		other := producertest.Sample
		other.Cloud = 50
		_, err := p.Send(t.Context(), other)
		var conflict *sqsfifo.ConflictError
		require.ErrorAs(t, err, &conflict)
	})
}

// With Warn, an event is sent although its body was sent before with other attributes.
// SQS drops the message as a duplicate, and Receipt.Duplicate is true.
func TestWarnedDuplicateIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		route := "north"
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Enforcement = sqsfifo.EnforcementWarn
			c.Attributes = func(producertest.Scene) map[string]string { return map[string]string{"route": route} }
		})
		_, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		route = "south"
		r, err := p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.True(t, r.Duplicate, "one body with other attributes")
		assert.Len(t, q.Suppressed(), 1)

		other := producertest.Sample
		other.Cloud = 50
		r, err = p.Send(t.Context(), other)
		require.NoError(t, err)
		assert.False(t, r.Duplicate)
		r, err = p.Send(t.Context(), producertest.Sample)
		require.NoError(t, err)
		assert.True(t, r.Duplicate, "this producer sent it before the other")
	})
}

// If the answers of SQS have no usable sequence numbers, the producer recognises a
// duplicate of its own message by the message ID.
func TestWarnedDuplicateWithoutNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		route := "north"
		p := producertest.On(t, unnumberedClient{q}, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Enforcement = sqsfifo.EnforcementWarn
			c.Attributes = func(producertest.Scene) map[string]string { return map[string]string{"route": route} }
		})
		for i, to := range []string{"north", "south"} {
			route = to
			r, err := p.Send(t.Context(), producertest.Sample)
			require.NoError(t, err)
			assert.Equal(t, i == 1, r.Duplicate)
		}
	})
}
