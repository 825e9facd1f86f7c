// Package random hides a random source behind another package. // want package:"reach"
package random

import "example.com/shapes/lib"

func MessageID() string { // want MessageID:"nondet"
	return "m-" + lib.String(12)
}
