package ledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

var start = time.Date(2025, 11, 13, 17, 44, 0, 123456000, time.UTC)

func entry(seq int64) ledger.Entry {
	e := ledger.Entry{
		Position: ledger.Position{Transaction: 700 + seq/2, Seq: seq},
		At:       start.Add(time.Duration(seq) * time.Second), Event: ledger.EventCompleted,
		Key:        idempotency.Key{Scope: "kfm", Operation: "pipeline.run", Value: fmt.Sprintf("sha256:%064x", seq)},
		Generation: 1, Fence: 10 + seq, Attempts: 2, Status: "succeeded",
		Fingerprint: idempotency.FingerprintOf("test/1", []byte{byte(seq)}), Body: ledger.Hash{1}, Response: ledger.Hash{2},
		Dataset: idempotency.Dataset{ID: "noaa", Version: "v10.3.1", SourceURI: "https://example.org/a.csv", ArtifactChecksum: "sha256:00", CARELabel: "restricted", ReplaySafe: true},
		Note:    "a note",
	}
	e.Hash = e.Sum()
	return e
}

// build returns the lines of a ledger. Each element of `counts` is the number of entries
// of one seal.
func build(counts ...int) (lines []ledger.Line) {
	seq := int64(1)
	var last ledger.Seal
	for i, n := range counts {
		s := ledger.Seal{N: int64(i) + 1, Epoch: 1, Fence: 3, At: start, Previous: last.Hash}
		var entries []ledger.Line
		for range n {
			e := entry(seq)
			s.Entries = append(s.Entries, ledger.SealedEntry{Position: e.Position, Hash: e.Hash})
			s.End = ledger.Position{Transaction: e.Transaction, Seq: e.Seq + 1}
			entries = append(entries, ledger.Line{Entry: &e})
			seq++
		}
		s.Hash = s.Sum()
		lines = append(append(lines, ledger.Line{Seal: &s}), entries...)
		last = s
	}
	return lines
}

func each(lines []ledger.Line) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		for _, l := range lines {
			if !yield(l, nil) {
				return
			}
		}
	}
}

func file(t testing.TB, lines []ledger.Line) []byte {
	t.Helper()
	var b []byte
	var err error
	for _, l := range lines {
		if b, err = l.Append(b); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// head returns the head of the seal with the number n: its number and hash. It returns
// the zero Head if the lines have no such seal.
func head(lines []ledger.Line, n int64) ledger.Head {
	for _, l := range lines {
		if l.Seal != nil && l.Seal.N == n {
			return l.Seal.Head()
		}
	}
	return ledger.Head{}
}

func TestVerify(t *testing.T) {
	lines := build(3, 1, 4)
	report, err := ledger.Verify(ledger.Read(bytes.NewReader(file(t, lines))), head(lines, 3), head(lines, 1))
	if want := (ledger.Report{Head: head(lines, 3), Seals: 3, Entries: 8, Confirmed: 3}); err != nil || !reflect.DeepEqual(report, want) {
		t.Errorf("got %+v, %v, want %+v", report, err, want)
	}
	report, err = ledger.Verify(each(nil))
	if err != nil || !reflect.DeepEqual(report, ledger.Report{}) {
		t.Errorf("an empty ledger: got %+v, %v", report, err)
	}
	report, err = ledger.VerifyAfter(head(lines, 1), each(lines[4:]), head(lines, 2))
	if want := (ledger.Report{Head: head(lines, 3), Seals: 2, Entries: 5, Confirmed: 2}); err != nil || !reflect.DeepEqual(report, want) {
		t.Errorf("after a head: got %+v, %v, want %+v", report, err, want)
	}
	early := ledger.Head{N: 1, Hash: ledger.Hash{9}}
	report, err = ledger.VerifyAfter(head(lines, 2), each(lines[6:]), early, head(lines, 1), head(lines, 3))
	if err == nil || len(report.Faults) != 2 || report.Faults[0].Kind != ledger.FaultUncompared || report.Faults[1].Kind != ledger.FaultUncompared || report.Confirmed != 3 {
		t.Errorf("heads before the beginning: got %+v, %v, want a fault for each", report, err)
	}
	report, err = ledger.Verify(each(lines[:4]), head(lines, 2), head(lines, 3))
	if err == nil || len(report.Faults) != 2 {
		t.Errorf("heads after the end: got %+v, %v, want a fault for each", report, err)
	}
	other := ledger.Head{N: 1, Hash: ledger.Hash{9}}
	if _, err := ledger.VerifyAfter(other, each(lines[4:])); err == nil {
		t.Error("lines after another head were accepted")
	}
	if _, err := ledger.VerifyAfter(head(lines, 1), each(lines[4:]), other); err == nil {
		t.Error("a beginning that is not the kept head was accepted")
	}
}

func rehash(l []ledger.Line, i int) []ledger.Line {
	l[i].Seal.Hash = l[i].Seal.Sum()
	return l
}

// Verify reports the first fault of each changed ledger. The ledger has seals of 3, 1 and
// 4 entries. Its eleven lines are: seal 1, entries 1 to 3, seal 2, entry 4, seal 3,
// entries 5 to 8.
func TestTampering(t *testing.T) {
	edit := func(i int, change func(*ledger.Entry)) func([]ledger.Line) []ledger.Line {
		return func(lines []ledger.Line) []ledger.Line { change(lines[i].Entry); return lines }
	}
	reseal := func(lines []ledger.Line, from int) []ledger.Line {
		var last *ledger.Seal
		for i, l := range lines {
			if l.Seal == nil {
				continue
			}
			if i >= from {
				for j := range l.Seal.Entries {
					e := lines[i+1+j].Entry
					l.Seal.Entries[j] = ledger.SealedEntry{Position: e.Position, Hash: e.Sum()}
				}
				if last != nil {
					l.Seal.Previous = last.Hash
				}
				l.Seal.Hash = l.Seal.Sum()
			}
			last = l.Seal
		}
		return lines
	}
	for _, tc := range []struct {
		name      string
		change    func([]ledger.Line) []ledger.Line
		keptHeads []int64
		kind      ledger.FaultKind
		seal      int64
		seq       int64
		other     int64
		confirmed int64
	}{
		{name: "content", change: edit(2, func(e *ledger.Entry) { e.Dataset.CARELabel = "public" }), kind: ledger.FaultAltered, seal: 1, seq: 2},
		{name: "content and hash", change: edit(2, func(e *ledger.Entry) { e.Note = "x"; e.Hash = e.Sum() }), kind: ledger.FaultAltered, seal: 1, seq: 2},
		{name: "hash", change: edit(2, func(e *ledger.Entry) { e.Hash[0]++ }), kind: ledger.FaultAltered, seal: 1, seq: 2},
		{name: "place", change: edit(2, func(e *ledger.Entry) { e.Transaction-- }), kind: ledger.FaultAltered, seal: 1, seq: 2},
		{name: "content, hash and leaf", change: func(l []ledger.Line) []ledger.Line {
			e := l[2].Entry
			e.Note = "x"
			e.Hash = e.Sum()
			l[0].Seal.Entries[1].Hash = e.Hash
			return l
		}, kind: ledger.FaultAltered, seal: 1},
		{name: "content, hash, leaf and seal", change: func(l []ledger.Line) []ledger.Line {
			e := l[2].Entry
			e.Note = "x"
			e.Hash = e.Sum()
			l[0].Seal.Entries[1].Hash = e.Hash
			l[0].Seal.Hash = l[0].Seal.Sum()
			return l
		}, kind: ledger.FaultAltered, seal: 1},
		{name: "everything computed again", change: func(l []ledger.Line) []ledger.Line {
			e := l[5].Entry
			e.Note = "x"
			e.Hash = e.Sum()
			return reseal(l, 4)
		}, keptHeads: []int64{1, 3}, kind: ledger.FaultAltered, seal: 3, confirmed: 1},
		{name: "entry dropped", change: func(l []ledger.Line) []ledger.Line { return slices.Delete(l, 2, 3) }, kind: ledger.FaultDropped, seal: 1, seq: 2},
		{name: "last entry of a seal dropped", change: func(l []ledger.Line) []ledger.Line { return slices.Delete(l, 3, 4) }, kind: ledger.FaultDropped, seal: 1, seq: 3},
		{name: "last entry dropped", change: func(l []ledger.Line) []ledger.Line { return l[:10] }, kind: ledger.FaultDropped, seal: 3, seq: 8},
		{name: "seal and entries dropped", change: func(l []ledger.Line) []ledger.Line { return slices.Delete(l, 4, 6) }, kind: ledger.FaultDropped, seal: 2},
		{name: "first seal dropped", change: func(l []ledger.Line) []ledger.Line { return l[4:] }, kind: ledger.FaultDropped, seal: 1},
		{name: "seal dropped", change: func(l []ledger.Line) []ledger.Line { return slices.Delete(l, 4, 5) }, kind: ledger.FaultInserted, seal: 1, seq: 4},
		{name: "entry inserted", change: func(l []ledger.Line) []ledger.Line {
			e := entry(99)
			return slices.Insert(l, 2, ledger.Line{Entry: &e})
		}, kind: ledger.FaultInserted, seal: 1, seq: 99},
		{name: "many entries inserted", change: func(l []ledger.Line) []ledger.Line {
			for i := range int64(50) {
				e := entry(100 + i)
				l = slices.Insert(l, 5, ledger.Line{Entry: &e})
			}
			return l
		}, kind: ledger.FaultInserted, seal: 2, seq: 149},
		{name: "entry inserted at the end", change: func(l []ledger.Line) []ledger.Line {
			e := entry(99)
			return append(l, ledger.Line{Entry: &e})
		}, kind: ledger.FaultInserted, seal: 3, seq: 99},
		{name: "entry before the first seal", change: func(l []ledger.Line) []ledger.Line {
			e := entry(99)
			return slices.Insert(l, 0, ledger.Line{Entry: &e})
		}, kind: ledger.FaultInserted, seal: 1, seq: 99},
		{name: "entry twice", change: func(l []ledger.Line) []ledger.Line { return slices.Insert(l, 2, l[1]) }, kind: ledger.FaultInserted, seal: 1, seq: 1},
		{name: "lines swapped", change: func(l []ledger.Line) []ledger.Line { l[1], l[3] = l[3], l[1]; return l }, kind: ledger.FaultSwapped, seal: 1, seq: 1, other: 3},
		{name: "contents swapped", change: func(l []ledger.Line) []ledger.Line {
			a, b := l[1].Entry, l[3].Entry
			a.Position, b.Position = b.Position, a.Position
			l[1], l[3] = l[3], l[1]
			return l
		}, kind: ledger.FaultSwapped, seal: 1, seq: 1, other: 3},
		{name: "seal's fence", change: func(l []ledger.Line) []ledger.Line { l[4].Seal.Fence++; return l }, kind: ledger.FaultAltered, seal: 2},
		{name: "seal's time", change: func(l []ledger.Line) []ledger.Line { l[4].Seal.At = start.Add(1e6); return l }, kind: ledger.FaultAltered, seal: 2},
		{name: "seal's end", change: func(l []ledger.Line) []ledger.Line { l[4].Seal.End.Seq++; return l }, kind: ledger.FaultAltered, seal: 2},
		{name: "seal's epoch", change: func(l []ledger.Line) []ledger.Line { l[4].Seal.Epoch++; return l }, kind: ledger.FaultAltered, seal: 2},
		{name: "seal's previous", change: func(l []ledger.Line) []ledger.Line { l[4].Seal.Previous[0]++; return l }, kind: ledger.FaultAltered, seal: 2},
		{name: "seal's leaf", change: func(l []ledger.Line) []ledger.Line { l[4].Seal.Entries[0].Seq++; return l }, kind: ledger.FaultAltered, seal: 2},
		{name: "seal twice", change: func(l []ledger.Line) []ledger.Line { return slices.Insert(l, 6, l[4], l[5]) }, kind: ledger.FaultAltered, seal: 3},
		{name: "last seal with leaves out of order", change: func(l []ledger.Line) []ledger.Line {
			leaves := l[6].Seal.Entries
			leaves[0], leaves[3], l[7], l[10] = leaves[3], leaves[0], l[10], l[7]
			return rehash(l, 6)
		}, kind: ledger.FaultAltered, seal: 3},
		{name: "last seal with a leaf at its end", change: func(l []ledger.Line) []ledger.Line {
			l[6].Seal.End = l[6].Seal.Entries[3].Position
			return rehash(l, 6)
		}, kind: ledger.FaultAltered, seal: 3},
		{name: "last seal with a leaf of the one before", change: func(l []ledger.Line) []ledger.Line {
			place := ledger.Position{Transaction: 1, Seq: 1}
			l[6].Seal.Entries[0].Position, l[7].Entry.Position = place, place
			return rehash(l, 6)
		}, kind: ledger.FaultAltered, seal: 3},
		{name: "last seal that covers nothing", change: func(l []ledger.Line) []ledger.Line {
			l[6].Seal.Entries, l[6].Seal.End = nil, l[4].Seal.End
			return rehash(l[:7], 6)
		}, kind: ledger.FaultAltered, seal: 3},
		{name: "first seal with one before it", change: func(l []ledger.Line) []ledger.Line {
			l[0].Seal.Previous = ledger.Hash{1}
			return rehash(l[:4], 0)
		}, kind: ledger.FaultAltered, seal: 1},
		{name: "tail cut, with the head", change: func(l []ledger.Line) []ledger.Line { return l[:4] }, keptHeads: []int64{3}, kind: ledger.FaultTruncated, seal: 2},
		{name: "tail cut, with an older head", change: func(l []ledger.Line) []ledger.Line { return l[:4] }, keptHeads: []int64{1}, confirmed: 1},
		{name: "tail cut, without a head", change: func(l []ledger.Line) []ledger.Line { return l[:4] }},
		{name: "everything cut", change: func([]ledger.Line) []ledger.Line { return nil }, keptHeads: []int64{2}, kind: ledger.FaultTruncated, seal: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var keptHeads []ledger.Head
			for _, n := range tc.keptHeads {
				keptHeads = append(keptHeads, head(build(3, 1, 4), n))
			}
			lines := tc.change(build(3, 1, 4))
			report, err := ledger.Verify(each(lines), keptHeads...)
			var fromFile error
			if _, fromFile = ledger.Verify(ledger.Read(bytes.NewReader(file(t, lines))), keptHeads...); (fromFile == nil) != (err == nil) {
				t.Errorf("from a file: %v; not from a file: %v", fromFile, err)
			}
			if report.Confirmed != tc.confirmed {
				t.Errorf("confirmed up to seal %d, want %d", report.Confirmed, tc.confirmed)
			}
			if tc.kind == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var tampered *ledger.TamperError
			if !errors.As(err, &tampered) || tampered.Kind != tc.kind || tampered.Seal != tc.seal || tampered.Seq != tc.seq || tampered.Other != tc.other {
				t.Fatalf("got %#v (%v), want %v, seal %d, entries %d and %d", tampered, err, tc.kind, tc.seal, tc.seq, tc.other)
			}
			if !errors.As(fromFile, &tampered) || tampered.Kind != tc.kind || tampered.Line == 0 && tc.kind != ledger.FaultTruncated {
				t.Errorf("from a file: got %#v, want a line", tampered)
			}
		})
	}
}

// For any bytes, Verify does not panic. If Verify accepts the bytes, they are the
// beginning of the original ledger, byte for byte, up to the returned head.
func FuzzVerify(f *testing.F) {
	lines := build(3, 1, 4)
	whole := file(f, lines)
	keptHead := head(lines, 2)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add(bytes.Replace(whole, []byte("restricted"), []byte("public"), 1))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		report, err := ledger.Verify(ledger.Read(bytes.NewReader(b)), keptHead)
		if err == nil && (report.Confirmed != 2 || !bytes.HasPrefix(append(bytes.TrimSuffix(b, []byte("\n")), '\n'), file(t, lines[:6]))) {
			t.Errorf("another ledger was accepted: %+v", report)
		}
		for line := range bytes.Lines(b) {
			l, err := ledger.ParseLine(line)
			if err != nil {
				continue
			}
			if again, err := l.Append(nil); err != nil || !bytes.Equal(bytes.TrimSuffix(again, []byte("\n")), bytes.TrimSuffix(line, []byte("\n"))) {
				t.Errorf("%q became %q, %v", line, again, err)
			}
		}
	})
}

// Verification continues after a fault and reports later faults.
func TestVerifyGoesOn(t *testing.T) {
	lines := build(3, 2, 4)
	// The seals are lines 0, 4 and 7. The entries of each seal follow it.
	for _, i := range []int{1, 3, 9} {
		e := *lines[i].Entry
		e.Note += "edited"
		lines[i].Entry = &e
	}
	lines = slices.Delete(lines, 6, 7) // delete the last entry sealed by seal 2
	report, err := ledger.Verify(each(lines))
	var first *ledger.TamperError
	if !errors.As(err, &first) || first.Seq != lines[1].Entry.Seq {
		t.Errorf("got %v, want the first fault", err)
	}
	var kinds []string
	for _, f := range report.Faults {
		kinds = append(kinds, fmt.Sprintf("%d %v", f.Seal, f.Kind))
	}
	if want := []string{"1 altered", "1 altered", "2 dropped", "3 altered"}; !slices.Equal(kinds, want) || report.Seals != 3 {
		t.Errorf("got %q over %d seals, want %q", kinds, report.Seals, want)
	}
}
