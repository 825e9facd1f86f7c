package fifovet

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// site is one call site in testdata/src/example.com/sites: code that sends a message. It
// begins with a comment "site name: right" or "site name: wrong SF001" (the code breaks the
// rule), and ends at the next such comment.
type site struct {
	name string
	rule string // the rule that the code breaks, or ""

	// callee names the called function in which the analyzer must report the finding. It
	// is "" if the finding is in the site itself.
	callee string

	pos, end token.Pos
}

var siteComment = regexp.MustCompile(`^// site ([^:]+): (?:right|wrong (SF[0-9]{3})(?: in (\w+))?)$`)

func sitesOf(t *testing.T, pass *analysis.Pass) []site {
	var sites []site
	for _, file := range pass.Files {
		first := len(sites)
		for _, group := range file.Comments {
			for _, c := range group.List {
				if !strings.HasPrefix(c.Text, "// site ") {
					continue
				}
				m := siteComment.FindStringSubmatch(c.Text)
				require.NotNil(t, m, "%s", c.Text)
				if len(sites) > first {
					sites[len(sites)-1].end = c.Pos()
				}
				sites = append(sites, site{name: m[1], rule: m[2], callee: m[3], pos: c.Pos(), end: file.FileEnd})
			}
		}
	}
	return sites
}

// findings returns the diagnostics in the function s.callee, or in the call site itself if
// s.callee is empty.
func (s site) findings(pass *analysis.Pass, all []analysis.Diagnostic) []analysis.Diagnostic {
	pos, end := s.pos, s.end
	for _, file := range pass.Files {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && s.callee != "" && fn.Name.Name == s.callee {
				pos, end = fn.Pos(), fn.End()
			}
		}
	}
	var found []analysis.Diagnostic
	for _, d := range all {
		if pos <= d.Pos && d.Pos < end {
			found = append(found, d)
		}
	}
	return found
}

// missed lists the wrong call sites for which the analyzer has no finding. docs/rules.md
// lists these limits.
var missed = []string{"functional option", "input by value", "table of names"}

// TestSites checks the analyzer on call sites like those of real programs. At least 95 % of
// the wrong sites have findings. Of the right sites, none has an error, and at most 2 %
// have warnings.
func TestSites(t *testing.T) {
	t.Parallel()
	var pkgs []string
	for _, pkg := range []string{"attributes", "identity", "queues", "ids", "retries", "detours", "mail", "relay", "keys/guid", "again", "parts/lib", "parts", "zones", "outbox/box", "outbox", "rounds"} {
		pkgs = append(pkgs, "example.com/sites/"+pkg)
	}
	var wrong, found, right, asError, asWarning int
	var unseen []string
	for _, r := range analysistest.Run(t, analysistest.TestData(), analyzer(t, "enable", "SF005"), pkgs...) {
		for _, s := range sitesOf(t, r.Pass) {
			diagnostics := s.findings(r.Pass, r.Diagnostics)
			if s.rule != "" {
				wrong++
				if slices.ContainsFunc(diagnostics, func(d analysis.Diagnostic) bool { return d.Category == s.rule }) {
					found++
				} else {
					unseen = append(unseen, s.name)
				}
				continue
			}
			right++
			for _, d := range diagnostics {
				t.Logf("right, and flagged: %s: %s", s.name, d.Message)
			}
			switch {
			case slices.ContainsFunc(diagnostics, isErrorFinding):
				asError++
			case len(diagnostics) > 0:
				asWarning++
			}
		}
	}
	t.Logf("%d of %d wrong sites found, %d right: %d flagged as error, %d as warning", found, wrong, right, asError, asWarning)
	assert.GreaterOrEqual(t, wrong+right, 120)
	assert.GreaterOrEqual(t, found*100, wrong*95, "wrong sites that are found")
	assert.Zero(t, asError, "right sites that are flagged as errors")
	assert.LessOrEqual(t, asWarning*100, right*2, "right sites that are flagged as warnings")
	assert.ElementsMatch(t, missed, unseen, "what is missed is listed under Limits")
}

func isErrorFinding(d analysis.Diagnostic) bool {
	return !strings.HasPrefix(d.Message, d.Category+": warning: ") && !strings.HasPrefix(d.Message, d.Category+": info: ") &&
		isError(d.Category)
}

func isError(id string) bool {
	r, ok := lint.Lookup(id)
	return !ok || r.Severity == lint.Error
}
