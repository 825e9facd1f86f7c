// Package replaced makes identifiers with a function that tests replace. // want package:"reach"
package replaced

import "github.com/google/uuid"

var generate = uuid.NewString

func Next() string { // want Next:"nondet"
	return generate()
}
