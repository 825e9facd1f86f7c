package lint_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// If two messages with one body differ only in attributes that name an attempt, the finding is
// an info with another advice. If they differ in another attribute too, it is an error.
func TestRetriesWithAttributesOfTheAttempt(t *testing.T) {
	s := lint.NewQueueChecker()
	send := func(attributes map[string]lint.Attribute) []lint.Finding {
		return ofRule("SF060", s.Check(time.Time{}, lint.Message{Body: goodBody, GroupID: "g", Attributes: attributes}))
	}
	first := map[string]lint.Attribute{"attempt": text("1"), "request_id": text("a"), "sent_at": text("12:00"), "route": text("north"), "traceparent": text("x")}
	require.Empty(t, send(first))
	require.Empty(t, send(first))
	for name, severity := range map[string]lint.Severity{
		"attempt": lint.Info, "request_id": lint.Info, "sent_at": lint.Info, "retry_count": lint.Info, "X-Retry-Count": lint.Info, "route": lint.Error, "unknown": lint.Error,
	} {
		other := map[string]lint.Attribute{}
		for n, a := range first {
			other[n] = a
		}
		other[name] = text("2")
		got := send(other)
		require.Len(t, got, 1, name)
		assert.Equal(t, severity, got[0].Severity, name)
		assert.Contains(t, got[0].Message, "as message 1 with", "no time where none is known")
		assert.Equal(t, severity == lint.Info, got[0].Fix == "leave the body as it is: the number or ID of the attempt in the body would make each retry another event", name)
	}
}
