package snsbody_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/snsbody"
)

// Only a body with the exact member names and types of a notification is one.
func TestUnwrap(t *testing.T) {
	const notification = `{"Type":"Notification","MessageId":"m","TopicArn":"arn","Message":"text","Timestamp":"now"}`
	message, wrapped := snsbody.Unwrap("\n" + notification + "\n")
	assert.True(t, wrapped)
	assert.Equal(t, "text", message)
	for _, change := range [][2]string{
		{`"Type"`, `"type"`},
		{`"Notification"`, `"SubscriptionConfirmation"`},
		{`"MessageId"`, `"messageId"`},
		{`"TopicArn"`, `"topicArn"`},
		{`"Message":`, `"message":`},
		{`"text"`, `{"a":1}`},
		{`"text"`, `7`},
		{`"arn"`, `""`},
		{`}`, ``},
		{`{"Type`, `[{"Type`},
	} {
		body := strings.Replace(notification, change[0], change[1], 1)
		got, wrapped := snsbody.Unwrap(body)
		assert.False(t, wrapped, body)
		assert.Equal(t, body, got)
	}
}
