package timeline

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// columns stores the rows of the page, one byte slice for each field of row, for the page's
// data.js. Numbers are varints, mostly short because they are differences from earlier
// rows.
type columns struct {
	count int
	last  row

	number []byte // row.number minus the number of the previous row, minus 1
	at     []byte // ms after the previous row
	group  []byte // index of the message group in Recorder.groups
	flags  []byte
	// id has values only for stored messages: the first 8 bytes of a SHA-256 deduplication
	// ID, or the index of another ID's text in the field names.
	id        []byte
	original  []byte // only for suppressed messages: row.number minus the number of the original
	collision []byte // only for rows with flagCollides: row.number minus the number of the other message
	errors    []byte // only for refused messages: index of the error's text in texts
	source    []byte // for each row, an index in sourceList: the file or replay with the row's message
	line      []byte // for each row, its line number minus that of the previous row from the same source

	names, texts index
	sources      map[Place]int // index of each source in sourceList; Line is 0 in the keys, because a source is a whole file
	sourceList   []source
	lines        []int32 // line of the last row of each source
}

// source is the origin of rows: a log file (Replay is 0), or a replay of this file
// (Replay is 1 for the first replay).
type source struct {
	File   int32 `json:"file"`
	Replay int32 `json:"replay"`
}

func newColumns() *columns {
	return &columns{names: newIndex(), texts: newIndex(), sources: map[Place]int{}}
}

// namedMost limits the bytes that the page shows of a deduplication ID. The limit is only
// for IDs that are not hashes.
const namedMost = 48

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
		c.errors = binary.AppendUvarint(c.errors, uint64(c.texts.of(m.errors)))
	case m.flags&flagSuppressed != 0:
		c.original = binary.AppendUvarint(c.original, uint64(m.number-m.original))
	case m.flags&flagNamed != 0:
		c.id = binary.AppendUvarint(c.id, uint64(c.names.of(shortened(m.id, namedMost))))
	default:
		var head [8]byte
		// The row of a related message may have no ID (m.id is ""); the 8 bytes are then
		// zero.
		_, _ = hex.Decode(head[:], []byte(m.id[:min(len(m.id), 16)]))
		c.id = append(c.id, head[:]...)
	}
	if m.flags&flagCollides != 0 {
		c.collision = binary.AppendUvarint(c.collision, uint64(m.number-m.collision))
	}
	from := Place{File: m.place.File, Replay: m.place.Replay}
	s, ok := c.sources[from]
	if !ok {
		s = len(c.sourceList)
		c.sources[from] = s
		c.sourceList = append(c.sourceList, source{from.File, from.Replay})
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

// packed is the form of columns in the page's data.
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
		Errors: b64(c.errors), Source: b64(c.source), Line: b64(c.line), Sources: c.sourceList, Names: c.names.list, Texts: c.texts.list,
	}
	// The rows of a complete page have the numbers 1, 2, 3 and so on, so the page does
	// not need the numbers.
	if !complete {
		p.Number = b64(c.number)
	}
	return p
}
