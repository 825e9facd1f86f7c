// Package clock is what many programs have. // want package:"reach"
package clock

import "time"

func now() time.Time { return time.Now().UTC() }

func UnixNano() int64 { // want UnixNano:"nondet"
	return now().UnixNano()
}

// Elapsed returns nothing that a message could be made of.
func Elapsed(f func()) {
	start := time.Now()
	f()
	_ = time.Since(start)
}
