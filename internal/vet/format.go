package vet

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Format is a way to print findings.
type Format string

const (
	// Text has one line for each finding: file:line:column: rule: severity: message.
	//
	// A related place on another source line has its own line, which begins with a tab. The
	// output ends with the address of each reported rule's explanation, after an empty
	// line.
	Text Format = "text"

	// JSON has one object a line for each finding, with the members file, line, column,
	// end_line, end_column, rule, severity, message, url and related.
	//
	// The member related is a list of objects with file, line, column and message. The
	// members end_line, end_column, url and related are left out if they are empty.
	JSON Format = "json"

	// SARIF is one SARIF 2.1.0 log with one run. The log is also written if there are no
	// findings.
	SARIF Format = "sarif"

	// GitHub writes a workflow command of GitHub Actions for each finding. The website
	// github.com then shows the finding at its line.
	GitHub Format = "github"
)

// Formats has all formats.
var Formats = []Format{Text, JSON, SARIF, GitHub}

// Output configures the printing of findings.
type Output struct {
	// Dir is the absolute path of a folder. Text and JSON name files relative to Dir. SARIF
	// and GitHub name files relative to the root of the repository that contains Dir. If
	// there is no repository, SARIF and GitHub also use Dir.
	Dir string

	// Colour adds the colour codes of a terminal to Text.
	Colour bool

	// Version is the version of the command, such as v0.1.0. Only SARIF contains it.
	Version string
}

// Write prints findings. Text and JSON count columns in bytes, like Go tools. SARIF and
// GitHub count columns in characters, like the readers of these formats.
func (f Format) Write(w io.Writer, o Output, findings []Finding) error {
	b := bufio.NewWriter(w)
	var err error
	switch f {
	case Text:
		writeText(b, o.Colour, relative(findings, o.Dir))
	case JSON:
		err = writeJSON(b, relative(findings, o.Dir))
	case SARIF:
		err = writeSARIF(b, repository(o.Dir), o.Version, findings)
	case GitHub:
		writeGitHub(b, relative(newColumns().inCharacters(findings), repository(o.Dir)))
	default:
		return fmt.Errorf("no format %q; there are text, json, sarif and github", string(f))
	}
	if err != nil {
		return err
	}
	return b.Flush()
}

// relative makes the file names of the findings relative to dir. Names on another volume
// stay absolute.
func relative(findings []Finding, dir string) []Finding {
	out := slices.Clone(findings)
	for i := range out {
		out[i].Start.Filename = within(dir, out[i].Start.Filename)
		out[i].Related = slices.Clone(out[i].Related)
		for j := range out[i].Related {
			at := &out[i].Related[j].Start
			at.Filename = within(dir, at.Filename)
		}
	}
	return out
}

func within(dir, file string) string {
	if rel, err := filepath.Rel(dir, file); err == nil {
		return rel
	}
	return file
}

// repository returns the nearest folder with a .git, at dir or above. Without such a
// folder it returns dir. In a linked work tree, .git is a file.
func repository(dir string) string {
	for at := dir; ; {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		up := filepath.Dir(at)
		if up == at {
			return dir
		}
		at = up
	}
}

type jsonPlace struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

func writeJSON(w io.Writer, findings []Finding) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, f := range findings {
		var related []jsonPlace
		for _, r := range f.Related {
			related = append(related, jsonPlace{r.Start.Filename, r.Start.Line, r.Start.Column, r.Message})
		}
		if err := e.Encode(struct {
			File      string      `json:"file"`
			Line      int         `json:"line"`
			Column    int         `json:"column"`
			EndLine   int         `json:"end_line,omitempty"`
			EndColumn int         `json:"end_column,omitempty"`
			Rule      string      `json:"rule"`
			Severity  string      `json:"severity"`
			Message   string      `json:"message"`
			URL       string      `json:"url,omitempty"`
			Related   []jsonPlace `json:"related,omitempty"`
		}{
			f.Start.Filename, f.Start.Line, f.Start.Column, f.End.Line, f.End.Column,
			f.Rule, f.Severity.String(), f.Message, f.URL, related,
		}); err != nil {
			return err
		}
	}
	return nil
}

// These replacers escape characters that would end the message of a workflow command
// (commandData) or one of its properties (commandProperty).
var (
	commandData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func writeGitHub(w io.Writer, findings []Finding) {
	for _, f := range findings {
		level := map[lint.Severity]string{lint.Error: "error", lint.Warning: "warning", lint.Info: "notice"}[f.Severity]
		fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d", level, commandProperty.Replace(filepath.ToSlash(f.Start.Filename)), f.Start.Line, f.Start.Column)
		// GitHub accepts an end column only if the annotation has one line.
		if f.End.Line == f.Start.Line {
			fmt.Fprintf(w, ",endColumn=%d", f.End.Column)
		} else if f.End.Line > 0 {
			fmt.Fprintf(w, ",endLine=%d", f.End.Line)
		}
		fmt.Fprintf(w, ",title=%s::%s\n", commandProperty.Replace(f.Rule), commandData.Replace(f.Message))
	}
}
