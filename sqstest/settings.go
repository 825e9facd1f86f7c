package sqstest

// Deviations from AWS in this file:
//   - A change of an attribute takes effect immediately. Only a change of
//     DeduplicationScope takes effect later, after Config.ScopePropagation. AWS documents up
//     to 60 s for most attributes and up to 15 minutes for MessageRetentionPeriod.
//   - Policy and the KMS key are stored and shown, but not used.
//   - The error texts about values out of range, FifoThroughputLimit and DeduplicationScope
//     are the fake's own; AWS's texts are not known.

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// settings are the attributes of a queue. A settings value never changes: a queue with
// new attributes gets a new value, so reads need no lock.
type settings struct {
	fifo         bool
	contentBased bool
	visibility   time.Duration
	delay        time.Duration
	retention    time.Duration
	wait         time.Duration
	maximumSize  int

	// A changed scope takes effect at the time scopeFrom. Until then, the queue deduplicates
	// in scopeBefore.
	scope, scopeBefore DeduplicationScope
	scopeFrom          time.Time
	throughput         string

	policy   string
	sse      bool
	kmsKey   string
	kmsReuse int

	redrive *redrive
	allow   *redriveAllow
}

// The values of FifoThroughputLimit.
const (
	perQueue          = "perQueue"
	perMessageGroupID = "perMessageGroupId"
)

func (c Config) settings() *settings {
	s := &settings{
		fifo:         !c.Standard,
		contentBased: !c.DisableContentBasedDeduplication,
		visibility:   c.VisibilityTimeout,
		delay:        c.Delay,
		retention:    c.Retention,
		wait:         c.ReceiveWait,
		maximumSize:  c.MaximumMessageSize,
		scope:        c.DeduplicationScope,
		scopeBefore:  c.DeduplicationScope,
		throughput:   perQueue,
		sse:          true,
		kmsReuse:     300,
	}
	if dlq := c.DeadLetterQueue; dlq != nil {
		s.redrive = &redrive{TargetARN: dlq.ARN(), MaxReceives: c.MaxReceiveCount, find: func(string) *Queue { return dlq }}
	}
	return s
}

// dedupScope returns the scope in effect at the given time (F-033).
func (s *settings) dedupScope(now time.Time) DeduplicationScope {
	if now.Before(s.scopeFrom) {
		return s.scopeBefore
	}
	return s.scope
}

// describe returns the settings in the form of GetQueueAttributes (F-120). Unset
// attributes are absent.
func (s *settings) describe() map[types.QueueAttributeName]string {
	out := map[types.QueueAttributeName]string{
		types.QueueAttributeNameDelaySeconds:                  seconds(s.delay),
		types.QueueAttributeNameMaximumMessageSize:            strconv.Itoa(s.maximumSize),
		types.QueueAttributeNameMessageRetentionPeriod:        seconds(s.retention),
		types.QueueAttributeNameReceiveMessageWaitTimeSeconds: seconds(s.wait),
		types.QueueAttributeNameSqsManagedSseEnabled:          strconv.FormatBool(s.sse),
		types.QueueAttributeNameVisibilityTimeout:             seconds(s.visibility),
	}
	if s.fifo {
		out[types.QueueAttributeNameFifoQueue] = "true"
		out[types.QueueAttributeNameContentBasedDeduplication] = strconv.FormatBool(s.contentBased)
		out[types.QueueAttributeNameDeduplicationScope] = string(s.scope)
		out[types.QueueAttributeNameFifoThroughputLimit] = s.throughput
	}
	if s.policy != "" {
		out[types.QueueAttributeNamePolicy] = s.policy
	}
	if s.kmsKey != "" {
		out[types.QueueAttributeNameKmsMasterKeyId] = s.kmsKey
		out[types.QueueAttributeNameKmsDataKeyReusePeriodSeconds] = strconv.Itoa(s.kmsReuse)
	}
	if s.redrive != nil {
		out[types.QueueAttributeNameRedrivePolicy] = s.redrive.String()
	}
	if s.allow != nil {
		out[types.QueueAttributeNameRedriveAllowPolicy] = s.allow.String()
	}
	return out
}

// withAttributes returns a copy of the settings with the given attributes replaced. It
// assigns them in the order of their names and returns the first error. The parameter `own`
// is the queue's ARN, and find returns a queue by its ARN.
func (s *settings) withAttributes(attributes map[string]string, own string, find func(arn string) *Queue) (*settings, error) {
	next := *s
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := attributes[name]
		err := next.assign(types.QueueAttributeName(name), value)
		switch types.QueueAttributeName(name) {
		case types.QueueAttributeNameRedrivePolicy:
			next.redrive, err = parseRedrive(value, own, s.fifo, find)
		case types.QueueAttributeNameRedriveAllowPolicy:
			next.allow, err = parseRedriveAllow(value)
		}
		if err != nil {
			return nil, err
		}
	}
	_, sse := attributes["SqsManagedSseEnabled"]
	_, kms := attributes["KmsMasterKeyId"]
	switch {
	case sse && kms && next.sse && next.kmsKey != "": // AWS allows one kind of encryption at a time (F-144)
		return nil, invalidAttributeName.because("You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.")
	case kms && next.kmsKey != "":
		next.sse = false
	case sse && next.sse:
		next.kmsKey = ""
	}
	if next.throughput == perMessageGroupID && next.scope != ScopeMessageGroup { // documented by AWS (F-034)
		return nil, invalidAttributeValue.because("Invalid value for the parameter FifoThroughputLimit. Reason: perMessageGroupId requires the DeduplicationScope messageGroup.")
	}
	return &next, nil
}

// assign sets one attribute of s. Call it only on a copy: other goroutines read the
// settings of a queue without a lock.
func (s *settings) assign(name types.QueueAttributeName, value string) error {
	switch name {
	case types.QueueAttributeNameFifoQueue, types.QueueAttributeNameContentBasedDeduplication:
		if !s.fifo { // a standard queue does not have these attributes (F-123)
			return unknownAttribute(name)
		}
	case types.QueueAttributeNameDeduplicationScope, types.QueueAttributeNameFifoThroughputLimit:
		if !s.fifo {
			return invalidAttributeName.because("You can specify the %s only when FifoQueue is set to true.", name)
		}
	}
	ok := true
	switch name {
	case types.QueueAttributeNameFifoQueue: // the type of a queue never changes (F-124)
		var on bool
		if on, ok = boolean(value); ok && !on {
			return invalidAttributeValue.because("Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported.")
		}
	case types.QueueAttributeNameContentBasedDeduplication:
		s.contentBased, ok = boolean(value)
	case types.QueueAttributeNameDeduplicationScope:
		s.scope = DeduplicationScope(value)
		ok = s.scope == ScopeQueue || s.scope == ScopeMessageGroup
	case types.QueueAttributeNameFifoThroughputLimit:
		s.throughput = value
		ok = value == perQueue || value == perMessageGroupID
	case types.QueueAttributeNameVisibilityTimeout:
		s.visibility, ok = secondsIn(value, 0, maxVisibility)
	case types.QueueAttributeNameDelaySeconds:
		s.delay, ok = secondsIn(value, 0, maxDelaySeconds)
	case types.QueueAttributeNameMessageRetentionPeriod:
		s.retention, ok = secondsIn(value, minRetention, maxRetention)
	case types.QueueAttributeNameReceiveMessageWaitTimeSeconds:
		s.wait, ok = secondsIn(value, 0, maxWaitSeconds)
	case types.QueueAttributeNameMaximumMessageSize:
		s.maximumSize, ok = integerIn(value, minMessageBytes, maxMessageBytes)
	case types.QueueAttributeNameKmsMasterKeyId:
		s.kmsKey = value
	case types.QueueAttributeNameKmsDataKeyReusePeriodSeconds:
		s.kmsReuse, ok = integerIn(value, 60, 86400)
	case types.QueueAttributeNameSqsManagedSseEnabled:
		s.sse, ok = boolean(value)
	case types.QueueAttributeNamePolicy:
		s.policy = value
		ok = value == "" || json.Valid([]byte(value))
	case types.QueueAttributeNameRedrivePolicy, types.QueueAttributeNameRedriveAllowPolicy:
		// withAttributes sets RedrivePolicy and RedriveAllowPolicy, because it can look up the
		// dead-letter queue.
	default:
		return unknownAttribute(name)
	}
	if !ok {
		return invalidAttributeValue.because("Invalid value for the parameter %s.", name)
	}
	return nil
}

func unknownAttribute(name types.QueueAttributeName) error {
	return invalidAttributeName.because("Unknown Attribute %s.", name)
}

// boolean parses "true" or "false" in upper or lower case, like AWS (F-121).
func boolean(s string) (value, ok bool) {
	value = strings.EqualFold(s, "true")
	return value, value || strings.EqualFold(s, "false")
}

func integerIn(s string, least, most int) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= least && n <= most
}

func secondsIn(s string, least, most int) (time.Duration, bool) {
	n, ok := integerIn(s, least, most)
	return time.Duration(n) * time.Second, ok
}

func seconds(d time.Duration) string { return strconv.FormatInt(int64(d/time.Second), 10) }
