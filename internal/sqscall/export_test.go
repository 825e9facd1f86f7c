package sqscall

import "time"

// SetTimeout replaces Timeout for c.
func (c *Caller) SetTimeout(d time.Duration) { c.timeout = d }

// Classes is the table from the error codes of SQS to their classes. The constants below
// are the classes that occur in tests.
var Classes = classes

const (
	Throttle = throttle
	Access   = access
	Apart    = apart
	Skew     = skew
	Service  = service
	Unknown  = unknown
)

// Classify gives the external tests the function classify.
var Classify = classify
