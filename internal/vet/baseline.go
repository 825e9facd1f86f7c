package vet

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kansas-frontier-matrix/sqsfifo/lint"
)

// Baseline lists findings that a team has accepted, so that a run reports only new
// findings.
//
// A finding matches an entry with the same rule, severity, file and function. The line
// numbers and messages may differ. An entry accepts as many findings as its Count.
//
// The file of a baseline has one JSON object a line for each entry. The entries are sorted
// by file and function, and the members of an object have a fixed order. File names have
// slashes, and are relative to the folder of the baseline's file.
type Baseline []Known

// Known is an entry of a [Baseline], the list of findings that a team has accepted.
type Known struct {
	File string `json:"file"`

	// Function is the name of the declaration around the finding: a function, a
	// method in the form (*Sender).Send, a type, or the first name of a variable or
	// constant declaration. It is "" outside of declarations.
	Function string `json:"function,omitempty"`

	Rule     string        `json:"rule"`
	Severity lint.Severity `json:"severity"`

	// Message is the text of the accepted finding. Filter prefers a finding with this text,
	// but also accepts another text.
	Message string `json:"message"`

	// Count is the number of accepted findings, at least 1. Filter keeps any further finding
	// in the report.
	Count int `json:"count"`
}

// String returns the entry like a printed finding: file, function, rule, severity and
// message.
func (k Known) String() string {
	place := k.File
	if k.Function != "" {
		place += ": " + k.Function
	}
	return fmt.Sprintf("%s: %s: %s: %s", place, k.Rule, k.Severity, k.Message)
}

// matchKey has the values that must be equal in a finding and the baseline entry
// accepting it.
type matchKey struct {
	file, function, rule string
	severity             lint.Severity
}

func (k Known) matchKey() matchKey { return matchKey{k.File, k.Function, k.Rule, k.Severity} }

// ReadBaseline reads the file of a baseline.
func ReadBaseline(file string) (Baseline, error) {
	text, err := os.ReadFile(file) // #nosec G304 -- the user names the file
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	b, err := parseBaseline(text)
	if err != nil {
		return nil, fmt.Errorf("baseline %s:%w", file, err)
	}
	return b, nil
}

var errNotKnown = errors.New("want an object with file, rule, severity, message and a count of 1 or more; --write-baseline writes the file again")

// parseBaseline reads the text of a baseline's file. The lines may be in any order, and
// some may be empty.
func parseBaseline(text []byte) (Baseline, error) {
	var b Baseline
	n := 0
	for line := range bytes.Lines(text) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var k Known
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&k); err != nil {
			return nil, fmt.Errorf("%d: %w: %w", n, errNotKnown, err)
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) || k.File == "" || k.Rule == "" || k.Count < 1 {
			return nil, fmt.Errorf("%d: %w", n, errNotKnown)
		}
		b = append(b, k)
	}
	return b, nil
}

func (b Baseline) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for _, k := range b {
		if err := e.Encode(k); err != nil {
			return err
		}
	}
	return out.Flush()
}

// Filter removes from the report the findings that baseline b accepts, and returns their
// number. The parameter `file` is the path of the baseline's file.
//
// The result `stale` has the baseline entries for findings that the report lacks, for
// example because a bug was fixed. The field Count of such an entry is the number of lacking
// findings. Files that exist but were not checked have no stale entries.
func (r *Report) Filter(b Baseline, file string) (known int, stale []Known, err error) {
	base, err := baseDir(file)
	if err != nil {
		return 0, nil, err
	}
	left := slices.Clone(b)
	places := declarations{}
	keys := make([]Known, len(r.Findings))
	for i, f := range r.Findings {
		keys[i] = places.known(f, base)
	}
	matched := make([]bool, len(keys))
	match := func(same func(Known, Known) bool) {
		for i, k := range keys {
			if matched[i] {
				continue
			}
			if j := slices.IndexFunc(left, func(l Known) bool { return l.Count > 0 && same(l, k) }); j >= 0 {
				left[j].Count--
				matched[i] = true
				known++
			}
		}
	}
	match(func(a, b Known) bool { return a.matchKey() == b.matchKey() && a.Message == b.Message })
	match(func(a, b Known) bool { return a.matchKey() == b.matchKey() })
	var rest []Finding
	for i, f := range r.Findings {
		if !matched[i] {
			rest = append(rest, f)
		}
	}
	r.Findings = rest
	for _, k := range left {
		if k.Count > 0 && r.checkedOrGone(base, k.File) {
			stale = append(stale, k)
		}
	}
	return known, stale, nil
}

// checkedOrGone reports whether the run checked a file, or the file does not exist. The
// path of the file is relative to base.
func (r *Report) checkedOrGone(base, file string) bool {
	path := filepath.Join(base, filepath.FromSlash(file))
	if r.files[path] {
		return true
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// WriteBaseline writes a baseline to a file. The baseline accepts all findings of the
// report. If the file exists, its entries about unchecked files stay. WriteBaseline
// returns the number of findings in the report.
func (r *Report) WriteBaseline(file string) (int, error) {
	base, err := baseDir(file)
	if err != nil {
		return 0, err
	}
	old, err := ReadBaseline(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	old = slices.DeleteFunc(old, func(k Known) bool { return r.checkedOrGone(base, k.File) })
	var text bytes.Buffer
	if err := append(r.known(base), old...).sorted().write(&text); err != nil {
		return 0, err
	}
	return len(r.Findings), os.WriteFile(file, text.Bytes(), 0o644) // #nosec G306 -- the baseline is a public file, part of the repository
}

func (r *Report) known(base string) Baseline {
	places := declarations{}
	var b Baseline
	for _, f := range r.Findings {
		k := places.known(f, base)
		same := func(o Known) bool { return o.matchKey() == k.matchKey() && o.Message == k.Message }
		if i := slices.IndexFunc(b, same); i >= 0 {
			b[i].Count++
		} else {
			b = append(b, k)
		}
	}
	return b
}

func (b Baseline) sorted() Baseline {
	slices.SortFunc(b, func(x, y Known) int {
		return cmp.Or(strings.Compare(x.File, y.File), strings.Compare(x.Function, y.Function), strings.Compare(x.Rule, y.Rule),
			cmp.Compare(x.Severity, y.Severity), strings.Compare(x.Message, y.Message), cmp.Compare(x.Count, y.Count))
	})
	return b
}

func baseDir(file string) (string, error) {
	path, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	return filepath.Dir(path), nil
}

// declarations caches parsed files by path, to find the declaration around a finding. The
// value for a file that does not parse is nil.
type declarations map[string]*parsedFile

type parsedFile struct {
	fset   *token.FileSet
	syntax *ast.File
}

func (d declarations) known(f Finding, base string) Known {
	k := Known{File: filepath.ToSlash(f.Start.Filename), Rule: f.Rule, Severity: f.Severity, Message: f.Message, Count: 1}
	if rel, err := filepath.Rel(base, f.Start.Filename); err == nil {
		k.File = filepath.ToSlash(rel)
	}
	file, seen := d[f.Start.Filename]
	if !seen {
		fset := token.NewFileSet()
		if syntax, err := parser.ParseFile(fset, f.Start.Filename, nil, parser.SkipObjectResolution); err == nil {
			file = &parsedFile{fset, syntax}
		}
		d[f.Start.Filename] = file
	}
	if file != nil {
		k.Function = file.declaration(f.Start)
	}
	return k
}

func (p *parsedFile) declaration(at token.Position) string {
	before := func(a, b token.Position) bool {
		return a.Line < b.Line || a.Line == b.Line && a.Column <= b.Column
	}
	holds := func(n ast.Node) bool {
		return before(p.fset.PositionFor(n.Pos(), false), at) && before(at, p.fset.PositionFor(n.End(), false))
	}
	for _, d := range p.syntax.Decls {
		if !holds(d) {
			continue
		}
		switch d := d.(type) {
		case *ast.FuncDecl:
			return functionName(d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if !holds(s) {
					continue
				}
				switch s := s.(type) {
				case *ast.ValueSpec:
					return s.Names[0].Name
				case *ast.TypeSpec:
					return s.Name.Name
				}
			}
		}
	}
	return ""
}

// functionName returns the name of a function, as Name, or of a method, as Type.Name or
// (*Type).Name, without type parameters.
func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	pointer := false
	for {
		switch x := t.(type) {
		case *ast.ParenExpr:
			t = x.X
		case *ast.StarExpr:
			t, pointer = x.X, true
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			if pointer {
				return "(*" + x.Name + ")." + d.Name.Name
			}
			return x.Name + "." + d.Name.Name
		default:
			return d.Name.Name
		}
	}
}
