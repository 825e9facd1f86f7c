package replay

import "time"

// Label exports label for the tests in package replay_test.
func (s SentBetween) Label(now time.Time) Label { return s.label(now) }
