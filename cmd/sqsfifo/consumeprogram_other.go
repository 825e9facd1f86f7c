//go:build !unix

package main

import "os/exec"

// separate does nothing on this system, which has no process groups. The program is killed
// when its context ends.
func separate(*exec.Cmd) {}
