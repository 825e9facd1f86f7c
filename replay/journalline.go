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
//	checksum wave mark
//
// where the checksum is the CRC-32C of the rest in eight hexadecimal digits, a wave is
// the marks of one Append, counted from 1, and the mark is JSON. The next wave is
// written only when the one before is durable.
const maxJournalLine = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendLine(text []byte, wave uint64, m *Mark) ([]byte, error) {
	mark, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	rest := append(strconv.AppendUint(nil, wave, 10), ' ')
	rest = append(rest, mark...)
	if len(rest) > maxJournalLine-10 {
		return nil, fmt.Errorf("the mark has %d bytes", len(mark))
	}
	text = fmt.Appendf(text, "%08x ", crc32.Checksum(rest, castagnoli))
	return append(append(text, rest...), '\n'), nil
}

// errTorn is a line that is not whole.
var errTorn = errors.New("the line is not whole")

func parseLine(line []byte) (m Mark, wave uint64, err error) {
	var sum [4]byte
	body, ended := bytes.CutSuffix(line, []byte("\n"))
	if !ended || len(body) < 10 || body[8] != ' ' {
		return m, 0, errTorn
	}
	if _, err := hex.Decode(sum[:], body[:8]); err != nil {
		return m, 0, errTorn
	}
	rest := body[9:]
	if uint32(sum[0])<<24|uint32(sum[1])<<16|uint32(sum[2])<<8|uint32(sum[3]) != crc32.Checksum(rest, castagnoli) {
		return m, 0, errTorn
	}
	number, mark, _ := bytes.Cut(rest, []byte(" "))
	if wave, err = strconv.ParseUint(string(number), 10, 64); err != nil {
		return m, 0, fmt.Errorf("the number of a wave: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(mark))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return m, 0, err
	}
	return m, wave, nil
}

// journalReader reads lines. It stops at the first one that is not whole, if that is
// the remains of the last wave.
type journalReader struct {
	path  string
	lines *bufio.Reader
	line  int
	good  int64
	wave  uint64
}

func newJournalReader(path string, r io.Reader) *journalReader {
	return &journalReader{path: path, lines: bufio.NewReaderSize(r, maxJournalLine)}
}

// next returns a mark and its wave, or io.EOF.
func (r *journalReader) next() (Mark, uint64, error) {
	line, err := r.lines.ReadSlice('\n')
	if len(line) == 0 && errors.Is(err, io.EOF) {
		return Mark{}, 0, io.EOF
	}
	r.line++
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return Mark{}, 0, &JournalError{r.path, r.line, "read", err}
	}
	m, wave, err := parseLine(line)
	switch {
	case errors.Is(err, errTorn):
		return Mark{}, 0, r.torn()
	case err != nil:
		return Mark{}, 0, &JournalError{r.path, r.line, "not a mark", err}
	case wave != r.wave && wave != r.wave+1:
		return Mark{}, 0, &JournalError{r.path, r.line, fmt.Sprintf("wave %d after wave %d; lines are missing", wave, r.wave), nil}
	}
	r.wave = wave
	r.good += int64(len(line))
	return m, wave, nil
}

// torn returns io.EOF if the lines after one that is not whole belong to the same
// wave: a crash keeps any parts of a write that was not synced. Lines of a later wave
// prove that this one was durable, and was damaged since.
func (r *journalReader) torn() error {
	at := r.line
	var only uint64
	for {
		line, err := r.lines.ReadSlice('\n')
		if len(line) == 0 && errors.Is(err, io.EOF) {
			return io.EOF
		}
		_, wave, err := parseLine(line)
		if err != nil {
			continue
		}
		if only == 0 {
			only = wave
		}
		if wave != only || wave != r.wave && wave != r.wave+1 {
			return &JournalError{r.path, at, "the line is damaged; the journal cannot say any more what was sent", nil}
		}
	}
}

// scanJournal returns how many bytes are whole, and the last wave in them.
func scanJournal(path string, f io.ReaderAt) (good int64, wave uint64, err error) {
	r := newJournalReader(path, io.NewSectionReader(f, 0, 1<<62))
	for {
		if _, _, err := r.next(); errors.Is(err, io.EOF) {
			return r.good, r.wave, nil
		} else if err != nil {
			return 0, 0, err
		}
	}
}
