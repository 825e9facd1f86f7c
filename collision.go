package sqsfifo

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/dedup"
	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// collision is the error of a message whose key or body was used for another one.
func (s *submission) collision(v dedup.Verdict, first time.Time) ([]lint.Finding, error) {
	if v.Kind == dedup.OtherAttributes {
		err := attributeCollision(s.msg)
		return err.Findings, err
	}
	err := &ConflictError{
		Reuse: Drift, EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, BodyHash: s.id.BodyHash(), Group: s.msg.Group,
		showKey: s.rules.showKeys, SameBody: v.Kind == dedup.OtherGroup, FirstSent: first,
	}
	if v.Kind == dedup.Conflict {
		err.Reuse = Conflict
	}
	rule, field, pointer := ruleKeyReused, "MessageBody", "/dedupe_key"
	if err.SameBody {
		rule, field, pointer = ruleOtherGroup, "MessageGroupId", ""
	}
	return []lint.Finding{finding(rule, field, pointer, err.Error())}, err
}

// attributeCollision is the second message of a body whose attributes changed.
func attributeCollision(msg *Message) *ViolationError {
	names := slices.Sorted(maps.Keys(msg.Attributes))
	names = slices.DeleteFunc(names, lint.Benign)
	return &ViolationError{plain: true, Findings: []lint.Finding{finding(ruleAttributeOnly, "MessageAttributes", "",
		fmt.Sprintf("this body was sent within the deduplication interval with other attributes than %s; SQS ignores attributes, would drop this message and deliver the first",
			strings.Join(names, ", ")))}}
}

// storeConflict is the error of a message whose key the store has for another payload.
func (s *submission) storeConflict(err error) ([]lint.Finding, error) {
	e := &ConflictError{
		Reuse: Conflict, EventID: s.msg.EventID, DedupeKey: s.msg.DedupeKey, BodyHash: BodyHash(s.msg.Body), Group: s.msg.Group,
		showKey: s.rules.showKeys,
	}
	var found *idempotency.ConflictError
	if errors.As(err, &found) {
		e.FirstSent = found.Created
	}
	return []lint.Finding{finding(ruleKeyReused, "MessageBody", "/dedupe_key", e.Error())}, e
}

// drift is the finding on a message that the store has in other bytes or for another
// message group.
func (s *submission) drift() []lint.Finding {
	return []lint.Finding{finding(ruleKeyReused, "MessageBody", "/dedupe_key",
		"the store has this event with another event_time, event_id or encoding, or for another message group; what is stored counts, and this message does not go out")}
}
