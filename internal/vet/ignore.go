package vet

import (
	"go/token"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/directive"
)

// unusedIgnore is the name of findings about directives without an effect. The analyzer
// uses the same name.
const unusedIgnore = "unused-ignore"

// ignore is a comment that suppresses SF020 on its own line and the next line. The
// analyzer of package fifovet reads the same comments for its rules. The analyzer also
// reports each directive without a reason, for SF020 too; such a directive does not
// suppress SF020.
type ignore struct {
	at, end token.Position
	used    bool

	// ours is false for directives of other tools. These tools report their unused
	// directives themselves.
	ours bool
}

type ignores []*ignore

func ignoresOf(code *code) ignores {
	var out ignores
	for _, file := range code.files {
		for _, group := range file.Comments {
			for _, c := range group.List {
				if ours, ok := ignoresCompliance(c.Text); ok {
					out = append(out, &ignore{at: code.fset.Position(c.Pos()), end: code.fset.Position(c.End()), ours: ours})
				}
			}
		}
	}
	return out
}

// ignoresCompliance reports whether a comment suppresses SF020, the rule about compliance
// tests, and whether it is a directive of this project and not of golangci-lint.
func ignoresCompliance(comment string) (ours, ok bool) {
	d, _ := directive.Parse(comment) // the analyzer reports its faults
	if d == nil || !d.Covers(noComplianceTest) {
		return false, false
	}
	return !d.Foreign, true
}

// cover reports whether a directive is on the line or on the previous line, and marks
// the directive as used.
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
		if i.ours && !i.used {
			out = append(out, Finding{
				Rule: unusedIgnore, Severity: SeverityOf(unusedIgnore), Start: i.at, End: i.end,
				Message: "the directive suppresses nothing: SF020 does not report here; remove it",
			})
		}
	}
	return out
}
