//go:build unix

package canonicaljson_test

import (
	"syscall"
	"time"
)

// processTime returns the processor time that the process has used. It does not grow
// while the process waits for a processor.
func processTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
