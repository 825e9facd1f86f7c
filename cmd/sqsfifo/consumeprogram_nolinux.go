//go:build !linux

package main

import "os/exec"

// endWithParent does nothing: this system has no signal for the death of a parent.
func endWithParent(*exec.Cmd) {}
