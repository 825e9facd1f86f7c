package vet

import (
	"encoding/json"
	"go/token"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// These types are the parts of a SARIF 2.1.0 log that findings need. The comments name
// sections of the standard. A member has omitempty unless the standard or GitHub requires
// the member.
type (
	sarifLog struct { // section 3.13
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct { // section 3.14
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct { // section 3.18
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct { // section 3.19
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		Semantic       string      `json:"semanticVersion"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct { // section 3.49
		ID            string         `json:"id"`
		Name          string         `json:"name"`
		Short         sarifText      `json:"shortDescription"`
		Full          sarifText      `json:"fullDescription"`
		Help          sarifHelp      `json:"help"`
		HelpURI       string         `json:"helpUri"`
		Configuration sarifRuleLevel `json:"defaultConfiguration"`
	}
	sarifRuleLevel struct { // section 3.50
		Level string `json:"level"`
	}
	sarifText struct { // sections 3.11 and 3.12
		Text string `json:"text"`
	}
	sarifHelp struct { // section 3.12; Text is for programs that do not display Markdown
		Text     string `json:"text"`
		Markdown string `json:"markdown"`
	}
	sarifResult struct { // section 3.27
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
		Related   []sarifLocation `json:"relatedLocations,omitempty"`
		Fixes     []sarifFix      `json:"fixes,omitempty"`
	}
	sarifFix struct { // section 3.55
		Description sarifText     `json:"description"`
		Changes     []sarifChange `json:"artifactChanges"`
	}
	sarifChange struct { // section 3.56
		Artifact     sarifArtifact      `json:"artifactLocation"`
		Replacements []sarifReplacement `json:"replacements"`
	}
	sarifReplacement struct { // section 3.57; if Inserted is nil, the replacement only deletes
		Deleted  sarifRegion `json:"deletedRegion"`
		Inserted *sarifText  `json:"insertedContent,omitempty"`
	}
	sarifLocation struct { // section 3.28
		Physical sarifPhysical `json:"physicalLocation"`
		Message  *sarifText    `json:"message,omitempty"`
	}
	sarifPhysical struct { // section 3.29
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct { // section 3.4
		URI     string `json:"uri"`
		URIBase string `json:"uriBaseId,omitempty"`
	}
	sarifRegion struct { // section 3.30
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
		EndLine     int `json:"endLine,omitempty"`
		EndColumn   int `json:"endColumn,omitempty"`
	}
)

// directiveRules describe the findings about sqsfifo:ignore directives. These rules are not
// in the rule table of package lint.
var directiveRules = []lint.Rule{
	{
		ID: "bad-ignore", Name: "bad-ignore", Severity: lint.Warning, Passes: lint.OnSource, Since: "0.1.0",
		Title:   "a directive without a reason, or with an unknown rule",
		Wording: "A sqsfifo:ignore directive names rules of the table and, after two hyphens, the reason why they do not apply.",
		Fix:     "write //sqsfifo:ignore SF002 -- and the reason",
		Bad:     "//sqsfifo:ignore SF002",
		Good:    "//sqsfifo:ignore SF002 -- two deliveries are what this load test is for",
	},
	{
		ID: unusedIgnore, Name: unusedIgnore, Severity: lint.Warning, Passes: lint.OnSource, Since: "0.1.0",
		Title:   "a directive that suppresses nothing",
		Wording: "A sqsfifo:ignore directive stands on the line of a finding or on the line above. One that suppresses nothing hides the next finding.",
		Fix:     "remove the directive",
		Bad:     "//sqsfifo:ignore SF020 -- a demonstration\nfmt.Println(receipt.MessageID)",
		Good:    "fmt.Println(receipt.MessageID)",
	},
}

// Rules returns every rule that a finding may name: first the rules of [lint.Rules] that
// check source code, then two rules about //sqsfifo:ignore directives. The IDs of these
// two are names, such as "bad-ignore", and not numbers such as SF020.
func Rules() []lint.Rule {
	onSource := slices.DeleteFunc(lint.Rules(), func(r lint.Rule) bool { return !r.Passes.Has(lint.OnSource) })
	return append(onSource, directiveRules...)
}

func writeSARIF(w io.Writer, root, version string, findings []Finding) error {
	run := sarifRun{
		Tool:       sarifTool{sarifDriver{Name: "sqsfifo", Version: version, Semantic: strings.TrimPrefix(version, "v"), InformationURI: "https://" + sdkPath}},
		ColumnKind: "unicodeCodePoints",
		Results:    []sarifResult{},
	}
	rules := Rules()
	for _, r := range rules {
		help := sarifHelp{Text: "Fix: " + r.Fix + "."}
		if r.Source != "" {
			help.Text += "\nSource: " + r.Source + "."
		}
		help.Markdown = help.Text
		for _, code := range []struct{ label, text string }{{"Bad", r.Bad}, {"Good", r.Good}} {
			if code.text != "" {
				help.Markdown += "\n\n" + code.label + ":\n\n```go\n" + strings.TrimRight(code.text, "\n") + "\n```"
			}
		}
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: r.ID, Name: r.Name, Short: sarifText{r.Title}, Full: sarifText{r.Wording}, Help: help,
			HelpURI: page(r.ID), Configuration: sarifRuleLevel{sarifLevel(r.Severity)},
		})
	}
	columns := newColumns()
	for i, f := range relative(columns.inCharacters(findings), root) {
		var related []sarifLocation
		for _, r := range f.Related {
			related = append(related, location(r.Start, token.Position{}, &sarifText{r.Message}))
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Rule,
			// For an unknown rule the index is -1, which means "no index" (section 3.27.6 of
			// the SARIF standard).
			RuleIndex: slices.IndexFunc(rules, func(r lint.Rule) bool { return r.ID == f.Rule }),
			Level:     sarifLevel(f.Severity),
			Message:   sarifText{f.Message},
			Locations: []sarifLocation{location(f.Start, f.End, nil)},
			Related:   related,
			Fixes:     sarifFixes(columns, root, findings[i].Fixes),
		})
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	return e.Encode(sarifLog{
		Schema:  "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
		Version: "2.1.0",
		Runs:    []sarifRun{run},
	})
}

// sarifFixes converts fixes to the form of SARIF. It leaves out a fix if the columns of an
// edit cannot be computed: the file is unreadable, or the edit is outside the file.
func sarifFixes(columns columns, root string, fixes []Fix) []sarifFix {
	var out []sarifFix
	for _, fix := range fixes {
		f := sarifFix{Description: sarifText{fix.Message}}
		whole := len(fix.Edits) > 0
		for _, e := range fix.Edits {
			start, ok := columns.position(e.File, e.Start)
			end, too := columns.position(e.File, e.End)
			whole = whole && ok && too
			r := sarifReplacement{Deleted: sarifRegion{start.Line, start.Column, end.Line, end.Column}}
			if e.New != "" {
				r.Inserted = &sarifText{e.New}
			}
			file := artifact(within(root, e.File))
			at := slices.IndexFunc(f.Changes, func(c sarifChange) bool { return c.Artifact == file })
			if at < 0 {
				at = len(f.Changes)
				f.Changes = append(f.Changes, sarifChange{Artifact: file})
			}
			f.Changes[at].Replacements = append(f.Changes[at].Replacements, r)
		}
		if whole {
			out = append(out, f)
		}
	}
	return out
}

func sarifLevel(s lint.Severity) string {
	if s == lint.Info {
		return "note"
	}
	return s.String()
}

func location(start, end token.Position, message *sarifText) sarifLocation {
	return sarifLocation{
		sarifPhysical{artifact(start.Filename), sarifRegion{start.Line, start.Column, end.Line, end.Column}},
		message,
	}
}

// artifact returns the URI of a file. If the file is in a folder below root, the URI is
// relative to root.
func artifact(file string) sarifArtifact {
	path := filepath.ToSlash(file)
	if filepath.IsAbs(file) || path == ".." || strings.HasPrefix(path, "../") {
		return sarifArtifact{URI: (&url.URL{Path: path}).String()}
	}
	return sarifArtifact{URI: (&url.URL{Path: path}).String(), URIBase: "%SRCROOT%"}
}
