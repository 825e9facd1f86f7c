package order

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// SendMessageAsync sends a message from an earlier call of Build byte for byte. In one
// group, messages and events are sent in the order of the calls. The caller may change a
// message after the call.
func TestSendMessageAsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		p := producertest.On(t, q, q)
		var bodies, outcomes []string
		for n := range 30 {
			e := producertest.Event("a", n)
			msg, err := p.Build(e)
			require.NoError(t, err)
			bodies = append(bodies, msg.Body)
			done := func(r sqsfifo.Receipt, err error) {
				require.NoError(t, err)
				outcomes = append(outcomes, r.DedupeKey)
			}
			if n%3 == 0 {
				p.SendAsync(t.Context(), e, done)
				continue
			}
			p.SendMessageAsync(t.Context(), msg, done)
			*msg = sqsfifo.Message{} // the caller may change the message after the call has returned
		}
		require.NoError(t, p.Flush(t.Context()))
		require.Len(t, q.Messages(), len(bodies))
		require.Len(t, outcomes, len(bodies))
		for n, m := range q.Messages() {
			assert.Equal(t, bodies[n], m.Body)
		}
		require.NoError(t, p.Close(t.Context()))
	})
}

func TestSendMessageAsyncRefuses(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	p := producertest.On(t, q, q)
	msg, err := p.Build(producertest.Sample)
	require.NoError(t, err)
	changed := *msg
	changed.DedupeKey = "another"
	for name, m := range map[string]*sqsfifo.Message{"nil": nil, "changed after Build": &changed, "empty": {}} {
		var got error
		p.SendMessageAsync(t.Context(), m, func(_ sqsfifo.Receipt, err error) { got = err })
		require.NoError(t, p.Flush(t.Context()))
		var v *sqsfifo.ViolationError
		require.ErrorAs(t, got, &v, name)
	}
	p.SendMessageAsync(t.Context(), &changed, nil)
	var unreported *sqsfifo.UnreportedError
	require.ErrorAs(t, p.Flush(t.Context()), &unreported)
	assert.Empty(t, q.Messages())
}
