// Package golangci is the analyzer of package fifovet as a module plugin of
// golangci-lint v2, under the name sqsfifo.
//
// The problem: teams that run golangci-lint want one run, one configuration and one
// way to suppress; golangci-lint takes linters that are not its own as Go packages
// that it is built with ("golangci-lint custom").
//
// The guarantee: the plugin reports what "sqsfifo vet" reports, with the same
// settings, each finding once ("make golangci" builds golangci-lint with it, by
// "golangci-lint custom", and compares); a setting that it does not know, and a rule that does not exist, is an
// error when golangci-lint starts, and never ignored.
//
// The limits: rule SF020 is not among them. It is about a package and its tests
// together, which no analyzer sees; "sqsfifo vet" has it. The places that a finding is
// related to are not shown, because golangci-lint counts each as a finding. What golangci-lint leaves out
// by default, it leaves out here, too: findings in generated files
// (linters.exclusions.generated), all but one finding on a line (issues.uniq-by-line), and
// from the fourth on those of one text (issues.max-same-issues).
//
// The settings, with their defaults:
//
//	linters:
//	  enable: [sqsfifo]
//	  settings:
//	    custom:
//	      sqsfifo:
//	        type: module
//	        settings:
//	          enable: []        # rules whose infos are reported as well, or [all]
//	          disable: []       # rules that are not reported
//	          strict: false     # an ID that is minted where it is sent is an error even if the body carries it
//	          nondet: []        # further functions that return another value at each call, as import/path.Func
//	          forbid-raw: false # SF008 in every package
package golangci

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/kansas-frontier-matrix/sqsfifo/lint/fifovet"
)

// Name is that of the linter in a configuration.
const Name = "sqsfifo"

func init() { register.Plugin(Name, New) }

// settings are the analyzer's flags under the names that they have there.
type settings struct {
	Enable    []string `json:"enable"`
	Disable   []string `json:"disable"`
	Strict    bool     `json:"strict"`
	Nondet    []string `json:"nondet"`
	ForbidRaw bool     `json:"forbid-raw"`
}

// plugin is a [register.LinterPlugin].
type plugin struct{ settings settings }

// New is the plugin's constructor, which golangci-lint finds by [Name]. It takes
// the settings as golangci-lint has read them, nil if there are none.
func New(conf any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[settings](conf)
	if err != nil {
		return nil, fmt.Errorf("sqsfifo: %w", err)
	}
	return &plugin{s}, nil
}

// BuildAnalyzers sets the analyzer's flags and returns it. There is one analyzer in
// a process, so the settings of the last call hold.
func (p *plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	for _, flag := range []struct{ name, value string }{
		{"enable", strings.Join(p.settings.Enable, ",")},
		{"disable", strings.Join(p.settings.Disable, ",")},
		{"strict", strconv.FormatBool(p.settings.Strict)},
		{"nondet", strings.Join(p.settings.Nondet, ",")},
		{"forbid-raw", strconv.FormatBool(p.settings.ForbidRaw)},
	} {
		if err := fifovet.Analyzer.Flags.Set(flag.name, flag.value); err != nil {
			return nil, fmt.Errorf("sqsfifo: setting %s: %w", flag.name, err)
		}
	}
	return []*analysis.Analyzer{counted(fifovet.Analyzer)}, nil
}

// counted is the analyzer without the related places of its diagnostics: golangci-lint
// would report, and count, each of them as a finding.
func counted(a *analysis.Analyzer) *analysis.Analyzer {
	out := *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		own := *pass
		own.Report = func(d analysis.Diagnostic) {
			d.Related = nil
			pass.Report(d)
		}
		return a.Run(&own)
	}
	return &out
}

// GetLoadMode asks for types: the rules follow values.
func (*plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
