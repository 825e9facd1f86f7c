package sqscall

import "time"

// SetTimeout replaces Timeout for c.
func (c *Caller) SetTimeout(d time.Duration) { c.timeout = d }

// Classes is the table of codes. Tests use the constants below for the classes in the
// table.
var Classes = classes

const (
	Throttle = throttle
	Access   = access
	Apart    = apart
	Skew     = skew
	Service  = service
	Unknown  = unknown
)

// Classify is classify.
var Classify = classify
