package sqsfifo

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/verdict"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// collision describes a dedupe key used for two messages, or a body sent with two sets of
// attributes. If the event is refused, the caller returns the error. If the event is sent
// (EnforcementWarn), the findings go into its receipt.
func (s *submission) collision(v *verdict.Verdict) ([]lint.Finding, error) {
	if v.Reuse == verdict.OtherAttributes {
		err := attributeCollision(s.msg)
		return err.Findings, err
	}
	err := &ConflictError{
		Reuse: ReuseDrift, EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, BodyHash: BodyHash(s.msg.Body), Group: s.msg.Group,
		showKey: s.rules.showKeys, SameBody: v.Reuse == verdict.OtherGroup, FirstSent: v.FirstSent,
	}
	if v.Reuse == verdict.OtherPayload {
		err.Reuse = ReuseConflict
	}
	rule, field, pointer := ruleKeyReused, "MessageBody", "/dedupe_key"
	if err.SameBody {
		rule, field, pointer = ruleOtherGroup, "MessageGroupId", ""
	}
	return []lint.Finding{finding(rule, field, pointer, err.Error())}, err
}

// attributeCollision returns the error for a message whose body was sent before with
// different attributes.
func attributeCollision(msg *Message) *ViolationError {
	names := slices.Sorted(maps.Keys(msg.Attributes))
	names = slices.DeleteFunc(names, lint.Benign)
	return &ViolationError{plain: true, Findings: []lint.Finding{finding(ruleAttributeOnly, "MessageAttributes", "",
		fmt.Sprintf("this body was sent within the deduplication interval with other attributes than %s; SQS ignores attributes, would drop this message and deliver the first",
			strings.Join(names, ", ")))}}
}

// driftFinding returns the finding for an event that Config.Store has recorded before,
// with another body or message group.
func (s *submission) driftFinding() []lint.Finding {
	return []lint.Finding{finding(ruleKeyReused, "MessageBody", "/dedupe_key",
		"the store has this event with another event_time, event_id or encoding, or for another message group; what is stored counts, and this message does not go out")}
}
