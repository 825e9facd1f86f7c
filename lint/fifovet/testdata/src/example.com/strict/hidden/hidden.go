// Package hidden gets its identifiers from where nobody can see.
package hidden

func ID() string

type Sequence struct{}

func (*Sequence) Next() string
