//go:build !unix

package main

import "os/exec"

// separate does nothing on a system without Unix process groups. The program is then killed
// when its context ends.
func separate(*exec.Cmd) {}
