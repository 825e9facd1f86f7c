//go:build !unix

package main

import "os/exec"

// separate does nothing, because this system has no Unix process groups and no SIGTERM.
// When the context of the program ends, the program is killed immediately.
func separate(*exec.Cmd) {}
