//go:build !unix

package main

import "os/exec"

// separate does nothing: this system lacks Unix process groups and SIGTERM. The end of a
// program's context kills the program immediately.
func separate(*exec.Cmd) {}
