//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// separate gives a program its own process group, so that a terminal's interrupt reaches
// this command only. When the program's context ends, the whole group gets SIGTERM.
func separate(program *exec.Cmd) {
	program.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	program.Cancel = func() error { return syscall.Kill(-program.Process.Pid, syscall.SIGTERM) }
}
