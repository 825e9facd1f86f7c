package vet

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// The escape sequences of a terminal (ECMA-48, SGR).
const (
	plain  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	cyan   = "\x1b[1;36m"
)

// painter adds colours to text if the painter is true.
type painter bool

func (p painter) paint(colour, text string) string {
	if !p {
		return text
	}
	return colour + text + plain
}

func (p painter) severity(s lint.Severity) string {
	return p.paint(map[lint.Severity]string{lint.Error: red, lint.Warning: yellow, lint.Info: cyan}[s], s.String())
}

func writeText(w io.Writer, colour bool, findings []Finding) {
	p := painter(colour)
	pages := map[string]string{}
	for _, f := range findings {
		fmt.Fprintf(w, "%s: %s: %s: %s\n", p.paint(bold, f.Start.String()), f.Rule, p.severity(f.Severity), f.Message)
		for _, r := range f.Related {
			if r.Start.Filename != f.Start.Filename || r.Start.Line != f.Start.Line {
				fmt.Fprintf(w, "\t%s: %s\n", r.Start, r.Message)
			}
		}
		if f.URL != "" {
			pages[f.Rule] = f.URL
		}
	}
	if len(pages) > 0 {
		fmt.Fprintln(w)
	}
	for _, r := range Rules() {
		if page, ok := pages[r.ID]; ok {
			names := slices.Compact([]string{r.ID, r.Name})
			fmt.Fprintf(w, "%s: %s\n", strings.Join(names, " "), p.paint(dim, page))
		}
	}
}
