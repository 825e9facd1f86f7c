package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Report says what was verified.
type Report struct {
	// Head is that of the last seal. Keep it, and pass it to the next verification.
	Head Head

	Seals, Entries int64

	// Anchored is the number of the last seal that agreed with an anchor, or 0. Seals up
	// to it are what they were when the anchor was kept; those after it fit together.
	Anchored int64
}

// Verify checks a whole ledger, from [Read] or a store, against itself and against
// heads that were kept. The error is a [*TamperError], or that of lines. The report says
// how far the verification came.
func Verify(lines iter.Seq2[Line, error], anchors ...Head) (Report, error) {
	return VerifyAfter(Head{}, lines, anchors...)
}

// VerifyAfter is [Verify] for lines that begin after a head, as those of an export that
// goes on where an earlier one ended. The zero Head is the beginning.
func VerifyAfter(after Head, lines iter.Seq2[Line, error], anchors ...Head) (Report, error) {
	v := &verifier{report: Report{Head: after}, anchors: slices.DeleteFunc(slices.Clone(anchors), func(h Head) bool { return h.N == 0 })}
	slices.SortStableFunc(v.anchors, func(a, b Head) int { return cmp.Compare(a.N, b.N) })
	if err := v.passed(0); err != nil { // anchors up to where the lines begin
		return v.report, err
	}
	for l, err := range lines {
		if err != nil {
			// What was read before is complete only if it says what is wrong with it.
			if tampered := v.entries(true); tampered != nil {
				err = tampered
			}
			return v.report, err
		}
		if err := v.line(l); err != nil {
			return v.report, err
		}
	}
	if err := v.entries(false); err != nil {
		return v.report, err
	}
	if len(v.anchors) > 0 {
		return v.report, &TamperError{
			Kind: Truncated, Seal: v.report.Head.N + 1,
			Rule: fmt.Sprintf("the head of seal %d was kept, and the ledger ends at seal %d", v.anchors[len(v.anchors)-1].N, v.report.Head.N),
		}
	}
	return v.report, nil
}

type verifier struct {
	report  Report
	anchors []Head // that were not passed yet
	last    *Seal  // that was verified
	open    *Seal  // whose entries are being read
	lineOf  int    // of open
	rows    []Line // entries of open
}

func (v *verifier) line(l Line) error {
	switch {
	case l.Seal != nil:
		if err := v.entries(false); err != nil {
			return err
		}
		return v.seal(l)
	case l.Entry == nil:
		return errors.New("ledger: a line is either a seal or an entry")
	case v.open == nil:
		return &TamperError{Kind: Inserted, Seal: v.report.Head.N + 1, Seq: l.Entry.Seq, Line: l.Number, Rule: "it stands before the first seal"}
	}
	v.rows = append(v.rows, l)
	if len(v.rows) > len(v.open.Leaves)+MaxSealed { // enough to see what is wrong
		return v.entries(false)
	}
	return nil
}

// seal checks a seal against the one before it.
func (v *verifier) seal(l Line) error {
	s := l.Seal
	wrong := func(kind Kind, n int64, rule string, args ...any) error {
		return &TamperError{Kind: kind, Seal: n, Line: l.Number, Rule: fmt.Sprintf(rule, args...)}
	}
	next := v.report.Head.N + 1
	switch {
	case s.Hash != s.Sum():
		return wrong(Altered, next, "its content does not have its hash")
	case s.N > next:
		return wrong(Dropped, next, "seal %d follows seal %d", s.N, next-1)
	case s.N < next:
		return wrong(Altered, next, "seal %d follows seal %d", s.N, next-1)
	case s.Previous != v.report.Head.Hash && next == 1:
		return wrong(Altered, 1, "it follows another seal, and should be the first")
	case s.Previous != v.report.Head.Hash:
		return wrong(Altered, next-1, "seal %d was written after another seal %d; one of the two was replaced", next, next-1)
	case v.last != nil && (s.Epoch < v.last.Epoch || s.Epoch == v.last.Epoch && s.End.Compare(v.last.End) <= 0):
		return wrong(Altered, next, "it ends at or before the end of seal %d", next-1)
	}
	for i, leaf := range s.Leaves {
		if i > 0 && leaf.Compare(s.Leaves[i-1].Place) <= 0 || leaf.Compare(s.End) >= 0 || i == 0 && v.last != nil && s.Epoch == v.last.Epoch && leaf.Compare(v.last.End) < 0 {
			return wrong(Altered, next, "leaf %d is not in its range", i)
		}
	}
	v.open, v.lineOf, v.rows = s, l.Number, v.rows[:0]
	return nil
}

// entries checks the entries of the open seal, of which more may follow if partial.
func (v *verifier) entries(partial bool) error {
	if v.open == nil {
		return nil
	}
	s := v.open
	for i := range max(len(v.rows), len(s.Leaves)) {
		if i == len(v.rows) && partial {
			return nil
		}
		if i < len(v.rows) && i < len(s.Leaves) {
			e := v.rows[i].Entry
			if sum := e.Sum(); sum == e.Hash && s.Leaves[i] == (Leaf{e.Place, sum}) {
				continue
			}
		}
		return v.mismatch(i)
	}
	if partial {
		return nil
	}
	v.report.Head = s.Head()
	v.report.Seals++
	v.report.Entries += int64(len(v.rows))
	v.last, v.open, v.rows = s, nil, v.rows[:0]
	return v.passed(v.lineOf)
}

// mismatch says what is wrong with the i-th entry of the open seal.
func (v *verifier) mismatch(i int) error {
	s := v.open
	found := func(kind Kind, seq int64, rule string) *TamperError {
		e := &TamperError{Kind: kind, Seal: s.N, Seq: seq, Line: v.lineOf, Rule: rule}
		if i < len(v.rows) {
			e.Line = v.rows[i].Number
		}
		return e
	}
	if i >= len(s.Leaves) {
		return found(Inserted, v.rows[i].Entry.Seq, "the seal does not cover it")
	}
	leaf := s.Leaves[i]
	if i >= len(v.rows) {
		return found(Dropped, leaf.Seq, "the seal covers it, and it is not there")
	}
	e := v.rows[i].Entry
	// rowOf and leafOf find an entry by its place.
	rowOf := func(p Place) int {
		return slices.IndexFunc(v.rows, func(l Line) bool { return l.Entry.Place == p })
	}
	leafOf := func(p Place) int {
		return slices.IndexFunc(s.Leaves, func(l Leaf) bool { return l.Place == p })
	}
	if e.Place == leaf.Place {
		if other := slices.IndexFunc(s.Leaves, func(l Leaf) bool { return l.Hash == e.Sum() }); other > i {
			if j := rowOf(s.Leaves[other].Place); j >= 0 && v.rows[j].Entry.Sum() == leaf.Hash {
				swapped := found(Swapped, leaf.Seq, "each has the content that was sealed at the place of the other")
				swapped.Other = s.Leaves[other].Seq
				return swapped
			}
		}
		if e.Sum() == leaf.Hash {
			return found(Altered, leaf.Seq, "its content is what was sealed, its hash is not")
		}
		return found(Altered, leaf.Seq, "its content does not have the hash that was sealed")
	}
	here, there := leafOf(e.Place), rowOf(leaf.Place)
	switch {
	case here >= 0 && here < i:
		return found(Inserted, e.Seq, "it is there twice")
	case there >= 0 && here >= 0:
		swapped := found(Swapped, leaf.Seq, "their order is not that of the seal")
		swapped.Other = e.Seq
		return swapped
	case there >= 0:
		return found(Inserted, e.Seq, "the seal does not cover it")
	case here < 0 && e.Sum() == leaf.Hash:
		return found(Altered, leaf.Seq, fmt.Sprintf("its content stands at transaction %d, seq %d", e.Transaction, e.Seq))
	default:
		return found(Dropped, leaf.Seq, "the seal covers it, and it is not there")
	}
}

// passed compares the anchors of seals up to the last one.
func (v *verifier) passed(line int) error {
	for len(v.anchors) > 0 && v.anchors[0].N <= v.report.Head.N {
		a := v.anchors[0]
		if a.N == v.report.Head.N {
			if a != v.report.Head {
				return &TamperError{
					Kind: Altered, Seal: a.N, Line: line,
					Rule: fmt.Sprintf("its hash is not that of the head that was kept: it, or an entry or seal after seal %d, was written again", v.report.Anchored),
				}
			}
			v.report.Anchored = a.N
		}
		v.anchors = v.anchors[1:]
	}
	return nil
}
