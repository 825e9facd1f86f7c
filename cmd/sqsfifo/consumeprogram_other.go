//go:build !unix

package main

import "os/exec"

// separate has no effect: the system has no process groups. The program is killed when
// its context ends.
func separate(*exec.Cmd) {}
