// Package golangci makes the analyzer of package fifovet a module plugin of
// golangci-lint v2, under the name sqsfifo.
//
// The problem: teams with golangci-lint want one run, one configuration and one way to
// suppress findings. golangci-lint accepts other linters as Go packages in a custom
// build ("golangci-lint custom").
//
// The guarantee: the plugin reports the findings of "sqsfifo vet", with the same
// settings, each finding once. "make golangci" builds golangci-lint with the plugin, by
// "golangci-lint custom", and compares the findings. An unknown setting or an unknown
// rule is an error at the start of golangci-lint, and never ignored.
//
// The limits: rule SF020 is missing. The rule needs a package and its tests together,
// but golangci-lint gives an analyzer one of the two at a time; use "sqsfifo vet" for
// the rule. The related places of a finding are not shown, because golangci-lint would
// count each place as a finding. By default golangci-lint leaves out findings in
// generated files (linters.exclusions.generated), all but one finding on a line
// (issues.uniq-by-line), and all but three findings with the same text
// (issues.max-same-issues).
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
//	          enable: []        # rules whose infos are also reported, or [all]
//	          disable: []       # rules that are not reported
//	          notes: false      # what is wrong only if a queue is FIFO, which the code does not show
//	          strict: false     # an ID minted at the send is an error even if the body carries it
//	          nondet: []        # further functions with a different value at each call, as import/path.Func
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

// Name is the linter's name in a configuration.
const Name = "sqsfifo"

func init() { register.Plugin(Name, New) }

// settings are the settings of the plugin. Each has the name of the analyzer flag that it
// sets.
type settings struct {
	Enable    []string `json:"enable"`
	Disable   []string `json:"disable"`
	Notes     bool     `json:"notes"`
	Strict    bool     `json:"strict"`
	Nondet    []string `json:"nondet"`
	ForbidRaw bool     `json:"forbid-raw"`
}

// plugin is a [register.LinterPlugin].
type plugin struct{ settings settings }

// New is the plugin's constructor; golangci-lint finds it by [Name]. conf is the
// settings as read by golangci-lint, nil without settings.
func New(conf any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[settings](conf)
	if err != nil {
		return nil, fmt.Errorf("sqsfifo: %w", err)
	}
	return &plugin{s}, nil
}

// BuildAnalyzers sets the analyzer's flags and returns the analyzer. All plugins of a
// process share this analyzer, so the settings of the last call apply.
func (p *plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) {
	for _, flag := range []struct{ name, value string }{
		{"enable", strings.Join(p.settings.Enable, ",")},
		{"disable", strings.Join(p.settings.Disable, ",")},
		{"notes", strconv.FormatBool(p.settings.Notes)},
		{"strict", strconv.FormatBool(p.settings.Strict)},
		{"nondet", strings.Join(p.settings.Nondet, ",")},
		{"forbid-raw", strconv.FormatBool(p.settings.ForbidRaw)},
	} {
		if err := fifovet.Analyzer.Flags.Set(flag.name, flag.value); err != nil {
			return nil, fmt.Errorf("sqsfifo: setting %s: %w", flag.name, err)
		}
	}
	return []*analysis.Analyzer{withoutRelated(fifovet.Analyzer)}, nil
}

// withoutRelated returns a copy of an analyzer. The copy removes the related places from
// its diagnostics, because golangci-lint would report each place as a separate finding.
func withoutRelated(a *analysis.Analyzer) *analysis.Analyzer {
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

// GetLoadMode makes golangci-lint load the types of each package, because the analyzer
// needs types to find the origin of a value.
func (*plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
