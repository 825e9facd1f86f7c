// Package snsbody recognises message bodies that Amazon SNS wrapped in a notification. The
// decoder of the root and package consumer use it.
package snsbody

import (
	"encoding/json"
	"strings"
)

// Advice tells the owner of a decoder how to read notifications.
const Advice = "the body is an SNS notification; decode it with consumer.SNS(decode), or turn on raw message delivery for the subscription"

// Unwrap returns the Message of an SNS notification. It returns any other body unchanged and
// false. Names of members match exactly, unlike those of a struct of encoding/json.
func Unwrap(body string) (message string, wrapped bool) {
	if !strings.Contains(body, `"TopicArn"`) {
		return body, false
	}
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(body), &members) != nil {
		return body, false
	}
	text := func(name string) (s string) {
		_ = json.Unmarshal(members[name], &s) // absent or no text is ""
		return s
	}
	if text("Type") != "Notification" || text("TopicArn") == "" || text("MessageId") == "" || json.Unmarshal(members["Message"], &message) != nil {
		return body, false
	}
	return message, true
}
