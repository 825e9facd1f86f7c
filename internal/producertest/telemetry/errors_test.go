package telemetry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Each error's text gives the event's fate and the next step.
func TestErrorTexts(t *testing.T) {
	at := time.Date(2025, 12, 4, 0, 4, 35, 0, time.UTC)
	cause := errors.New("connection reset")
	id := uuid.MustParse("019ae7b0-8c00-7abc-9def-0123456789ab")
	for _, tc := range []struct {
		err   error
		want  string
		cause error
	}{
		{
			&sqsfifo.InDoubtError{EventID: id, DedupeKey: "soil|17", Attempts: 2, Since: at.Add(-275 * time.Second), ResendBefore: at, Err: cause},
			`sqsfifo: may have been stored: event 019ae7b0-8c00-7abc-9def-0123456789ab, no proof after 2 attempts since 2025-12-04T00:00:00Z; resend before 2025-12-04T00:04:35Z: connection reset`,
			cause,
		},
		{
			&sqsfifo.NotStoredError{EventID: id, DedupeKey: "soil|17", Attempts: 3, Code: "RequestThrottled", Err: cause},
			`sqsfifo: not stored: event 019ae7b0-8c00-7abc-9def-0123456789ab after 3 attempts: connection reset`,
			cause,
		},
		{
			&sqsfifo.ConflictError{Reuse: sqsfifo.ReuseConflict, EventID: id, DedupeKey: "soil|17", FirstSent: at},
			`sqsfifo: not stored: event 019ae7b0-8c00-7abc-9def-0123456789ab: its dedupe key was sent at 2025-12-04T00:04:35Z with another payload; give each event its own key; if both are the same event, its payload must be equal each time, for example in the time zone of its times`,
			nil,
		},
		{
			&sqsfifo.AlteredError{EventID: id, DedupeKey: "soil|17", Attempts: 1, Field: "MessageBody", Got: "5d41"},
			`sqsfifo: altered: event 019ae7b0-8c00-7abc-9def-0123456789ab was changed on its way: SQS has a MessageBody with the MD5 "5d41"; find what changes it and resend it at once`,
			nil,
		},
		{
			&sqsfifo.AlteredError{EventID: id, DedupeKey: "soil|17", ResendAfter: at},
			`sqsfifo: altered: event 019ae7b0-8c00-7abc-9def-0123456789ab was changed on its way by an earlier attempt and was not sent again; resend it after 2025-12-04T00:04:35Z; SQS drops it until then`,
			nil,
		},
		{
			&sqsfifo.QueueError{QueueURL: "https://h/q.fifo", Problems: []string{"one", "two"}},
			"sqsfifo: not stored: queue https://h/q.fifo: one; two",
			nil,
		},
		{
			&sqsfifo.ViolationError{Findings: []lint.Finding{{Rule: "SF009", Field: "MessageGroupId", Offset: -1, Message: "missing"}}, Err: cause},
			"sqsfifo: not stored: the message breaks a rule: SF009 error: MessageGroupId: missing",
			cause,
		},
	} {
		assert.Equal(t, tc.want, tc.err.Error())
		assert.Equal(t, tc.cause, errors.Unwrap(tc.err))
	}
}

// A span's error.type names the failure.
func TestErrorTypesOfSpans(t *testing.T) {
	q := producertest.NewQueue(t, sqstest.Config{})
	var o *observed
	p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) { o = observe(c) })
	lastType := func() string {
		spans := o.spans.Ended()
		return attributesOf(spans[len(spans)-1])["error.type"]
	}

	// Fail twice: after the first refusal, the producer resends the event without trace
	// context.
	q.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 2)
	_, err := p.Send(t.Context(), producertest.Sample)
	require.Error(t, err)
	assert.Equal(t, "InvalidMessageContents", lastType())

	_, err = p.Send(t.Context(), producertest.Sample)
	require.NoError(t, err)
	other := producertest.Sample
	other.Cloud++
	_, err = p.Send(t.Context(), other)
	require.Error(t, err)
	assert.Equal(t, "conflict", lastType())

	unidentified := producertest.Sample
	unidentified.ID = ""
	_, err = p.Send(t.Context(), unidentified)
	require.Error(t, err)
	assert.Equal(t, "identify", lastType())

	q.Inject(sqstest.LoseAnswer(), 1000)
	down := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) { o = observe(c) })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = down.Send(ctx, producertest.Scenes(1, 1)[0])
	require.Error(t, err)
	assert.Equal(t, "in_doubt", lastType())
}
