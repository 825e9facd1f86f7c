package replay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

func entriesOf(t testing.TB, j *Journal) (out []journalEntry) {
	t.Helper()
	for m, err := range j.entries(t.Context()) {
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

func someEntries() [][]journalEntry {
	return [][]journalEntry{
		{{Kind: entryBegin, At: at, Plan: "p", Run: "r"}},
		{{Kind: entryTry, Item: 0, At: at, Label: LabelInside}, {Kind: entryTry, Item: 1, At: at}},
		{{Kind: entryEnd, Item: 0, At: at, Outcome: OutcomeSent, MessageID: "m", SequenceNumber: "1"}, {Kind: entryEnd, Item: 1, At: at, Outcome: OutcomeFailed, Refuted: true, Reason: "<\n\x00>"}},
		{{Kind: entryResolve, Item: 1, At: at, Resolution: idempotency.ResolutionGiveUp}},
	}
}

// Appended entries are still in the journal after it is closed and opened again, and
// ReadJournal finds them.
func TestFileJournal(t *testing.T) {
	dir, plan := filepath.Join(t.TempDir(), "new"), somePlan(t)
	var want []journalEntry
	for _, commit := range someEntries() {
		j, err := OpenJournal(dir, plan, "")
		require.NoError(t, err)
		require.NoError(t, j.append(t.Context(), commit))
		require.NoError(t, j.append(t.Context(), nil))
		want = append(want, commit...)
		assert.Equal(t, want, entriesOf(t, j))
		read, err := ReadJournal(dir, plan)
		require.NoError(t, err)
		assert.Equal(t, want, entriesOf(t, read))
		var wrong *FileError
		require.ErrorAs(t, read.append(t.Context(), commit), &wrong)
		require.NoError(t, read.Close())
		require.NoError(t, j.Close())
		require.ErrorIs(t, j.append(t.Context(), commit), os.ErrClosed)
	}
	_, err := ReadJournal(t.TempDir(), plan)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A journal can be read during a run. Each read returns only complete commits.
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
			assert.NoError(t, j.append(t.Context(), slices.Repeat([]journalEntry{{Kind: entryTry, Item: i % 6, At: at}}, 40)))
		}
	})
	last, reads := 0, 0
	for !done.Load() {
		r, err := ReadJournal(dir, plan)
		require.NoError(t, err)
		n := len(entriesOf(t, r))
		require.Zero(t, n%40)
		require.GreaterOrEqual(t, n, last)
		last, reads = n, reads+1
		require.NoError(t, r.Close())
	}
	written.Wait()
	t.Logf("%d reads", reads)
}

// growing is a file that grows between any two reads.
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

// Another process appends lines while scanJournal reads. scanJournal stops at the given
// size, because a line read in two parts would look like damage.
func TestReadUpToTheSize(t *testing.T) {
	var whole []byte
	for commit := range uint64(6) {
		var err error
		whole, err = appendLine(whole, linePlace{commit + 1, 0}, &journalEntry{Kind: entryTry, Item: 1, At: at})
		require.NoError(t, err)
	}
	one := len(whole) / 6
	for size := range len(whole) {
		good, commit, err := scanJournal("j", &growing{text: whole, shown: size}, int64(size))
		require.NoError(t, err)
		assert.EqualValues(t, size/one, commit)
		assert.EqualValues(t, size/one*one, good)
	}
	_, _, err := scanJournal("j", &growing{text: whole, shown: one + one/2}, int64(len(whole)))
	require.Error(t, err, "without a size")
}

// While a journal is open, OpenJournal refuses to open another one for the same source, even
// for another plan.
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

// If a crash cuts off the last write at any byte, the incomplete write is removed and
// the journal continues. Damage in earlier writes is detected.
func TestTornJournal(t *testing.T) {
	var whole []byte
	var ends []int // offset at which each commit ends
	var count []int
	n := 0
	for i, commit := range someEntries() {
		for k, m := range commit {
			var err error
			whole, err = appendLine(whole, linePlace{uint64(i + 1), uint64(len(commit) - 1 - k)}, &m)
			require.NoError(t, err)
			n++
		}
		ends, count = append(ends, len(whole)), append(count, n)
	}
	var w *world
	open := func(text []byte) (*Journal, error) {
		w = &world{t: t, life: -1, synced: bytes.Clone(text)}
		return recoverJournal("j", w)
	}
	for cut := range whole {
		j, err := open(whole[:cut])
		require.NoError(t, err)
		got := entriesOf(t, j)
		lines := 0 // lines of complete commits
		for i, end := range ends {
			if cut >= end {
				lines = count[i]
			}
		}
		assert.Len(t, got, lines, "cut at %d", cut)
		require.NoError(t, j.append(t.Context(), []journalEntry{{Kind: entryTry, Item: 5, At: at}}))
		require.NoError(t, j.Close())
		j, err = recoverJournal("j", w)
		require.NoError(t, err)
		assert.Len(t, entriesOf(t, j), lines+1)
		require.NoError(t, j.Close())
	}
	for i := range whole {
		text := bytes.Clone(whole)
		text[i] ^= 0x10
		j, err := open(text)
		// a complete commit follows the damaged line, so a crash cannot have caused the damage
		if i < ends[2] {
			var damaged *FileError
			require.ErrorAs(t, err, &damaged, "byte %d", i)
			assert.Positive(t, damaged.Line)
			continue
		}
		require.NoError(t, err)
		assert.Len(t, entriesOf(t, j), count[2])
		require.NoError(t, j.Close())
	}
	// After a crash, some file systems leave zeros at the end of a file.
	j, err := open(append(bytes.Clone(whole), make([]byte, 5000)...))
	require.NoError(t, err)
	assert.Len(t, entriesOf(t, j), n)
	require.NoError(t, j.Close())
	// A crash before the sync of the last commit may leave zeros within the commit. The
	// journal drops this commit.
	hole := bytes.Clone(whole[:ends[2]])
	clear(hole[ends[1]+3 : ends[1]+20])
	j, err = open(hole)
	require.NoError(t, err)
	assert.Len(t, entriesOf(t, j), count[1])
	require.NoError(t, j.Close())
	// a commit in the middle is missing, so the journal is damaged
	_, err = open(append(bytes.Clone(whole[:ends[0]]), whole[ends[1]:]...))
	require.ErrorContains(t, err, "lines before it are missing")
}

// faulty is a disk on which one sync fails.
type faulty struct {
	disk
	fails error
}

func (f *faulty) Sync() error {
	err := f.fails
	f.fails = nil
	return err
}

// After a failed sync the journal accepts no more entries: a second sync could succeed
// although data are lost.
func TestNothingAfterAFailedSync(t *testing.T) {
	w := &world{t: t, life: -1}
	f := &faulty{disk: w}
	j, err := recoverJournal("j", f)
	require.NoError(t, err)
	f.fails = errors.New("I/O error")
	require.ErrorContains(t, j.append(t.Context(), someEntries()[0]), "I/O error")
	require.ErrorContains(t, j.append(t.Context(), someEntries()[0]), "cannot be appended to")
}

// The journal is refused if an entry does not fit the plan, comes before any run has begun,
// or has an unknown kind.
func TestHistory(t *testing.T) {
	plan := somePlan(t)
	begin := journalEntry{Kind: entryBegin, Plan: plan.ID, Run: "r"}
	for name, entries := range map[string][]journalEntry{
		"another plan": {{Kind: entryBegin, Plan: "another"}},
		"no run":       {{Kind: entryTry}},
		"no such item": {begin, {Kind: entryEnd, Item: 6, Outcome: OutcomeSent}},
		"negative":     {begin, {Kind: entryEnd, Item: -1, Outcome: OutcomeSent}},
		"no kind":      {begin, {Item: 1}},
	} {
		w := &world{t: t, life: -1}
		j, err := recoverJournal("j", w)
		require.NoError(t, err)
		for i := range entries {
			require.NoError(t, j.append(t.Context(), entries[i:i+1]))
		}
		_, err = readHistory(context.Background(), plan, j)
		require.Error(t, err, name)
	}
}

func TestReportError(t *testing.T) {
	var wrong *ReportError
	require.NoError(t, Report{Planned: 2, Sent: 1, Failed: 1}.check())
	require.ErrorAs(t, Report{Planned: 2, Sent: 1}.check(), &wrong)
	assert.Contains(t, wrong.Error(), "= 1; this is a defect")
	require.ErrorAs(t, Report{Planned: 1, Skipped: 1}.check(), &wrong, "a skipped item without a reason")
}

func TestUnknownWords(t *testing.T) {
	good := journalEntry{Kind: entryTry, Outcome: OutcomeSent, Label: LabelInside, Resolution: idempotency.ResolutionNoEffect}
	require.NoError(t, good.check())
	for _, change := range []func(*journalEntry){
		func(m *journalEntry) { m.Kind = "x" },
		func(m *journalEntry) { m.Outcome = "x" },
		func(m *journalEntry) { m.Label = "x" },
		func(m *journalEntry) { m.Resolution = "x" },
	} {
		m := good
		change(&m)
		require.ErrorContains(t, m.check(), `"x"`, "the error names the word")
		line, err := appendLine(nil, linePlace{1, 0}, &m)
		require.NoError(t, err)
		_, _, err = parseLine(line)
		require.ErrorContains(t, err, `"x"`)
	}
	item := PlannedItem{Status: StatusPending, Label: LabelNew, Action: ActionSend}
	require.NoError(t, item.checkWords())
	for _, change := range []func(*PlannedItem){
		func(i *PlannedItem) { i.Status = "x" },
		func(i *PlannedItem) { i.Label = "x" },
		func(i *PlannedItem) { i.Action = "x" },
	} {
		i := item
		change(&i)
		require.ErrorContains(t, i.checkWords(), `"x"`)
	}
	_, err := NewPlan(t.Context(), newFixed(1, 1), Options{Filter: Filter{Statuses: []Status{"x"}}}, at)
	require.ErrorContains(t, err, "Options.Filter.Statuses[0]")
}

// Reading any bytes as a journal does not panic. An entry that was read and written again
// is unchanged.
func FuzzJournal(f *testing.F) {
	var whole []byte
	for i, commit := range someEntries() {
		for k, m := range commit {
			whole, _ = appendLine(whole, linePlace{uint64(i + 1), uint64(len(commit) - 1 - k)}, &m)
		}
	}
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Fuzz(func(t *testing.T, text []byte) {
		good, commit, err := scanJournal("j", bytes.NewReader(text), int64(len(text)))
		if err != nil {
			return
		}
		require.LessOrEqual(t, good, int64(len(text)))
		r := newJournalReader("j", bytes.NewReader(text[:good]))
		var again []byte
		var first []journalEntry
		for {
			m, err := r.next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, "the part that is whole")
			first = append(first, m)
			if again, err = appendLine(again, r.last, &m); err != nil {
				return // for example a year above 9999, which cannot be written
			}
		}
		n, last, err := scanJournal("j", bytes.NewReader(again), int64(len(again)))
		require.NoError(t, err)
		require.EqualValues(t, len(again), n)
		require.Equal(t, commit, last)
		require.Equal(t, len(first), strings.Count(string(again), "\n"))
	})
}

// Reading any bytes as a plan does not panic. A parsed plan is written as the same bytes.
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
