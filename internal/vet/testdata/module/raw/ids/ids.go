// Package ids has what the analyzer knows of another package only by its facts.
package ids

import "math/rand/v2"

func New() string { return string(rune(rand.Int32())) }
