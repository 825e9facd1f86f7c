// Package again calls functions until they succeed, under a name that says nothing. // want package:"reach"
package again

import "time"

// Persist calls f until it succeeds.
func Persist(rounds int, f func() error) error { // want Persist:"retries"
	var err error
	for i := 0; i < rounds; i++ {
		if err = f(); err == nil {
			return nil
		}
		time.Sleep(time.Duration(i) * time.Second)
	}
	return err
}

// RetryLater calls f once, whatever its name suggests.
func RetryLater(f func() error) error { return f() } // want RetryLater:"once"
