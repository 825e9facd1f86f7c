package main

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the kernel kill a program that was made separate if the thread that
// starts it ends, for example because sqsfifo is killed.
func endWithParent(program *exec.Cmd) { program.SysProcAttr.Pdeathsig = syscall.SIGKILL }
