package sqsfifo_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Each error says in its text what became of the event and what to do.
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
			&sqsfifo.SendError{EventID: id, DedupeKey: "soil|17", Attempts: 2, ResendBefore: at, Err: cause},
			`sqsfifo: event 019ae7b0-8c00-7abc-9def-0123456789ab may have been sent, no answer after 2 attempts; resend before 2025-12-04T00:04:35Z: connection reset`,
			cause,
		},
		{
			&sqsfifo.RefusedError{EventID: id, DedupeKey: "soil|17", Attempts: 3, Code: "RequestThrottled", Err: cause},
			`sqsfifo: event 019ae7b0-8c00-7abc-9def-0123456789ab not sent after 3 attempts: connection reset`,
			cause,
		},
		{
			&sqsfifo.ConflictError{Reuse: sqsfifo.Conflict, EventID: id, DedupeKey: "soil|17", FirstSent: at},
			`sqsfifo: event 019ae7b0-8c00-7abc-9def-0123456789ab refused, not sent: its dedupe key was sent at 2025-12-04T00:04:35Z with another payload; give each event a key of its own`,
			nil,
		},
		{
			&sqsfifo.DigestError{EventID: id, DedupeKey: "soil|17", Attempts: 1, Field: "MessageBody", Got: "5d41"},
			`sqsfifo: event 019ae7b0-8c00-7abc-9def-0123456789ab was changed on its way, SQS took another MessageBody with the MD5 "5d41"; find what changes it and resend at once`,
			nil,
		},
		{
			&sqsfifo.DigestError{EventID: id, DedupeKey: "soil|17", ResendAfter: at},
			`sqsfifo: event 019ae7b0-8c00-7abc-9def-0123456789ab not sent, it was changed on its way before; resend after 2025-12-04T00:04:35Z, SQS drops it until then`,
			nil,
		},
		{
			&sqsfifo.QueueError{QueueURL: "https://h/q.fifo", Problems: []string{"one", "two"}},
			"sqsfifo: queue https://h/q.fifo: one; two",
			nil,
		},
		{
			&sqsfifo.ViolationError{Findings: []lint.Finding{{Rule: "SF009", Field: "MessageGroupId", Offset: -1, Message: "missing"}}, Err: cause},
			"sqsfifo: message refused, not sent: SF009 error: MessageGroupId: missing",
			cause,
		},
	} {
		assert.Equal(t, tc.want, tc.err.Error())
		assert.Equal(t, tc.cause, errors.Unwrap(tc.err))
	}
}

// What went wrong is the span's error.type.
func TestErrorTypesOfSpans(t *testing.T) {
	q := newQueue(t, sqstest.Config{})
	var o *observed
	p := on(t, q, q, func(c *sqsfifo.Config[Scene]) { o = observe(c) })
	lastType := func() string {
		spans := o.spans.Ended()
		return attributesOf(spans[len(spans)-1])["error.type"]
	}

	q.Inject(sqstest.FailEntries("InvalidMessageContents", smithy.FaultClient, nil), 1)
	_, err := p.Send(t.Context(), scene)
	require.Error(t, err)
	assert.Equal(t, "InvalidMessageContents", lastType())

	_, err = p.Send(t.Context(), scene)
	require.NoError(t, err)
	other := scene
	other.Cloud++
	_, err = p.Send(t.Context(), other)
	require.Error(t, err)
	assert.Equal(t, "conflict", lastType())

	unidentified := scene
	unidentified.ID = ""
	_, err = p.Send(t.Context(), unidentified)
	require.Error(t, err)
	assert.Equal(t, "SF045", lastType())

	down := on(t, brokenClient{q, errors.New("no credentials")}, q, func(c *sqsfifo.Config[Scene]) { o = observe(c) })
	_, err = down.Send(t.Context(), scenes(1, 1)[0])
	require.Error(t, err)
	assert.Equal(t, "_OTHER", lastType())
}
