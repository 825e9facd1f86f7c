//go:build !race

package systemtest

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/ledger"
)

// tampered is a ledger after a forger's edit.
type tampered struct {
	Ledger
	forgery
}

// forgery is an edit of a ledger.
type forgery struct {
	edit func(lines []ledger.Line) []ledger.Line

	// With noHead, Head returns zero. Only the store's answers can then reveal the edit.
	noHead bool
}

// forgeries has the edits of a ledger, by name. An edit with
// makeLedger also forges all hashes.
var forgeries = map[string]forgery{
	"altered ledger": {edit: func(lines []ledger.Line) []ledger.Line {
		altered := *lines[1].Entry
		altered.Attempts++
		lines[1].Entry = &altered
		return lines
	}},
	"truncated ledger": {edit: func(lines []ledger.Line) []ledger.Line {
		last := len(lines) - 1
		for lines[last].Seal == nil {
			last--
		}
		return lines[:last]
	}},
	"rewritten ledger": {edit: func(lines []ledger.Line) []ledger.Line {
		entries := entriesOf(lines)
		return makeLedger(slices.Delete(entries, 5, 6))
	}},
	"missing entry": {noHead: true, edit: func(lines []ledger.Line) []ledger.Line {
		entries := entriesOf(lines)
		i := slices.IndexFunc(entries, isCompleted)
		return makeLedger(slices.Delete(entries, i, i+1))
	}},
	"doubled entry": {noHead: true, edit: func(lines []ledger.Line) []ledger.Line {
		entries := entriesOf(lines)
		return makeLedger(slices.Insert(entries, 5, entries[4]))
	}},
	"moved entry": {noHead: true, edit: func(lines []ledger.Line) []ledger.Line {
		entries := entriesOf(lines)
		last := len(entries) - 1
		first := slices.IndexFunc(entries, func(e ledger.Entry) bool { return e.Key == entries[last].Key })
		moved := entries[last]
		entries = slices.Delete(entries, last, last+1)
		return makeLedger(slices.Insert(entries, first, moved))
	}},
	"exchanged entry": {noHead: true, edit: func(lines []ledger.Line) []ledger.Line {
		entries := entriesOf(lines)
		i := slices.IndexFunc(entries, isCompleted)
		entries[i].Event, entries[i].Status = ledger.EventFailed, "failed"
		return makeLedger(entries)
	}},
}

// The simulation detects each edit of the ledger. There are two kinds of edits:
//
//   - After an edit with "ledger" in its name, the ledger does not match its own hashes or a
//     head saved elsewhere.
//   - Any other edit replaces all hashes of the ledger, and no head is saved elsewhere. Only
//     the recorded answers of the store reveal the edit.
func TestForgedLedgerIsFound(t *testing.T) {
	for name, f := range forgeries {
		t.Run(name, func(t *testing.T) {
			mustFind(t, "", 1, func(t *testing.T, now func() time.Time) worldStorage {
				s := sqlite(t, now)
				s.Ledger = tampered{s.Ledger, f}
				return s
			})
		})
	}
}

// Head implements [Ledger].
func (l tampered) Head(ctx context.Context) (ledger.Head, error) {
	if l.noHead {
		return ledger.Head{}, nil
	}
	return l.Ledger.Head(ctx)
}

// Lines implements [Ledger].
func (l tampered) Lines(ctx context.Context, after ledger.Head) iter.Seq2[ledger.Line, error] {
	return func(yield func(ledger.Line, error) bool) {
		var lines []ledger.Line
		for line, err := range l.Ledger.Lines(ctx, after) {
			if err != nil {
				yield(line, err)
				return
			}
			lines = append(lines, line)
		}
		for _, line := range l.edit(lines) {
			if !yield(line, nil) {
				return
			}
		}
	}
}

func entriesOf(lines []ledger.Line) (entries []ledger.Entry) {
	for _, l := range lines {
		if l.Entry != nil {
			entries = append(entries, *l.Entry)
		}
	}
	return entries
}

func isCompleted(e ledger.Entry) bool { return e.Event == ledger.EventCompleted }

// makeLedger returns the lines of a ledger with the given entries and with matching
// hashes.
func makeLedger(entries []ledger.Entry) (lines []ledger.Line) {
	var last ledger.Seal
	for i, e := range entries {
		seq := int64(i + 1)
		e.Position = ledger.Position{Transaction: seq, Seq: seq}
		e.Hash = e.Sum()
		last = ledger.Seal{
			N: seq, Epoch: 1, End: ledger.Position{Transaction: seq + 1, Seq: seq + 1}, At: e.At,
			Entries: []ledger.SealedEntry{{Position: e.Position, Hash: e.Hash}}, Previous: last.Hash,
		}
		last.Hash = last.Sum()
		seal := last
		lines = append(lines, ledger.Line{Seal: &seal}, ledger.Line{Entry: &e})
	}
	return lines
}
