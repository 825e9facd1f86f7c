package window

import "time"

// Limits of time. All rules about the time of a resend use these limits.
const (
	// Request is the longest time from the decision to make a request to the arrival of
	// its bytes at SQS. A client must give a request up no later.
	Request = 20 * time.Second

	// Arrival is the longest time that bytes need from this machine to SQS. It is a part
	// of Request.
	Arrival = 2 * time.Second

	// Slack is the largest difference between two clocks over one [Interval].
	Slack = 5 * time.Second

	// LastStart is the longest time between the start of the first attempt that SQS may
	// have stored and the start of another attempt. A later request might reach SQS
	// after SQS has forgotten the first, and be stored a second time.
	LastStart = Interval - Request - Slack

	// RetryFor is the usual time for retries of an event after its first attempt. It is
	// shorter than [LastStart], so a caller has time for a resend.
	RetryFor = LastStart - Slack
)
