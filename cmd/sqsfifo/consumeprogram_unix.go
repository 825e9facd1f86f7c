//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// separate starts a program in a new process group. An interrupt from the terminal then
// reaches only sqsfifo and not the program. When the program's context ends, all
// processes of the new group get SIGTERM.
func separate(program *exec.Cmd) {
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	program.Cancel = func() error { return syscall.Kill(-program.Process.Pid, syscall.SIGTERM) }
}
