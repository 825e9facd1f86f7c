package sqstest

// Deviations from AWS in this file: what nobody has recorded of AWS is a field
// whose zero value is the best supported answer.

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// DeduplicationScope says where a deduplication ID has to be unique.
type DeduplicationScope string

// The two scopes, spelled as AWS spells the attribute DeduplicationScope.
const (
	// ScopeQueue: one window for the whole queue. An ID that was sent to another
	// group is suppressed (F-006).
	ScopeQueue DeduplicationScope = "queue"

	// ScopeMessageGroup: a window for each pair of group and ID (F-030, F-032).
	ScopeMessageGroup DeduplicationScope = "messageGroup"
)

// Config describes a [Queue]. The zero value is the queue that most producers
// write to: FIFO, content-based deduplication over the whole queue, no delay.
// Queues made by CreateQueue have the zero value in every field that is no
// attribute of AWS's.
type Config struct {
	// Name of the queue: letters, digits, hyphens and underscores, 80 characters
	// at most; a FIFO queue's ends in ".fifo", which counts. Empty means
	// "events.fifo", or "events" for a standard queue.
	Name string

	// Standard makes the queue a standard one: no deduplication, no sequence
	// numbers, no order promised (F-040).
	Standard bool

	// DisableContentBasedDeduplication makes the queue refuse each send that
	// brings no MessageDeduplicationId (F-016). Off, the SHA-256 of the body
	// stands in for a missing one (F-011).
	DisableContentBasedDeduplication bool

	// DeduplicationScope is empty for [ScopeQueue].
	DeduplicationScope DeduplicationScope

	// VisibilityTimeout is how long a received message stays hidden when the
	// receiver names no time: whole seconds up to 12 hours. Zero means 30 s, as
	// on AWS; a single receive or change can still ask for zero.
	VisibilityTimeout time.Duration

	// Delay is how long a new message stays hidden: whole seconds up to 15
	// minutes. A FIFO queue takes it from its attribute DelaySeconds only
	// (F-074 to F-076).
	Delay time.Duration

	// Retention is the age at which a message is gone, received or not: whole
	// seconds from 1 minute to 14 days. Zero means 4 days.
	Retention time.Duration

	// ReceiveWait is how long a receive waits when it names no time: whole
	// seconds up to 20.
	ReceiveWait time.Duration

	// MaximumMessageSize in bytes as F-073 counts them, 1,024 to 1,048,576. Zero
	// means 1,048,576.
	MaximumMessageSize int

	// DiscardDeleted is for long runs: the queue forgets a message once it is
	// deleted or expired, and a suppression after five minutes, so that its memory
	// follows what is in it and not what ever was. [Queue.Messages] then returns
	// what is still stored. The window forgets nothing: a duplicate of a deleted
	// message is answered as ever, but the Suppression may have of its Original only
	// MessageID, SequenceNumber, DeduplicationID and AcceptedAt, and GroupID where
	// the scope is the group; [Queue.Window] may have neither IDs nor groups of
	// deleted messages. A deleted message's receipt handles become unknown, as do all
	// but the newest thousand of a message, and suppressions are forgotten early where
	// they take more than 64 MiB or are more than 100,000.
	DiscardDeleted bool

	// DeadLetterQueue takes the messages that were received MaxReceiveCount times
	// without being deleted, when they would be received once more (F-110). It
	// has to be of the same type (F-115). Nil means none.
	DeadLetterQueue *Queue

	// MaxReceiveCount is 1 to 1,000 with a DeadLetterQueue, zero without.
	MaxReceiveCount int

	// PurgeKeepsIDs lets deduplication IDs stay taken after PurgeQueue. Sources
	// disagree on AWS (F-022); the one that says it was checked there has them
	// freed, so that is the default.
	PurgeKeepsIDs bool

	// DuplicateRestartsInterval lets each suppressed duplicate start the five
	// minutes again. By default they run from the accepted send, as AWS's wording
	// has it; neither was recorded (F-020).
	DuplicateRestartsInterval bool

	// ContentsRefuseBatch lets a fault in one entry's contents, such as a
	// forbidden character, refuse the whole batch. By default it fails its entry,
	// as AWS was recorded to do on standard queues (F-058, F-059).
	ContentsRefuseBatch bool

	// ScopePropagation is how long a change of the attribute DeduplicationScope
	// shows before it acts. Zero means 60 s, the most that AWS documents: its
	// deduplication was recorded not to change within seconds (F-033). Negative
	// means at once.
	ScopePropagation time.Duration
}

// ConfigError is one field of a [Config] that no queue can have. [NewQueue]
// joins one for each wrong field; take them apart with errors.As.
type ConfigError struct {
	Field string // name of the field in Config
	Value string // what it was set to, strings quoted
	Rule  string // what it may be set to
}

func (e *ConfigError) Error() string {
	return "sqstest: Config." + e.Field + " = " + e.Value + ": " + e.Rule
}

func (c Config) withDefaults() Config {
	switch {
	case c.Name == "" && c.Standard:
		c.Name = "events"
	case c.Name == "":
		c.Name = "events.fifo"
	}
	if c.DeduplicationScope == "" {
		c.DeduplicationScope = ScopeQueue
	}
	if c.VisibilityTimeout == 0 {
		c.VisibilityTimeout = 30 * time.Second
	}
	if c.Retention == 0 {
		c.Retention = 4 * 24 * time.Hour
	}
	if c.MaximumMessageSize == 0 {
		c.MaximumMessageSize = maxMessageBytes
	}
	if c.ScopePropagation == 0 {
		c.ScopePropagation = time.Minute
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	check := func(ok bool, field, value, rule string) {
		if !ok {
			errs = append(errs, &ConfigError{Field: field, Value: value, Rule: rule})
		}
	}
	name := `must be letters, digits, hyphens and underscores and end in ".fifo", 80 characters at most`
	if c.Standard {
		name = "must be letters, digits, hyphens and underscores, 80 characters at most"
	}
	check(queueNameOf(c.Name, !c.Standard), "Name", strconv.Quote(c.Name), name)
	check(c.DeduplicationScope == ScopeQueue || c.DeduplicationScope == ScopeMessageGroup, "DeduplicationScope", strconv.Quote(string(c.DeduplicationScope)),
		"must be ScopeQueue or ScopeMessageGroup")
	check(wholeSeconds(c.VisibilityTimeout, 0, maxVisibility), "VisibilityTimeout", c.VisibilityTimeout.String(),
		"must be whole seconds from 0 to 12 hours")
	check(wholeSeconds(c.Delay, 0, maxDelaySeconds), "Delay", c.Delay.String(),
		"must be whole seconds from 0 to 15 minutes")
	check(wholeSeconds(c.Retention, minRetention, maxRetention), "Retention", c.Retention.String(),
		"must be whole seconds from 1 minute to 14 days")
	check(wholeSeconds(c.ReceiveWait, 0, maxWaitSeconds), "ReceiveWait", c.ReceiveWait.String(),
		"must be whole seconds from 0 to 20 seconds")
	check(c.MaximumMessageSize >= minMessageBytes && c.MaximumMessageSize <= maxMessageBytes, "MaximumMessageSize", strconv.Itoa(c.MaximumMessageSize),
		"must be 1,024 to 1,048,576 bytes")
	if c.DeadLetterQueue == nil {
		check(c.MaxReceiveCount == 0, "MaxReceiveCount", strconv.Itoa(c.MaxReceiveCount), "must be 0 without a DeadLetterQueue")
		return errors.Join(errs...)
	}
	check(c.DeadLetterQueue.config.Standard == c.Standard, "DeadLetterQueue", strconv.Quote(c.DeadLetterQueue.config.Name),
		"must be of the same type as the queue")
	check(c.MaxReceiveCount >= 1 && c.MaxReceiveCount <= maxReceiveCount, "MaxReceiveCount", strconv.Itoa(c.MaxReceiveCount),
		"must be 1 to 1,000 with a DeadLetterQueue")
	return errors.Join(errs...)
}

// queueNameOf reports whether name is one that a queue of the type can have
// (F-121).
func queueNameOf(name string, fifo bool) bool {
	stem, suffix := strings.CutSuffix(name, ".fifo")
	return suffix == fifo && entryID(stem) && len(name) <= maxNameOfQueue
}

func wholeSeconds(d time.Duration, least, most int) bool {
	return d >= time.Duration(least)*time.Second && d <= time.Duration(most)*time.Second && d%time.Second == 0
}
