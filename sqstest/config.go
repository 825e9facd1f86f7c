package sqstest

// Deviations from AWS in this file: some fields of Config select behaviour that no recorded
// answer of AWS shows. Their zero values select the most likely behaviour.

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// DeduplicationScope is the scope in which a deduplication ID must be unique.
type DeduplicationScope string

// The two scopes, spelled like the values of AWS's attribute DeduplicationScope.
const (
	// ScopeQueue: one deduplication window for the whole queue. A second send with the same
	// ID is suppressed, even in another message group (F-006).
	ScopeQueue DeduplicationScope = "queue"

	// ScopeMessageGroup: a deduplication window for each pair of message group and ID
	// (F-030, F-032).
	ScopeMessageGroup DeduplicationScope = "messageGroup"
)

// Config describes a [Queue]. The zero value is the usual queue of a producer: FIFO,
// content-based deduplication over the whole queue, no delay.
//
// CreateQueue takes AWS's attributes. [Server.SetDefaults] sets the other fields of the new
// queue.
type Config struct {
	// Name has at most 80 characters: letters, digits, hyphens and underscores. The name of
	// a FIFO queue ends in ".fifo"; the suffix counts. Empty means "events.fifo", or "events"
	// for a standard queue.
	Name string

	// Account is the account in the queue's URL and ARN, twelve digits. Empty means [Account].
	Account string

	// NoWaits permits two calls that AWS and, by default, the fake refuse for 60 s: another
	// PurgeQueue of the queue, and a CreateQueue with the name of the queue after its
	// DeleteQueue.
	NoWaits bool

	// Standard makes a standard queue: no deduplication, no sequence numbers, no
	// promised order (F-040).
	Standard bool

	// DisableContentBasedDeduplication makes the queue refuse each send without a
	// MessageDeduplicationId (F-016). By default the SHA-256 of the body replaces a
	// missing ID (F-011).
	DisableContentBasedDeduplication bool

	// Empty means [ScopeQueue].
	DeduplicationScope DeduplicationScope

	// VisibilityTimeout is the time that a received message stays hidden unless the receive
	// sets another time: whole seconds up to 12 hours.
	//
	// Zero means 30 s, as on AWS. A single receive or change can still set zero.
	VisibilityTimeout time.Duration

	// Delay is the time that a new message stays hidden: whole seconds up to 15 minutes.
	// In a FIFO queue a single message cannot have another delay (F-074 to F-076).
	Delay time.Duration

	// Retention is the age at which a message is dropped, received or not: whole
	// seconds from 1 minute to 14 days. Zero means 4 days.
	Retention time.Duration

	// ReceiveWait is the wait of a receive that sets no time: whole seconds up to 20.
	ReceiveWait time.Duration

	// MaximumMessageSize limits the bytes of a message's body and attributes (F-073):
	// 1,024 to 1,048,576. Zero means 1,048,576.
	MaximumMessageSize int

	// DiscardDeleted is for long runs: memory depends on the present messages, not on all
	// messages ever sent. The queue forgets deleted and expired messages, and drops a
	// [Suppression] from its list after five minutes.
	//
	// Deduplication stays exact, also for duplicates of forgotten messages. A second delete
	// of a forgotten message succeeds, as always.
	//
	// Some details are lost:
	//
	//   - [Queue.Messages] returns only undeleted messages.
	//   - The Original of a [Suppression] may have only MessageID, SequenceNumber,
	//     DeduplicationID and AcceptedAt. With [ScopeMessageGroup] it also has GroupID.
	//   - [Queue.Window] may lack the IDs and groups of deleted messages.
	//   - Only the newest thousand receipt handles of a stored message are remembered;
	//     older handles count as expired.
	//   - Above 100,000 suppressions or 64 MiB, the oldest are dropped earlier.
	DiscardDeleted bool

	// DeadLetterQueue takes each message that was received MaxReceiveCount times and not
	// deleted. The next receive moves the message (F-110). Both queues must have the same
	// type (F-115). Nil means no dead-letter queue.
	DeadLetterQueue *Queue

	// MaxReceiveCount is 1 to 1,000 with a DeadLetterQueue, zero without.
	MaxReceiveCount int

	// PurgeKeepsIDs makes PurgeQueue keep the deduplication IDs in the window, so that
	// duplicates are still suppressed. By default a purge frees the IDs.
	//
	// Sources disagree on AWS's behaviour (F-022). The default follows the only source that
	// was checked on AWS.
	PurgeKeepsIDs bool

	// DuplicateRestartsInterval makes each suppressed duplicate restart the five minutes of
	// the deduplication interval. By default the interval runs from the accepted send, as
	// AWS documents. No recording shows AWS's behaviour (F-020).
	DuplicateRestartsInterval bool

	// ContentsRefuseBatch makes SendMessageBatch refuse the whole batch if the contents of
	// one entry are invalid, for example by a forbidden character. By default only this entry
	// fails, as in AWS's standard queues (F-058, F-059).
	ContentsRefuseBatch bool

	// ScopePropagation is the delay between a change of the attribute DeduplicationScope
	// and its effect. Zero means 60 s. Negative means no delay.
	//
	// AWS documents up to 60 s. In a recording of AWS the change had no effect within
	// seconds (F-033).
	ScopePropagation time.Duration
}

func (c Config) withDefaults() Config {
	switch {
	case c.Name == "" && c.Standard:
		c.Name = "events"
	case c.Name == "":
		c.Name = "events.fifo"
	}
	c.Account = cmp.Or(c.Account, Account)
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
			errs = append(errs, fmt.Errorf("sqstest: %w", &idempotency.InvalidError{Field: "Config." + field, Found: value, Rule: rule}))
		}
	}
	name := `must be letters, digits, hyphens and underscores and end in ".fifo", 80 characters at most`
	if c.Standard {
		name = "must be letters, digits, hyphens and underscores, 80 characters at most"
	}
	check(queueNameOf(c.Name, !c.Standard), "Name", strconv.Quote(c.Name), name)
	check(len(c.Account) == 12 && strings.Trim(c.Account, "0123456789") == "", "Account", strconv.Quote(c.Account), "must have twelve digits")
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

// queueNameOf reports whether the name is valid (F-121): for a FIFO queue if fifo is true,
// otherwise for a standard queue.
func queueNameOf(name string, fifo bool) bool {
	stem, suffix := strings.CutSuffix(name, ".fifo")
	return suffix == fifo && entryID(stem) && len(name) <= maxNameOfQueue
}

func wholeSeconds(d time.Duration, least, most int) bool {
	return d >= time.Duration(least)*time.Second && d <= time.Duration(most)*time.Second && d%time.Second == 0
}
