//go:build unix

package canonicaljson_test

import (
	"syscall"
	"time"
)

// processTime returns the processor time used by the process. Time spent waiting for a
// processor does not count.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
