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

	// Slack is the most by which two clocks may drift apart during one [Interval].
	Slack = 5 * time.Second

	// LastStart is the longest allowed time from the start of the first attempt that SQS
	// may have stored to the start of a later attempt. A request that starts later may
	// reach SQS when SQS has forgotten the first attempt. SQS would then store the message
	// a second time.
	LastStart = Interval - Request - Slack

	// RetryFor is the time after the first attempt of an event during which the event is
	// usually retried. It is shorter than [LastStart], so that after the last retry a
	// caller can still send the event once more.
	RetryFor = LastStart - Slack
)
