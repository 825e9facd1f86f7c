package sqscall

import "time"

// SetTimeout replaces Timeout for c.
func (c *Caller) SetTimeout(d time.Duration) { c.timeout = d }

// Classes maps SQS's error codes to their classes.
var Classes = classes

const (
	Throttle = throttle
	Access   = access
	Apart    = apart
	Skew     = skew
	Service  = service
	Unknown  = unknown
)

var Classify = classify
