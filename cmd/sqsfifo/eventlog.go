package main

import (
	"container/heap"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"
)

// maxSortedInMemory is the largest number of lines that openLog sorts in memory. A longer
// log must already be sorted by time.
const maxSortedInMemory = 50_000

// eventLog yields the messages of all files in time order. Each replay (flag --replay) adds
// a copy of all messages, with later times. The memory use does not grow with the log.
type eventLog struct {
	prepare preparer
	files   []string
	sources sources
	after   time.Time
	closers []io.Closer
}

// openLog opens the files; no file name, or "-", means standard input. Each duration d in
// `replays` adds a copy of every message, with a time d later. If the files together have
// more than maxSortedInMemory lines, each file must be sorted by time.
func openLog(prepare preparer, files []string, stdin io.Reader, replays []time.Duration) (_ *eventLog, err error) {
	if len(files) == 0 {
		files = []string{"-"}
	}
	l := &eventLog{prepare: prepare, files: slices.Clone(files)}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	var begun []*lineReader
	var prefixes [][]message
	total, complete := 0, true
	for i, name := range files {
		r, err := l.open(i, stdin)
		if err != nil {
			return nil, err
		}
		var prefix []message
		for {
			m, err := r.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
			prefix = append(prefix, m)
			if total++; total > maxSortedInMemory {
				complete = false
				break
			}
		}
		if !complete && name == "-" && len(replays) > 0 {
			return nil, fmt.Errorf("standard input has more than %d lines, which cannot be replayed; put them into a file", maxSortedInMemory)
		}
		begun, prefixes = append(begun, r), append(prefixes, prefix)
	}
	if complete {
		l.add(&source{prefix: withReplays(slices.Concat(prefixes...), replays)})
		return l, l.begin()
	}
	for i, r := range begun {
		l.add(&source{prefix: prefixes[i], rest: r})
		for n, d := range replays {
			again, err := l.open(i, stdin)
			if err != nil {
				return nil, err
			}
			l.add(&source{rest: again, shift: d, replay: int32(n + 1)})
		}
	}
	return l, l.begin()
}

func (l *eventLog) open(i int, stdin io.Reader) (*lineReader, error) {
	if l.files[i] == "-" {
		l.files[i] = "standard input"
		return newLineReader(l.files[i], int32(i), stdin, l.prepare), nil
	}
	f, err := os.Open(l.files[i])
	if err != nil {
		return nil, err
	}
	l.closers = append(l.closers, f)
	return newLineReader(l.files[i], int32(i), f, l.prepare), nil
}

func (l *eventLog) close() {
	for _, s := range l.sources {
		s.stop()
	}
	for _, c := range l.closers {
		c.Close()
	}
}

func (l *eventLog) add(s *source) {
	s.order = len(l.sources)
	l.sources = append(l.sources, s)
}

// begin reads the first message of each source, and drops sources without messages.
func (l *eventLog) begin() error {
	var begun sources
	for _, s := range l.sources {
		switch err := s.advance(); {
		case err == nil:
			begun = append(begun, s)
		case !errors.Is(err, io.EOF):
			return err
		}
	}
	l.sources = begun
	heap.Init(&l.sources)
	return nil
}

// next returns the next message of all sources by time, or io.EOF after the last one.
func (l *eventLog) next() (message, error) {
	if len(l.sources) == 0 {
		return message{}, io.EOF
	}
	s := l.sources[0]
	m := s.head
	if m.At.Before(l.after) {
		return m, fmt.Errorf("%s: it is earlier than the line before it; a log of more than %d lines has to be sorted by time", l.name(m.place), maxSortedInMemory)
	}
	l.after = m.At
	err := s.advance()
	switch {
	case errors.Is(err, io.EOF):
		heap.Pop(&l.sources)
	case err != nil:
		return m, err
	default:
		heap.Fix(&l.sources, 0)
	}
	return m, nil
}

// name returns the place p in the form FILE:LINE, for people to read. For a replayed
// message, it adds the replay's number.
func (l *eventLog) name(p place) string {
	text := fmt.Sprintf("%s:%d", l.files[p.file], p.line)
	if p.replay > 0 {
		text += fmt.Sprintf(" (replay %d)", p.replay)
	}
	return text
}

// source yields the messages of a file, or copies of the messages for a replay. openLog has
// already read the messages in prefix. A goroutine reads the remaining messages from rest,
// some batches in advance.
type source struct {
	prefix []message
	rest   *lineReader
	shift  time.Duration
	replay int32
	// If two sources have messages of the same time, the source with the lower order
	// comes first.
	order int

	batches chan batch
	spare   chan batch // used batches, for parse to fill again
	done    chan struct{}
	batch   batch
	read    int // number of messages taken from the batch
	head    message
}

type batch struct {
	messages []message
	err      error // error of the read after the last of these messages, such as io.EOF; or nil
}

const (
	batchLines   = 512
	batchesAhead = 4
)

// advance reads the next message into head.
func (s *source) advance() error {
	if len(s.prefix) > 0 {
		s.head, s.prefix = s.prefix[0], s.prefix[1:]
		return nil
	}
	if s.rest == nil {
		return io.EOF
	}
	if s.batches == nil {
		s.batches, s.spare, s.done = make(chan batch, batchesAhead), make(chan batch, batchesAhead), make(chan struct{})
		go s.parse()
	}
	for s.read == len(s.batch.messages) {
		if s.batch.err != nil {
			return s.batch.err
		}
		select {
		case s.spare <- s.batch:
		default:
		}
		s.batch, s.read = <-s.batches, 0
	}
	s.head = s.batch.messages[s.read]
	s.read++
	s.head.At = s.head.At.Add(s.shift)
	s.head.replay = s.replay
	return nil
}

func (s *source) parse() {
	for {
		var b batch
		select {
		case b = <-s.spare:
		default:
		}
		b.messages = slices.Grow(b.messages[:0], batchLines)
		for len(b.messages) < batchLines && b.err == nil {
			m, err := s.rest.next()
			if b.err = err; err == nil {
				b.messages = append(b.messages, m)
			}
		}
		select {
		case s.batches <- b:
		case <-s.done:
			return
		}
		if b.err != nil {
			return
		}
	}
}

func (s *source) stop() {
	if s.done != nil {
		close(s.done)
	}
}

// sources implements heap.Interface: the first source has the earliest message.
type sources []*source

func (s sources) Len() int { return len(s) }

func (s sources) Less(i, j int) bool {
	if c := s[i].head.At.Compare(s[j].head.At); c != 0 {
		return c < 0
	}
	return s[i].order < s[j].order
}

func (s sources) Swap(i, j int) { s[i], s[j] = s[j], s[i] }
func (s *sources) Push(x any)   { *s = append(*s, x.(*source)) }

func (s *sources) Pop() any {
	last := len(*s) - 1
	x := (*s)[last]
	*s = (*s)[:last]
	return x
}

// withReplays returns the log and its replays, sorted by time.
func withReplays(log []message, after []time.Duration) []message {
	out := slices.Clone(log)
	for n, d := range after {
		for _, m := range log {
			m.At = m.At.Add(d)
			m.replay = int32(n + 1)
			out = append(out, m)
		}
	}
	slices.SortStableFunc(out, func(a, b message) int { return a.At.Compare(b.At) })
	return out
}
