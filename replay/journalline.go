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

// A line is
//
//	checksum wave left mark
//
// where the checksum is the CRC-32C of the rest in eight hexadecimal digits, a wave is
// the marks of one Append, counted from 1, left is how many of them follow, and the
// mark is JSON. The next wave is written only when the one before is durable.
const maxJournalLine = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// place is that of a line.
type place struct{ wave, left uint64 }

// follows reports whether a line at q may come after one at p.
func (q place) follows(p place) bool {
	if p.left > 0 {
		return q == place{p.wave, p.left - 1}
	}
	return q.wave == p.wave+1
}

func appendLine(text []byte, at place, m *Mark) ([]byte, error) {
	mark, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	rest := append(strconv.AppendUint(nil, at.wave, 10), ' ')
	rest = append(strconv.AppendUint(rest, at.left, 10), ' ')
	rest = append(rest, mark...)
	if len(rest) > maxJournalLine-10 {
		return nil, fmt.Errorf("the mark has %d bytes", len(mark))
	}
	text = fmt.Appendf(text, "%08x ", crc32.Checksum(rest, castagnoli))
	return append(append(text, rest...), '\n'), nil
}

// errTorn is a line that is not whole.
var errTorn = errors.New("the line is not whole")

func parseLine(line []byte) (m Mark, at place, err error) {
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
	wave, rest, _ := bytes.Cut(rest, []byte(" "))
	left, mark, _ := bytes.Cut(rest, []byte(" "))
	for _, n := range []struct {
		text []byte
		to   *uint64
	}{{wave, &at.wave}, {left, &at.left}} {
		if *n.to, err = strconv.ParseUint(string(n.text), 10, 64); err != nil {
			return m, at, err
		}
	}
	dec := json.NewDecoder(bytes.NewReader(mark))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, at, err
	}
	return m, at, nil
}

// journalReader reads lines. It stops at the first one that is not whole, if that is
// the remains of the last wave.
type journalReader struct {
	path  string
	lines *bufio.Reader
	line  int
	last  place
	bytes int64
	whole int64 // bytes of whole waves
}

func newJournalReader(path string, r io.Reader) *journalReader {
	return &journalReader{path: path, lines: bufio.NewReaderSize(r, maxJournalLine)}
}

// next returns a mark, or io.EOF.
func (r *journalReader) next() (Mark, error) {
	line, err := r.read()
	if err != nil {
		return Mark{}, err
	}
	m, at, err := parseLine(line)
	switch {
	case errors.Is(err, errTorn):
		return Mark{}, r.torn(line)
	case err != nil:
		return Mark{}, &JournalError{r.path, r.line, "not a mark", err}
	case !at.follows(r.last):
		return Mark{}, &JournalError{r.path, r.line, "lines before it are missing", nil}
	}
	r.last = at
	if r.bytes += int64(len(line)); at.left == 0 {
		r.whole = r.bytes
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
		return nil, &JournalError{r.path, r.line, "read", err}
	}
	return line, nil
}

// torn returns io.EOF if the lines after one that is not whole may belong to the same
// wave: a crash keeps any parts of a write that was not synced. A line of a later wave
// proves that this one was durable, and was damaged since.
func (r *journalReader) torn(line []byte) error {
	at, this := r.line, r.last.wave
	if r.last.left == 0 {
		this++
	}
	for {
		if wave := waveWithin(line); wave > 0 && wave != this {
			return &JournalError{r.path, at, "the line is damaged; the journal cannot say any more what was sent", nil}
		}
		var err error
		if line, err = r.read(); err != nil {
			return err
		}
	}
}

// waveWithin returns the wave of a line, or of one that the line ends in, because the
// end of the line before was damaged; 0 if there is none.
func waveWithin(line []byte) uint64 {
	for i := 0; i+9 < len(line); i++ {
		if line[i+8] == ' ' {
			if _, at, err := parseLine(line[i:]); err == nil {
				return at.wave
			}
		}
	}
	return 0
}

// scanJournal returns how many of the first bytes are whole waves, and the last one.
func scanJournal(path string, f io.ReaderAt, size int64) (whole int64, wave uint64, err error) {
	r := newJournalReader(path, io.NewSectionReader(f, 0, size))
	for {
		_, err := r.next()
		switch {
		case err == nil && r.last.left == 0:
			wave = r.last.wave
		case errors.Is(err, io.EOF):
			return r.whole, wave, nil
		case err != nil:
			return 0, 0, err
		}
	}
}
