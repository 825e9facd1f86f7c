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

	// Slack is the largest difference between two clocks over one [Interval].
	Slack = 5 * time.Second

	// LastStart is the longest time between the starts of two attempts: the first attempt
	// that SQS may have stored, and a later attempt. After a longer time, SQS may have
	// forgotten the first attempt when the later request arrives, and store the message a
	// second time.
	LastStart = Interval - Request - Slack

	// RetryFor is the time after the first attempt of an event during which the event is
	// usually retried. It is shorter than [LastStart], so that after the last retry a
	// caller can still send the event once more.
	RetryFor = LastStart - Slack
)
