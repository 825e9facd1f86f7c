//go:build unix

package canonicaljson_test

import (
	"syscall"
	"time"
)

// processTime is how long the process has been running on a processor: what it
// waits for one, on a busy machine, does not count.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
