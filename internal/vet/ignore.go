package vet

import (
	"go/token"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// unusedIgnore is the name under which directives that suppress nothing are
// reported, here and by the analyzer.
const unusedIgnore = "unused-ignore"

// ignore is a comment that suppresses SF020 on its own line and the next one. The
// analyzer reads the same forms for the rules that it has, and reports directives
// without a reason for every rule; such a directive suppresses nothing here.
type ignore struct {
	at, end token.Position
	used    bool

	// ours is false for the forms of other tools, whose owners report what is unused.
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

// ignoresCompliance tells whether a comment suppresses SF020, and whether it is of
// this project's form.
func ignoresCompliance(comment string) (ours, ok bool) {
	if text, found := strings.CutPrefix(comment, "//sqsfifo:ignore"); found {
		ids, reason, _ := strings.Cut(text, "--")
		return true, strings.TrimSpace(reason) != "" && lists(ids, noComplianceTest) && areOnSource(ids)
	}
	if text, found := strings.CutPrefix(comment, "//lint:ignore "); found {
		ids, reason, _ := strings.Cut(strings.TrimSpace(text), " ")
		return false, strings.TrimSpace(reason) != "" && lists(ids, noComplianceTest)
	}
	if text, found := strings.CutPrefix(comment, "//nolint"); found {
		text, _, _ = strings.Cut(text, "//")
		linters, named := strings.CutPrefix(text, ":")
		return false, !named && strings.TrimSpace(text) == "" || lists(linters, "sqsfifo") || lists(linters, "all")
	}
	return false, false
}

func lists(text, name string) bool {
	return slices.ContainsFunc(strings.Split(text, ","), func(s string) bool { return strings.TrimSpace(s) == name })
}

// areOnSource reports whether each ID is that of a rule on source. The analyzer
// reports a directive with another as one that silences nothing, and it does not.
func areOnSource(ids string) bool {
	for id := range strings.SplitSeq(ids, ",") {
		id = strings.TrimSpace(id)
		if r, ok := lint.Lookup(id); id != "" && (!ok || !r.Passes.Has(lint.OnSource)) {
			return false
		}
	}
	return true
}

// cover reports whether a directive stands on the line or on the one above, and
// notes that it was needed.
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
