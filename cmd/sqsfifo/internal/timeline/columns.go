package timeline

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// columns stores values of the type `row` in little space, one byte slice for each field.
// The page's script data.js decodes them. Numbers are varints, and mostly differences
// from earlier rows, because a small number needs few bytes.
type columns struct {
	count int
	last  row

	number []byte // row.number minus the number of the previous row, minus 1
	at     []byte // ms after the previous row
	group  []byte // index of the message group in Recorder.groups
	flags  []byte
	// id is only for stored messages. If the deduplication ID is a SHA-256, id has the first
	// 8 bytes of the hash. For another deduplication ID (flagOtherID), it has an index in
	// otherIDs.
	id        []byte
	original  []byte // only for suppressed messages: number of the row minus number of the original
	collision []byte // only with flagCollides: row number minus number of the message with the same key
	errors    []byte // only for refused messages: index of the error's text in errorTexts
	source    []byte // index in sourceList
	line      []byte // line number minus the line number of the source's previous row

	otherIDs, errorTexts index
	sources              map[source]int // index in sourceList
	sourceList           []source
	lines                []int32 // line of the last row of each source
}

// source is the origin of rows: a log file, or a replay of a log file (flag --replay).
// Replay is the number of the replay, or 0 for the log file itself.
type source struct {
	File   int32 `json:"file"`
	Replay int32 `json:"replay"`
}

func newColumns() *columns {
	return &columns{otherIDs: newIndex(), errorTexts: newIndex(), sources: map[source]int{}}
}

// maxIDBytes limits the bytes that the page shows of a deduplication ID other than a
// SHA-256.
const maxIDBytes = 48

func (c *columns) add(m row) {
	if c.count == 0 {
		c.last.at = m.at
	}
	c.number = binary.AppendUvarint(c.number, uint64(m.number-c.last.number-1))
	c.at = binary.AppendUvarint(c.at, uint64(max(m.at-c.last.at, 0)))
	c.group = binary.AppendUvarint(c.group, uint64(m.group))
	c.flags = append(c.flags, m.flags)
	switch {
	case m.flags&flagRefused != 0:
		c.errors = binary.AppendUvarint(c.errors, uint64(c.errorTexts.of(m.errors)))
	case m.flags&flagSuppressed != 0:
		c.original = binary.AppendUvarint(c.original, uint64(m.number-m.original))
	case m.flags&flagOtherID != 0:
		c.id = binary.AppendUvarint(c.id, uint64(c.otherIDs.of(shortened(m.id, maxIDBytes))))
	default:
		var head [8]byte
		// A row made from a recentMessage has no ID. Its 8 bytes are zero.
		_, _ = hex.Decode(head[:], []byte(m.id[:min(len(m.id), 16)]))
		c.id = append(c.id, head[:]...)
	}
	if m.flags&flagCollides != 0 {
		c.collision = binary.AppendUvarint(c.collision, uint64(m.number-m.collision))
	}
	from := source{m.place.File, m.place.Replay}
	s, ok := c.sources[from]
	if !ok {
		s = len(c.sourceList)
		c.sources[from] = s
		c.sourceList = append(c.sourceList, from)
		c.lines = append(c.lines, 0)
	}
	c.source = binary.AppendUvarint(c.source, uint64(s))
	c.line = binary.AppendVarint(c.line, int64(m.place.Line-c.lines[s]))
	c.lines[s] = m.place.Line
	c.last = m
	c.count++
}

// isHash reports whether a deduplication ID has the form in which SQS writes the SHA-256 of
// a body.
func isHash(id string) bool { return len(id) == 64 && strings.Trim(id, "0123456789abcdef") == "" }

func shortened(s string, most int) string {
	for i := range s {
		if i >= most {
			return s[:i] + "…"
		}
	}
	return s
}

// index gives each different text a number.
type index struct {
	numbers map[string]int
	list    []string
}

func newIndex() index { return index{numbers: map[string]int{}, list: []string{}} }

func (x *index) of(s string) int {
	n, ok := x.numbers[s]
	if !ok {
		n = len(x.list)
		x.numbers[s] = n
		x.list = append(x.list, s)
	}
	return n
}

// packed is the type `columns` as JSON, with each byte slice in base64.
type packed struct {
	Count   int      `json:"count"`
	Number  string   `json:"number"`
	At      string   `json:"at"`
	Group   string   `json:"group"`
	Flags   string   `json:"flags"`
	ID      string   `json:"id"`
	Of      string   `json:"of"`
	Other   string   `json:"other"`
	Errors  string   `json:"errors"`
	Source  string   `json:"source"`
	Line    string   `json:"line"`
	Sources []source `json:"sources"`
	Names   []string `json:"names"`
	Texts   []string `json:"texts"`
}

func (c *columns) pack(complete bool) packed {
	b64 := base64.StdEncoding.EncodeToString
	p := packed{
		Count: c.count, At: b64(c.at), Group: b64(c.group), Flags: b64(c.flags), ID: b64(c.id), Of: b64(c.original), Other: b64(c.collision),
		Errors: b64(c.errors), Source: b64(c.source), Line: b64(c.line), Sources: c.sourceList, Names: c.otherIDs.list, Texts: c.errorTexts.list,
	}
	// The rows of a complete page are numbered 1, 2, 3 and so on.
	if !complete {
		p.Number = b64(c.number)
	}
	return p
}
