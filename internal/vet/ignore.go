package vet

import (
	"go/token"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/directive"
)

// unusedIgnore is the rule name in findings about directives that suppress nothing. The
// analyzer of package fifovet uses the same name.
const unusedIgnore = "unused-ignore"

// ignore is a comment that suppresses SF020 (missing compliance test) on its own line and the
// next line. A comment without a reason does not suppress SF020, and the analyzer of
// package fifovet reports it.
type ignore struct {
	at, end token.Position
	used    bool

	// native is true for //sqsfifo:ignore, and false for a directive of another tool (nolint
	// or lint:ignore). The method `unused` reports only native directives, because the other
	// tool reports its own unused directives.
	native bool
}

type ignores []*ignore

func ignoresOf(code *code) ignores {
	var out ignores
	for _, file := range code.files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if native, ok := ignoresCompliance(c.Text); ok {
					out = append(out, &ignore{at: code.fset.Position(c.Pos()), end: code.fset.Position(c.End()), native: native})
				}
			}
		}
	}
	return out
}

// ignoresCompliance reports in the result `ok` whether a comment suppresses SF020 (missing
// compliance test). For such a comment, the result `native` is true for //sqsfifo:ignore, and
// false for nolint and lint:ignore.
func ignoresCompliance(comment string) (native, ok bool) {
	d, _ := directive.Parse(comment) // the analyzer reports the parse errors
	if d == nil || !d.Covers(noComplianceTest) {
		return false, false
	}
	return !d.Foreign, true
}

// cover reports whether l has an ignore directive on the line of a position, or on the
// line above it. It marks every such directive as used.
func (l ignores) cover(at token.Position) bool {
	covered := false
	for _, i := range l {
		if i.at.Filename == at.Filename && (i.at.Line == at.Line || i.at.Line == at.Line-1) {
			i.used, covered = true, true
		}
	}
	return covered
}

func (l ignores) unused() []Finding {
	var out []Finding
	for _, i := range l {
		if i.native && !i.used {
			out = append(out, Finding{
				Rule: unusedIgnore, Severity: SeverityOf(unusedIgnore), Start: i.at, End: i.end,
				Message: "the directive suppresses nothing: SF020 does not report here; remove it",
			})
		}
	}
	return out
}
