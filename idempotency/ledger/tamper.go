package ledger

import (
	"fmt"
	"strings"
)

// FaultKind is the kind of a fault in a ledger, as far as Verify can tell.
type FaultKind uint8

const (
	// FaultAltered: the content or hash of the entry or seal was changed.
	FaultAltered FaultKind = iota + 1

	// FaultDropped: the entry or seal is missing.
	FaultDropped

	// FaultInserted: an entry in a sealed part of the ledger is not in the seal's list, or
	// occurs twice.
	FaultInserted

	// FaultSwapped: the entry occupies the place of another entry.
	FaultSwapped

	// FaultTruncated: the ledger ends before a head given by the caller.
	FaultTruncated

	// FaultUncompared: a head given by the caller was not compared, because its seal is not
	// among the verified ones. The ledger was trimmed after this seal, or somebody hides
	// an edit before it.
	FaultUncompared
)

// String returns the kind in lower case.
func (k FaultKind) String() string {
	names := [...]string{"", "altered", "dropped", "inserted", "swapped", "truncated", "uncompared"}
	if k > 0 && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("FaultKind(%d)", uint8(k))
}

// TamperError names a faulty entry or seal. If later hashes were recomputed to hide an
// edit, the error may name a later seal instead of the edit.
type TamperError struct {
	Kind FaultKind

	// Seal is the number of the faulty or missing seal. For a faulty entry, it is the
	// number of the entry's seal. It is 0 if the number cannot be read.
	Seal int64

	// Seq is the number of the faulty entry, or 0 for a seal. If two entries were
	// swapped, Other is the number of the second entry.
	Seq, Other int64

	// Line is the line number in the file, or 0.
	Line int

	// Rule is a text that describes the fault, for example "the seal does not cover it".
	Rule string
}

func (e *TamperError) Error() string {
	var b strings.Builder
	b.WriteString("ledger: ")
	switch {
	case e.Kind == FaultTruncated:
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
