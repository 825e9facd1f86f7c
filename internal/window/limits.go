package window

import "time"

// Limits of time. All rules about the time of a resend use these limits.
const (
	// Request is the longest time from the decision to make a request to the arrival of
	// its bytes at SQS. A client must give up a request before this time ends.
	Request = 20 * time.Second

	// Arrival is the longest time that bytes need from this machine to SQS. The constant
	// [Request] includes this time.
	Arrival = 2 * time.Second

	// Slack is the largest allowed drift between two clocks during one [Interval].
	Slack = 5 * time.Second

	// LastStart is the longest time from the first attempt to send a message to the start
	// of its last attempt. Attempts proven not stored do not count.
	//
	// A later attempt may arrive after SQS has forgotten the first one. SQS would then
	// store the message a second time.
	LastStart = Interval - Request - Slack

	// RetryFor is the usual time for retries, counted from the submission of an event or
	// from SQS's last answer about its message group. It is shorter than [LastStart] and
	// leaves a caller time for one more send after the last retry.
	RetryFor = LastStart - Slack
)
