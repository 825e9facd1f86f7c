package consumer

import "time"

// Stats has the counts of a consumer since its creation and a snapshot of its state.
type Stats struct {
	Received, Handled int64
	FailedReceives    int64 // receives that SQS refused or did not answer
	Duplicates        int64 // deliveries of keys with a recorded success
	Failures          int64 // failed attempts
	Deferred          int64 // attempts whose handler returned an error of Defer
	// Undecided counts attempts without a clear answer of the store, the database or
	// Config.Probe, and attempts for a key that another consumer has claimed. Such attempts
	// are repeated.
	Undecided       int64
	Parked, Skipped int64
	TimesBlocked    int64 // times that a group was blocked
	Deleted         int64
	DeleteRetries   int64
	// Released counts messages that SQS made visible again at the request of the consumer, at
	// a shutdown or after the loss of an earlier message of the group.
	Released int64
	// Lost counts messages whose visibility timeout ended, or nearly ended, before their
	// delete was confirmed.
	Lost int64

	// Messages and Bytes are the number and total size of the received messages that were
	// neither deleted nor released. Running is the number of running handlers. Sleeping is
	// the number of groups that wait for their next attempt. Blocked is the number of
	// groups that wait for an operator.
	Messages                   int
	Bytes                      int64
	Running, Sleeping, Blocked int
	// NoRoom is true if blocked groups fill Config.Messages or Config.Bytes, so the consumer
	// receives nothing. Retry or park some of them.
	NoRoom bool
	// OldestHead is the time that the slowest group in this process has spent on its
	// current first message.
	OldestHead time.Duration
}

// BlockedGroup is a message group of this process whose first message has failed.
type BlockedGroup struct {
	Group     string
	MessageID string // ID of the first message
	Key       string // key of the first message, empty if its body cannot be read
	Attempts  int
	Receives  int
	Cause     error
	Since     time.Time // when the message became the first of its group in this process
	Messages  int       // received, undeleted messages of the group in this process

	// Blocked is true if the group waits for an operator. If it is false, the group waits
	// for its next attempt.
	Blocked bool

	// NoRoom is [Stats].NoRoom for a blocked group: the consumer receives nothing until some
	// of the blocked groups are retried or parked.
	NoRoom bool
}
