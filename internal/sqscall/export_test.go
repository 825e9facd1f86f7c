package sqscall

import "time"

// SetTimeout replaces Timeout for c.
func (c *Caller) SetTimeout(d time.Duration) { c.timeout = d }

// Classes is the table of codes, and the classes that tests name.
var Classes = classes

const (
	Throttle = throttle
	Final    = final
	Apart    = apart
	Skew     = skew
	Service  = service
	Unknown  = unknown
)

// Classify is classify.
var Classify = classify
