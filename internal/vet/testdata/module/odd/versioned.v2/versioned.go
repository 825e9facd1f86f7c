// Package versioned is at a path that does not end in its name.
package versioned

type Key [2]string
