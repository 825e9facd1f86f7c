// Package pb has an event with fields and with setters.
package pb

type Event struct {
	Id   string
	Note string
}

// Built is an event whose fields nobody else sets.
type Built struct{ id, note string }

func New() *Built { return &Built{} }

func (b *Built) SetID(id string)     { b.id = id }
func (b *Built) SetNote(note string) { b.note = note }

func (b *Built) MarshalJSON() ([]byte, error) { return []byte(b.id + b.note), nil }
