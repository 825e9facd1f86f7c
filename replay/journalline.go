package replay

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
)

// A line of the journal has the form
//
//	checksum commit following entry
//
// with these fields:
//
//   - checksum: the CRC-32C of the rest of the line in eight hexadecimal digits
//   - commit: the number of the commit (one write of one or more lines), from 1
//   - following: the number of later lines in the same commit
//   - entry: a [journalEntry] in JSON
//
// A commit is written only after the previous commit is durable.
const maxJournalLine = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// linePlace is the place of a line in the journal: the number of the line's commit, and how
// many lines of this commit follow. A commit is complete at its line with following = 0.
type linePlace struct{ commit, following uint64 }

// follows reports whether a line at q can come directly after a line at p.
func (q linePlace) follows(p linePlace) bool {
	if p.following > 0 {
		return q == linePlace{p.commit, p.following - 1}
	}
	return q.commit == p.commit+1
}

func appendLine(text []byte, at linePlace, m *journalEntry) ([]byte, error) {
	encoded, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	rest := append(strconv.AppendUint(nil, at.commit, 10), ' ')
	rest = append(strconv.AppendUint(rest, at.following, 10), ' ')
	rest = append(rest, encoded...)
	if len(rest) > maxJournalLine-10 {
		return nil, fmt.Errorf("the mark has %d bytes", len(encoded))
	}
	text = fmt.Appendf(text, "%08x ", crc32.Checksum(rest, castagnoli))
	return append(append(text, rest...), '\n'), nil
}

var errTorn = errors.New("the line is not whole")

func parseLine(line []byte) (m journalEntry, at linePlace, err error) {
	var sum [4]byte
	body, ended := bytes.CutSuffix(line, []byte("\n"))
	if !ended || len(body) < 10 || body[8] != ' ' {
		return m, at, errTorn
	}
	if _, err := hex.Decode(sum[:], body[:8]); err != nil {
		return m, at, errTorn
	}
	rest := body[9:]
	if uint32(sum[0])<<24|uint32(sum[1])<<16|uint32(sum[2])<<8|uint32(sum[3]) != crc32.Checksum(rest, castagnoli) {
		return m, at, errTorn
	}
	commit, rest, _ := bytes.Cut(rest, []byte(" "))
	left, encoded, _ := bytes.Cut(rest, []byte(" "))
	for _, n := range []struct {
		text []byte
		to   *uint64
	}{{commit, &at.commit}, {left, &at.following}} {
		if *n.to, err = strconv.ParseUint(string(n.text), 10, 64); err != nil {
			return m, at, err
		}
	}
	dec := json.NewDecoder(bytes.NewReader(encoded))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, at, err
	}
	return m, at, m.check()
}

// journalReader reads the lines of a journal. After a crash, the last commit may be
// incomplete (see endOfJournal).
type journalReader struct {
	path          string
	lines         *bufio.Reader
	line          int
	last          linePlace
	bytes         int64
	completeBytes int64 // length of the complete commits in bytes
}

func newJournalReader(path string, r io.Reader) *journalReader {
	return &journalReader{path: path, lines: bufio.NewReaderSize(r, maxJournalLine)}
}

// next returns the next entry of the journal, or io.EOF.
func (r *journalReader) next() (journalEntry, error) {
	line, err := r.read()
	if err != nil {
		return journalEntry{}, err
	}
	m, at, err := parseLine(line)
	switch {
	case errors.Is(err, errTorn):
		return journalEntry{}, r.endOfJournal(line)
	case err != nil:
		return journalEntry{}, &FileError{r.path, r.line, "not an entry", err}
	case !at.follows(r.last):
		return journalEntry{}, &FileError{r.path, r.line, "lines before it are missing", nil}
	}
	r.last = at
	if r.bytes += int64(len(line)); at.following == 0 {
		r.completeBytes = r.bytes
	}
	return m, nil
}

func (r *journalReader) read() ([]byte, error) {
	line, err := r.lines.ReadSlice('\n')
	if len(line) == 0 && errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	r.line++
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, &FileError{r.path, r.line, "read", err}
	}
	return line, nil
}

// endOfJournal finds the cause of an incomplete line. A crash can damage only the last
// commit. If no other commit follows, endOfJournal assumes a crash and returns io.EOF: the
// journal ends before the line. Otherwise it returns an error, because the file is damaged.
func (r *journalReader) endOfJournal(line []byte) error {
	at, this := r.line, r.last.commit
	if r.last.following == 0 {
		this++
	}
	for {
		if commit := commitWithin(line); commit > 0 && commit != this {
			return &FileError{r.path, at, "the line is damaged; the journal cannot say any more what was sent", nil}
		}
		var err error
		if line, err = r.read(); err != nil {
			return err
		}
	}
}

// commitWithin returns the first commit number in a line, or 0. It searches the whole
// line, because a damaged line break joins two lines.
func commitWithin(line []byte) uint64 {
	for i := 0; i+9 < len(line); i++ {
		if line[i+8] == ' ' {
			if _, at, err := parseLine(line[i:]); err == nil {
				return at.commit
			}
		}
	}
	return 0
}

// scanJournal returns the length of the complete commits in bytes, and the number of the
// last commit.
func scanJournal(path string, f io.ReaderAt, size int64) (whole int64, commit uint64, err error) {
	r := newJournalReader(path, io.NewSectionReader(f, 0, size))
	for {
		_, err := r.next()
		switch {
		case err == nil && r.last.following == 0:
			commit = r.last.commit
		case errors.Is(err, io.EOF):
			return r.completeBytes, commit, nil
		case err != nil:
			return 0, 0, err
		}
	}
}
