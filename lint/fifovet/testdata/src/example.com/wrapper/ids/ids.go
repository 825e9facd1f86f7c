// Package ids makes identifiers. // want package:"reach"
package ids

import "github.com/google/uuid"

func Next() string { // want Next:"nondet"
	return "n-" + uuid.New().String()
}

type Named struct{ ID, Name string }

func Event() *Named { // want Event:"nondet.ID"
	return &Named{ID: uuid.New().String(), Name: "event"}
}

// Group is a function of its argument.
func Group(id string) string { return "g-" + id }

// Log uses an identifier and returns none.
func Log(f func(string)) { f(uuid.New().String()) }
