//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// separate starts a program in a new process group. An interrupt from the terminal then
// reaches only this command, and when the program's context ends, the whole group gets
// SIGTERM.
func separate(program *exec.Cmd) {
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	program.Cancel = func() error { return syscall.Kill(-program.Process.Pid, syscall.SIGTERM) }
}
