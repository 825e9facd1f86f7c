//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// separate makes the program start in a new process group, so an interrupt from the
// terminal reaches only sqsfifo. When the program's context ends, all processes of the
// group get SIGTERM.
func separate(program *exec.Cmd) {
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	program.Cancel = func() error { return syscall.Kill(-program.Process.Pid, syscall.SIGTERM) }
}
