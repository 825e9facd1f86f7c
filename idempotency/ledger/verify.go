package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Report is the result of a verification.
type Report struct {
	// Head is the number and hash of the last checked seal. Keep it outside of the
	// database for the next verification.
	Head Head

	Seals, Entries int64

	// Trimmed is the number of the last seal whose entries were exported and then deleted,
	// or 0 for a complete ledger.
	//
	// To verify that the ledger continues the deleted part, pass Verify the head of this
	// seal, or of any later seal: the hash of a seal depends on all earlier seals.
	Trimmed int64

	// Faults lists the faulty entries and seals in order. Verification stops after
	// [MaxFaults] faults.
	Faults []*TamperError

	// Confirmed is the number of the last seal whose hash equals a head passed to Verify,
	// or 0. Up to this seal, and apart from the Faults, the ledger is unchanged since the
	// caller read the head. Later seals may have been rewritten with new hashes.
	Confirmed int64
}

// MaxFaults is the largest number of faults in a [Report].
const MaxFaults = 100

// Verify checks a whole ledger, from [Read] or a store. It recomputes the ledger's hashes
// and compares them with keptHeads: heads (seal number and hash) kept by the caller
// outside of the database. A head that cannot be compared is a fault, for example the head
// of a seal before the beginning of a trimmed ledger.
//
// If a line cannot be read, Verify stops, and the report covers only the earlier lines.
// The returned error is the first [*TamperError] of Report.Faults or, without faults, the
// read error.
func Verify(lines iter.Seq2[Line, error], keptHeads ...Head) (Report, error) {
	return VerifyAfter(Head{}, lines, keptHeads...)
}

// VerifyAfter is like [Verify], for a ledger without its beginning, for example an
// export that continues an earlier one. The parameter `previous` is the head (number and
// hash) of the last missing seal, or zero for a whole ledger.
func VerifyAfter(previous Head, lines iter.Seq2[Line, error], keptHeads ...Head) (Report, error) {
	v := &verifier{report: Report{Head: previous}, malformed: map[Position]bool{}, keptHeads: slices.DeleteFunc(slices.Clone(keptHeads), func(h Head) bool { return h.N == 0 })}
	slices.SortStableFunc(v.keptHeads, func(a, b Head) int { return cmp.Compare(a.N, b.N) })
	// The caller may also have kept the head `previous`. Its seal is not in the lines, so
	// the loop below does not compare this head.
	v.compareKeptHeads(0)
	for l, err := range lines {
		var fault *TamperError
		switch {
		case err == nil:
			err = v.readLine(l)
		case errors.As(err, &fault) && l.Entry != nil: // this row of the store is invalid
			v.add(fault)
			v.malformed[l.Entry.Position] = true
			err = v.readLine(l)
		}
		if err != nil {
			v.checkEntries(true) // check the entries that were read before the error
			if first := v.first(); first != nil {
				err = first
			}
			return v.report, err
		}
		if v.full() {
			return v.report, v.first()
		}
	}
	v.checkEntries(false)
	for _, kept := range v.keptHeads {
		v.add(&TamperError{
			Kind: FaultTruncated, Seal: v.report.Head.N + 1,
			Rule: fmt.Sprintf("the head of seal %d was kept, and the ledger ends at seal %d", kept.N, v.report.Head.N),
		})
	}
	return v.report, v.first()
}

func (v *verifier) add(fault *TamperError) {
	if !v.full() {
		v.report.Faults = append(v.report.Faults, fault)
	}
}

func (v *verifier) full() bool { return len(v.report.Faults) >= MaxFaults }

// first returns the first fault as an error, or nil.
func (v *verifier) first() error {
	if len(v.report.Faults) == 0 {
		return nil
	}
	return v.report.Faults[0]
}

type verifier struct {
	report      Report
	keptHeads   []Head        // heads passed by the caller and not yet compared, by seal number
	last        *Seal         // last seal whose entries were checked
	current     *Seal         // seal whose entries are being read, or nil
	currentLine int           // line number of the current seal
	skipEntries bool          // the current seal is faulty, so its entries are not checked
	rows        []Line        // entries read after the current seal
	leaves      []SealedEntry // list of entries in the current seal, without entries reported as missing

	malformed map[Position]bool // positions of entries already reported as invalid
}

func (v *verifier) readLine(l Line) error {
	switch {
	case l.Seal != nil:
		v.checkEntries(false)
		v.checkSeal(l)
		return nil
	case l.Entry == nil:
		return errors.New("ledger: a line is either a seal or an entry")
	case v.current == nil && v.malformed[l.Entry.Position]: // already reported
		return nil
	case v.current == nil:
		v.add(&TamperError{Kind: FaultInserted, Seal: v.report.Head.N + 1, Seq: l.Entry.Seq, Line: l.Number, Rule: "it stands before the first seal"})
		return nil
	}
	// An altered file may have any number of entries after a seal. Keep only enough to
	// find the fault.
	if len(v.rows) <= len(v.current.Entries)+MaxSealed {
		v.rows = append(v.rows, l)
	}
	return nil
}

// checkSeal checks a seal against the previous seal. If the seal is altered, its entries
// will not be checked.
func (v *verifier) checkSeal(l Line) {
	s := l.Seal
	kind, n, rule := v.sealFault(s)
	if kind != 0 {
		v.add(&TamperError{Kind: kind, Seal: n, Line: l.Number, Rule: rule})
	}
	v.current, v.currentLine, v.rows, v.leaves = s, l.Number, v.rows[:0], slices.Clone(s.Entries)
	v.skipEntries = kind != 0 && n == s.N
}

// sealFault returns the kind, seal number and rule of a seal's fault. The kind is 0 for a
// seal without a fault.
func (v *verifier) sealFault(s *Seal) (kind FaultKind, n int64, rule string) {
	next := v.report.Head.N + 1
	switch {
	case s.Hash != s.Sum():
		return FaultAltered, next, "its content does not have its hash"
	case s.N > next:
		return FaultDropped, next, fmt.Sprintf("seal %d follows seal %d", s.N, next-1)
	case s.N < next:
		return FaultAltered, next, fmt.Sprintf("seal %d follows seal %d", s.N, next-1)
	case s.Previous != v.report.Head.Hash && next == 1:
		return FaultAltered, 1, "it follows another seal, and should be the first"
	case s.Previous != v.report.Head.Hash:
		return FaultAltered, next - 1, fmt.Sprintf("seal %d was written after another seal %d; one of the two was replaced", next, next-1)
	case v.last != nil && (s.Epoch < v.last.Epoch || s.Epoch == v.last.Epoch && s.End.Compare(v.last.End) <= 0):
		return FaultAltered, next, fmt.Sprintf("it ends at or before the end of seal %d", next-1)
	}
	for i, leaf := range s.Entries {
		if i > 0 && leaf.Compare(s.Entries[i-1].Position) <= 0 || leaf.Compare(s.End) >= 0 || i == 0 && v.last != nil && s.Epoch == v.last.Epoch && leaf.Compare(v.last.End) < 0 {
			return FaultAltered, next, fmt.Sprintf("leaf %d is not in its range", i)
		}
	}
	return 0, 0, ""
}

// checkEntries compares the entries read so far with the list of entries in the current
// seal (its entries). If the parameter `partial` is true, more entries of the seal may
// follow.
func (v *verifier) checkEntries(partial bool) {
	if v.current == nil {
		return
	}
	swapped := map[int64]bool{} // Seq of entries already reported as swapped
	for i := 0; !v.skipEntries && !v.full() && i < max(len(v.rows), len(v.leaves)); {
		if i == len(v.rows) && partial {
			return
		}
		if i < len(v.rows) && i < len(v.leaves) {
			e := v.rows[i].Entry
			sum := e.Sum()
			same := v.leaves[i].Position == e.Position
			if same && (sum == e.Hash && v.leaves[i].Hash == sum || v.malformed[e.Position]) || swapped[e.Seq] {
				i++
				continue
			}
		}
		if i < len(v.rows) && v.malformed[v.rows[i].Entry.Position] {
			v.rows = slices.Delete(v.rows, i, i+1)
			continue
		}
		fault := v.mismatch(i)
		v.add(fault)
		switch fault.Kind {
		case FaultInserted:
			v.rows = slices.Delete(v.rows, i, i+1)
		case FaultDropped:
			v.leaves = slices.Delete(v.leaves, i, i+1)
		default:
			swapped[fault.Seq], swapped[fault.Other] = fault.Other != 0, fault.Other != 0
			i++
		}
	}
	if partial {
		return
	}
	v.report.Head = v.current.Head()
	v.report.Seals++
	v.report.Entries += int64(len(v.rows))
	v.last, v.current, v.rows = v.current, nil, v.rows[:0]
	v.compareKeptHeads(v.currentLine)
}

// mismatch describes the fault at index i: the entry in the file (v.rows) and the entry in
// the list of the seal (v.leaves) differ, or one of the two is missing.
func (v *verifier) mismatch(i int) *TamperError {
	s := v.current
	found := func(kind FaultKind, seq int64, rule string) *TamperError {
		e := &TamperError{Kind: kind, Seal: s.N, Seq: seq, Line: v.currentLine, Rule: rule}
		if i < len(v.rows) {
			e.Line = v.rows[i].Number
		}
		return e
	}
	if i >= len(v.leaves) {
		return found(FaultInserted, v.rows[i].Entry.Seq, "the seal does not cover it")
	}
	leaf := v.leaves[i]
	if i >= len(v.rows) {
		return found(FaultDropped, leaf.Seq, "the seal covers it, and it is not there")
	}
	e := v.rows[i].Entry
	// rowOf and leafOf return the index of an entry in v.rows and in v.leaves, or -1.
	rowOf := func(p Position) int {
		return slices.IndexFunc(v.rows, func(l Line) bool { return l.Entry.Position == p })
	}
	leafOf := func(p Position) int {
		return slices.IndexFunc(v.leaves, func(l SealedEntry) bool { return l.Position == p })
	}
	if e.Position == leaf.Position {
		if other := slices.IndexFunc(v.leaves, func(l SealedEntry) bool { return l.Hash == e.Sum() }); other > i {
			if j := rowOf(v.leaves[other].Position); j >= 0 && v.rows[j].Entry.Sum() == leaf.Hash {
				swapped := found(FaultSwapped, leaf.Seq, "each has the content that was sealed at the place of the other")
				swapped.Other = v.leaves[other].Seq
				return swapped
			}
		}
		if e.Sum() == leaf.Hash {
			return found(FaultAltered, leaf.Seq, "its content is what was sealed, its hash is not")
		}
		return found(FaultAltered, leaf.Seq, "its content does not have the hash that was sealed")
	}
	here, there := leafOf(e.Position), rowOf(leaf.Position)
	switch {
	case here >= 0 && here < i:
		return found(FaultInserted, e.Seq, "it is there twice")
	case there >= 0 && here >= 0:
		swapped := found(FaultSwapped, leaf.Seq, "their order is not that of the seal")
		swapped.Other = e.Seq
		return swapped
	case there >= 0:
		return found(FaultInserted, e.Seq, "the seal does not cover it")
	case here < 0 && e.Sum() == leaf.Hash:
		return found(FaultAltered, leaf.Seq, fmt.Sprintf("its content stands at transaction %d, seq %d", e.Transaction, e.Seq))
	default:
		return found(FaultDropped, leaf.Seq, "the seal covers it, and it is not there")
	}
}

// A head is the number and hash of a seal. compareKeptHeads compares the head of the last
// checked seal with the caller's copy in v.keptHeads, if any. It removes the copies for
// all checked seals. A copy whose seal is not in the lines is a fault.
func (v *verifier) compareKeptHeads(line int) {
	for len(v.keptHeads) > 0 && v.keptHeads[0].N <= v.report.Head.N {
		switch a := v.keptHeads[0]; {
		case a == v.report.Head:
			v.report.Confirmed = a.N
		case a.N == v.report.Head.N:
			v.add(&TamperError{
				Kind: FaultAltered, Seal: a.N, Line: line,
				Rule: fmt.Sprintf("its hash is not that of the head that was kept: it, or an entry or seal after seal %d, was written again", v.report.Confirmed),
			})
		default:
			v.add(&TamperError{
				Kind: FaultUncompared, Seal: a.N, Line: line,
				Rule: "its head was kept, and the seal is not among the verified ones; verify the export that has the seal, with this head",
			})
		}
		v.keptHeads = v.keptHeads[1:]
	}
}
