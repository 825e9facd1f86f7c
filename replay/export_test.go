package replay

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// The names in this file are for the tests in package replay_test.
type JournalEntry = journalEntry

const (
	EntryBegin = entryBegin
	EntryTry   = entryTry
	EntryEnd   = entryEnd
)

// JournalPath returns the path of a plan's journal.
func JournalPath(dir string, plan *Plan) string { return journalPath(dir, plan) }

// MemoryJournal is a journal on an in-memory disk.
type MemoryJournal struct {
	*Journal
	disk *memoryDisk
}

// NewMemoryJournal returns a journal with the given entries, one commit per entry.
func NewMemoryJournal(entries ...JournalEntry) *MemoryJournal {
	d := new(memoryDisk)
	j, err := recoverJournal("memory", d)
	if err != nil {
		panic(err)
	}
	for _, m := range entries {
		if err := j.append(context.Background(), []journalEntry{m}); err != nil {
			panic(err)
		}
	}
	return &MemoryJournal{j, d}
}

// All returns the durable entries. It may be called during a run.
func (m *MemoryJournal) All() (out []JournalEntry) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	r := newJournalReader("memory", io.NewSectionReader(unlocked{m.disk}, 0, int64(len(m.disk.text))))
	for {
		entry, err := r.next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			panic(err)
		}
		out = append(out, entry)
	}
}

// Fail makes the following writes fail with err before they write a byte. A nil err repairs
// the journal.
func (m *MemoryJournal) Fail(err error) {
	m.disk.mu.Lock()
	defer m.disk.mu.Unlock()
	m.disk.fails = err
	if err == nil {
		m.err = nil
	}
}

type memoryDisk struct {
	mu    sync.Mutex
	text  []byte
	fails error
}

type unlocked struct{ *memoryDisk }

func (u unlocked) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(u.text)) {
		return 0, io.EOF
	}
	n := copy(p, u.text[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (d *memoryDisk) ReadAt(p []byte, at int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return unlocked{d}.ReadAt(p, at)
}

func (d *memoryDisk) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fails != nil {
		return 0, d.fails
	}
	d.text = append(d.text, p...)
	return len(p), nil
}

func (d *memoryDisk) Truncate(size int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.text = d.text[:size]
	return nil
}

func (d *memoryDisk) Sync() error  { return nil }
func (d *memoryDisk) Close() error { return nil }

// Label exports label.
func (s Sent) Label(now time.Time) Label { return s.label(now) }
