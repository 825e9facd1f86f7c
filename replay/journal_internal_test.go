package replay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func marksOf(t testing.TB, j Journal) (out []Mark) {
	t.Helper()
	for m, err := range j.Marks(t.Context()) {
		require.NoError(t, err)
		out = append(out, m)
	}
	return out
}

func somePlan(t testing.TB) *Plan {
	t.Helper()
	p, err := NewPlan(t.Context(), newFixed(2, 3), Options{}, time.Unix(1764806400, 0))
	require.NoError(t, err)
	return p
}

var at = time.Date(2026, 11, 22, 12, 0, 0, 5, time.UTC)

func someMarks() [][]Mark {
	return [][]Mark{
		{{Kind: MarkBegin, At: at, Plan: "p", Run: "r"}},
		{{Kind: MarkTry, Item: 0, At: at, Label: Inside}, {Kind: MarkTry, Item: 1, At: at}},
		{{Kind: MarkEnd, Item: 0, At: at, Outcome: OutcomeSent, MessageID: "m", SequenceNumber: "1"}, {Kind: MarkEnd, Item: 1, At: at, Outcome: OutcomeFailed, Refuted: true, Reason: "<\n\x00>"}},
		{{Kind: MarkSettle, Item: 1, At: at, Verdict: VerdictDiscard}},
	}
}

// What was appended is there when the journal is opened again, and for a reader.
func TestFileJournal(t *testing.T) {
	dir, plan := filepath.Join(t.TempDir(), "new"), somePlan(t)
	var want []Mark
	for _, wave := range someMarks() {
		j, err := OpenJournal(dir, plan, "")
		require.NoError(t, err)
		require.NoError(t, j.Append(t.Context(), wave))
		require.NoError(t, j.Append(t.Context(), nil))
		want = append(want, wave...)
		assert.Equal(t, want, marksOf(t, j))
		read, err := ReadJournal(dir, plan)
		require.NoError(t, err)
		assert.Equal(t, want, marksOf(t, read))
		var wrong *JournalError
		require.ErrorAs(t, read.Append(t.Context(), wave), &wrong)
		require.NoError(t, read.Close())
		require.NoError(t, j.Close())
		require.ErrorIs(t, j.Append(t.Context(), wave), os.ErrClosed)
	}
	_, err := ReadJournal(t.TempDir(), plan)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A journal can be read while a run writes it: each time so many whole waves.
func TestReadWhileWritten(t *testing.T) {
	dir, plan := t.TempDir(), somePlan(t)
	j, err := OpenJournal(dir, plan, "")
	require.NoError(t, err)
	defer j.Close()
	var written sync.WaitGroup
	var done atomic.Bool
	written.Go(func() {
		defer done.Store(true)
		for i := range 150 {
			assert.NoError(t, j.Append(t.Context(), slices.Repeat([]Mark{{Kind: MarkTry, Item: i % 6, At: at}}, 40)))
		}
	})
	last, reads := 0, 0
	for !done.Load() {
		r, err := ReadJournal(dir, plan)
		require.NoError(t, err)
		n := len(marksOf(t, r))
		require.Zero(t, n%40)
		require.GreaterOrEqual(t, n, last)
		last, reads = n, reads+1
		require.NoError(t, r.Close())
	}
	written.Wait()
	t.Logf("%d reads", reads)
}

// growing is a file that somebody appends to between any two reads.
type growing struct {
	text  []byte
	shown int
}

func (g *growing) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(g.shown) {
		g.shown = min(len(g.text), g.shown+300)
		return 0, io.EOF
	}
	return copy(p, g.text[at:g.shown]), nil
}

// What is appended after a reader has looked at the size is not read: the rest of a
// line whose first half was read would look like a damage.
func TestReadUpToTheSize(t *testing.T) {
	var whole []byte
	for wave := range uint64(6) {
		var err error
		whole, err = appendLine(whole, place{wave + 1, 0}, &Mark{Kind: MarkTry, Item: 1, At: at})
		require.NoError(t, err)
	}
	one := len(whole) / 6
	for size := range len(whole) {
		good, wave, err := scanJournal("j", &growing{text: whole, shown: size}, int64(size))
		require.NoError(t, err)
		assert.EqualValues(t, size/one, wave)
		assert.EqualValues(t, size/one*one, good)
	}
	_, _, err := scanJournal("j", &growing{text: whole, shown: one + one/2}, int64(len(whole)))
	require.Error(t, err, "without a size")
}

// While a journal is open, no other one over its source can be, whatever its plan.
func TestLock(t *testing.T) {
	dir, plan := t.TempDir(), somePlan(t)
	other, err := NewPlan(t.Context(), newFixed(2, 3), Options{Redeliver: true}, at)
	require.NoError(t, err)
	j, err := OpenJournal(dir, plan, "the first")
	require.NoError(t, err)
	for _, p := range []*Plan{plan, other} {
		var locked *LockedError
		_, err = OpenJournal(dir, p, "the second")
		require.ErrorAs(t, err, &locked)
		assert.Equal(t, "the first", locked.Owner)
		assert.Equal(t, "fixed", locked.Source)
		assert.Contains(t, err.Error(), "the first")
	}
	another := *other
	another.Source = "another"
	k, err := OpenJournal(dir, &another, "")
	require.NoError(t, err, "another source")
	require.NoError(t, k.Close())
	require.NoError(t, j.Close())
	j, err = OpenJournal(dir, other, "the third")
	require.NoError(t, err)
	require.NoError(t, j.Close())
}

// A last write that was cut off anywhere is taken back, and the journal goes on; a
// damage before it is found.
func TestTornJournal(t *testing.T) {
	var whole []byte
	var ends []int // of waves
	var count []int
	n := 0
	for i, wave := range someMarks() {
		for k, m := range wave {
			var err error
			whole, err = appendLine(whole, place{uint64(i + 1), uint64(len(wave) - 1 - k)}, &m)
			require.NoError(t, err)
			n++
		}
		ends, count = append(ends, len(whole)), append(count, n)
	}
	var w *world
	open := func(text []byte) (*FileJournal, error) {
		w = &world{t: t, life: -1, synced: bytes.Clone(text)}
		return recoverJournal("j", w)
	}
	for cut := range whole {
		j, err := open(whole[:cut])
		require.NoError(t, err)
		got := marksOf(t, j)
		lines := 0 // of whole waves
		for i, end := range ends {
			if cut >= end {
				lines = count[i]
			}
		}
		assert.Len(t, got, lines, "cut at %d", cut)
		require.NoError(t, j.Append(t.Context(), []Mark{{Kind: MarkTry, Item: 5, At: at}}))
		require.NoError(t, j.Close())
		j, err = recoverJournal("j", w)
		require.NoError(t, err)
		assert.Len(t, marksOf(t, j), lines+1)
		require.NoError(t, j.Close())
	}
	for i := range whole {
		text := bytes.Clone(whole)
		text[i] ^= 0x10
		j, err := open(text)
		if i < ends[2] { // the last wave proves that the others were whole
			var damaged *JournalError
			require.ErrorAs(t, err, &damaged, "byte %d", i)
			assert.Positive(t, damaged.Line)
			continue
		}
		require.NoError(t, err)
		assert.Len(t, marksOf(t, j), count[2])
		require.NoError(t, j.Close())
	}
	// Zeros, as some file systems leave them.
	j, err := open(append(bytes.Clone(whole), make([]byte, 5000)...))
	require.NoError(t, err)
	assert.Len(t, marksOf(t, j), n)
	require.NoError(t, j.Close())
	// A hole in a wave that was never durable.
	hole := bytes.Clone(whole[:ends[2]])
	clear(hole[ends[1]+3 : ends[1]+20])
	j, err = open(hole)
	require.NoError(t, err)
	assert.Len(t, marksOf(t, j), count[1])
	require.NoError(t, j.Close())
	// A wave that is missing.
	_, err = open(append(bytes.Clone(whole[:ends[0]]), whole[ends[1]:]...))
	require.ErrorContains(t, err, "lines before it are missing")
}

// faulty is a disk whose sync fails once.
type faulty struct {
	disk
	fails error
}

func (f *faulty) Sync() error {
	err := f.fails
	f.fails = nil
	return err
}

// After a sync that failed nothing is appended: a second one says nothing about what
// the first one lost.
func TestNothingAfterAFailedSync(t *testing.T) {
	w := &world{t: t, life: -1}
	f := &faulty{disk: w}
	j, err := recoverJournal("j", f)
	require.NoError(t, err)
	f.fails = errors.New("I/O error")
	require.ErrorContains(t, j.Append(t.Context(), someMarks()[0]), "I/O error")
	require.ErrorContains(t, j.Append(t.Context(), someMarks()[0]), "cannot be appended to")
}

// Marks that make no sense are refused.
func TestHistory(t *testing.T) {
	plan := somePlan(t)
	begin := Mark{Kind: MarkBegin, Plan: plan.ID, Run: "r"}
	for name, marks := range map[string][]Mark{
		"another plan": {{Kind: MarkBegin, Plan: "another"}},
		"no run":       {{Kind: MarkTry}},
		"no such item": {begin, {Kind: MarkEnd, Item: 6, Outcome: OutcomeSent}},
		"negative":     {begin, {Kind: MarkEnd, Item: -1, Outcome: OutcomeSent}},
		"no kind":      {begin, {Item: 1}},
	} {
		w := &world{t: t, life: -1}
		j, err := recoverJournal("j", w)
		require.NoError(t, err)
		for i := range marks {
			require.NoError(t, j.Append(t.Context(), marks[i:i+1]))
		}
		_, err = readHistory(context.Background(), plan, j)
		require.Error(t, err, name)
	}
}

// The report refuses numbers that do not add up.
func TestReportError(t *testing.T) {
	var wrong *ReportError
	require.NoError(t, Report{Planned: 2, Sent: 1, Failed: 1}.Check())
	require.ErrorAs(t, Report{Planned: 2, Sent: 1}.Check(), &wrong)
	assert.Contains(t, wrong.Error(), "= 1; this is a defect")
	require.ErrorAs(t, Report{Planned: 1, Skipped: 1}.Check(), &wrong, "a skipped item without a reason")
}

// All values have a name, and no two the same.
func TestNames(t *testing.T) {
	for kind, v := range map[string]interface {
		String() string
		MarshalText() ([]byte, error)
	}{"Status": Discarded, "Label": Outside, "WindowPolicy": WindowWait, "Action": ActionDrift, "MarkKind": MarkSettle, "Outcome": OutcomeFailed, "Verdict": VerdictDiscard} {
		last := uint8(reflect.ValueOf(v).Uint())
		seen := map[string]bool{}
		for i := range int(last) + 2 {
			at := reflect.New(reflect.TypeOf(v))
			at.Elem().SetUint(uint64(i))
			value := at.Elem().Interface().(interface {
				String() string
				MarshalText() ([]byte, error)
			})
			text, err := value.MarshalText()
			if i > int(last) {
				require.Error(t, err, kind)
				assert.Equal(t, fmt.Sprintf("%s(%d)", kind, i), value.String())
				continue
			}
			require.NoError(t, err)
			assert.Equal(t, value.String(), string(text))
			assert.False(t, seen[string(text)], "%s %s", kind, text)
			seen[string(text)] = true
			back := reflect.New(reflect.TypeOf(v))
			require.NoError(t, back.Interface().(interface{ UnmarshalText([]byte) error }).UnmarshalText(text))
			assert.Equal(t, at.Elem().Interface(), back.Elem().Interface())
			require.Error(t, back.Interface().(interface{ UnmarshalText([]byte) error }).UnmarshalText([]byte("x")))
		}
	}
}

// Whatever a journal holds, it is read without a panic, and what is read can be written
// and read again.
func FuzzJournal(f *testing.F) {
	var whole []byte
	for i, wave := range someMarks() {
		for k, m := range wave {
			whole, _ = appendLine(whole, place{uint64(i + 1), uint64(len(wave) - 1 - k)}, &m)
		}
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Fuzz(func(t *testing.T, text []byte) {
		good, wave, err := scanJournal("j", bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return
		}
		require.LessOrEqual(t, good, int64(len(text)))
		r := newJournalReader("j", bytes.NewReader(text[:good]))
		var again []byte
		var first []Mark
		for {
			m, err := r.next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, "the part that is whole")
			first = append(first, m)
			if again, err = appendLine(again, r.last, &m); err != nil {
				return // a time beyond year 9999, say
			}
		}
		n, last, err := scanJournal("j", bytes.NewReader(again), int64(len(again)))
		require.NoError(t, err)
		require.EqualValues(t, len(again), n)
		require.Equal(t, wave, last)
		require.Equal(t, len(first), strings.Count(string(again), "\n"))
	})
}

// Whatever a plan holds, it is read without a panic, and what is read is written in the
// same bytes.
func FuzzPlan(f *testing.F) {
	p, err := NewPlan(context.Background(), newFixed(2, 3), Options{Filter: Filter{Groups: []string{"g1"}}}, at)
	if err != nil {
		f.Fatal(err)
	}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		f.Fatal(err)
	}
	f.Add(text.Bytes())
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ReadPlan(bytes.NewReader(text))
		if err != nil {
			return
		}
		var again bytes.Buffer
		require.NoError(t, p.Write(&again))
		require.Equal(t, string(text), again.String())
	})
}
