package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// Clock numbers from linux/time.h. Both clocks count from the boot of the machine;
// clockMonotonic, the clock of package time, stops during suspensions.
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// suspended returns the total duration of all suspensions since the boot. The result may
// be too low, never too high. If the system calls fail, the result is only the estimate
// of byWallClock.
func suspended(start, now time.Time) time.Duration {
	// Read the monotonic clock last: a delay then makes the result too low.
	boottime, ok := readClock(clockBoottime)
	monotonic, both := readClock(clockMonotonic)
	if !ok || !both {
		return byWallClock(start, now)
	}
	return boottime - monotonic
}

// readClock makes the system call without notifying the Go scheduler: the call takes 0.2
// µs and never blocks.
func readClock(id uintptr) (time.Duration, bool) {
	var at syscall.Timespec
	// #nosec G103 -- `at` has the layout that the kernel expects, and stays valid until the
	// call returns.
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&at)), 0)
	return time.Duration(at.Nano()), errno == 0
}
