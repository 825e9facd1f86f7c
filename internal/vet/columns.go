package vet

import (
	"bytes"
	"go/token"
	"os"
	"slices"
	"unicode/utf8"
)

// columns converts columns in bytes to columns in characters. The map caches the lines of
// each file, by path. Columns in an unreadable file stay unchanged.
type columns map[string][][]byte

func newColumns() columns { return columns{} }

func (c columns) lines(file string) [][]byte {
	lines, ok := c[file]
	if !ok {
		text, err := os.ReadFile(file) // #nosec G304 -- a file that was just checked
		if err == nil {
			lines = bytes.SplitAfter(text, []byte("\n"))
		}
		c[file] = lines
	}
	return lines
}

func (c columns) column(file string, line, inBytes int) int {
	lines := c.lines(file)
	if line < 1 || line > len(lines) || inBytes < 1 || inBytes > len(lines[line-1])+1 {
		return inBytes
	}
	return utf8.RuneCount(lines[line-1][:inBytes-1]) + 1
}

// position returns the position of the byte at an offset, counted from 0. The end of the
// file also has a position. For an offset outside of the file, the second result is
// false.
func (c columns) position(file string, offset int) (token.Position, bool) {
	for i, line := range c.lines(file) {
		last := i == len(c.lines(file))-1
		if offset < len(line) || last && offset == len(line) {
			return token.Position{Filename: file, Line: i + 1, Column: utf8.RuneCount(line[:offset]) + 1}, offset >= 0
		}
		offset -= len(line)
	}
	return token.Position{}, false
}

// inCharacters returns copies of the findings. Their columns count characters, not bytes.
func (c columns) inCharacters(findings []Finding) []Finding {
	out := slices.Clone(findings)
	for i := range out {
		f := &out[i]
		f.End.Column = c.column(f.Start.Filename, f.End.Line, f.End.Column)
		f.Start.Column = c.column(f.Start.Filename, f.Start.Line, f.Start.Column)
		f.Related = slices.Clone(f.Related)
		for j := range f.Related {
			at := &f.Related[j].Start
			at.Column = c.column(at.Filename, at.Line, at.Column)
		}
	}
	return out
}
