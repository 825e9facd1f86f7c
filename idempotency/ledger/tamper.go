package ledger

import (
	"fmt"
	"strings"
)

// Kind is how a ledger was tampered with, as far as that can be told.
type Kind uint8

const (
	// Altered: the entry or seal is not what was written.
	Altered Kind = iota + 1

	// Dropped: the entry or seal is missing.
	Dropped

	// Inserted: the entry is not under the seal of its place.
	Inserted

	// Swapped: the entry stands where another one was written.
	Swapped

	// Truncated: the ledger ends before a head that was kept.
	Truncated
)

// String returns the kind in lower case.
func (k Kind) String() string {
	names := [...]string{"", "altered", "dropped", "inserted", "swapped", "truncated"}
	if k > 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// TamperError names the first entry or seal that is not as it was written. If somebody
// computed hashes again to hide an edit, that is where the hashes do not fit any more:
// the edit itself, or the seal after it.
type TamperError struct {
	Kind Kind

	// Seal is the seal, or that of the entry; 0 if it could not be read.
	Seal int64

	// Seq names the entry, or is 0 for a seal. Other is the entry that it was swapped with.
	Seq, Other int64

	// Line is the number of the line in a file at which it was found, or 0.
	Line int

	// Rule says what was compared.
	Rule string
}

func (e *TamperError) Error() string {
	var b strings.Builder
	b.WriteString("ledger: ")
	switch {
	case e.Kind == Truncated:
		fmt.Fprintf(&b, "truncated: seal %d and what follows it are missing", e.Seal)
	case e.Seq != 0 && e.Other != 0:
		fmt.Fprintf(&b, "entries %d and %d of seal %d were swapped", e.Seq, e.Other, e.Seal)
	case e.Seq != 0:
		fmt.Fprintf(&b, "entry %d of seal %d was %v", e.Seq, e.Seal, e.Kind)
	case e.Seal != 0:
		fmt.Fprintf(&b, "seal %d was %v", e.Seal, e.Kind)
	default:
		b.WriteString(e.Kind.String())
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, " (line %d)", e.Line)
	}
	fmt.Fprintf(&b, ": %s", e.Rule)
	return b.String()
}
