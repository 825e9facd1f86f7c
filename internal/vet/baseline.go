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

// Baseline lists accepted findings, so that only new findings count. A finding matches
// an entry with the same rule, severity, file and function; line numbers and texts do
// not matter. An entry accepts as many findings as its Count.
//
// A baseline's file has one JSON object a line, sorted by file and function, with all
// members in the same order, so a review shows each added or removed finding as one
// line. File names are relative to the baseline's own folder, with slashes.
type Baseline []Known

// Known is one line of a baseline.
type Known struct {
	File string `json:"file"`

	// Function is the declaration around the finding: a function or method in Go's
	// form, (*Sender).Send, or the first name of another declaration; "" outside of
	// declarations.
	Function string `json:"function,omitempty"`

	Rule     string        `json:"rule"`
	Severity lint.Severity `json:"severity"`

	// Message is for human readers. If several findings match an entry, findings with an
	// equal message are matched first.
	Message string `json:"message"`

	// Count is the number of such findings, at least 1.
	Count int `json:"count"`
}

// String names a line of the baseline in the form of a finding.
func (k Known) String() string {
	place := k.File
	if k.Function != "" {
		place += ": " + k.Function
	}
	return fmt.Sprintf("%s: %s: %s: %s", place, k.Rule, k.Severity, k.Message)
}

// alike is the key of a known finding.
type alike struct {
	file, function, rule string
	severity             lint.Severity
}

func (k Known) alike() alike { return alike{k.File, k.Function, k.Rule, k.Severity} }

// ReadBaseline reads a baseline's file.
func ReadBaseline(file string) (Baseline, error) {
	text, err := os.ReadFile(file) // #nosec G304 -- named by the user
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

// parseBaseline reads the output of write, with lines in any order and empty lines.
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

// Filter removes the findings in baseline b from the report. file is the path of the
// baseline's file. Filter returns the number of removed findings, and the stale lines of
// the baseline: the lines with too few findings, with the number of missing findings as
// Count. A line about an existing unchecked file is not stale: the run did not name its
// package, or a build constraint excludes the file.
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
	match(func(a, b Known) bool { return a.alike() == b.alike() && a.Message == b.Message })
	match(func(a, b Known) bool { return a.alike() == b.alike() })
	var rest []Finding
	for i, f := range r.Findings {
		if !matched[i] {
			rest = append(rest, f)
		}
	}
	r.Findings = rest
	for _, k := range left {
		if k.Count > 0 && r.decides(base, k.File) {
			stale = append(stale, k)
		}
	}
	return known, stale, nil
}

// decides reports whether the report says something about the file: the file was
// checked, or it does not exist.
func (r *Report) decides(base, file string) bool {
	path := filepath.Join(base, filepath.FromSlash(file))
	if r.files[path] {
		return true
	}
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// WriteBaseline writes the findings of the report to a baseline's file. If the file
// exists, its lines about unchecked files stay. WriteBaseline returns the number of
// findings in the report.
func (r *Report) WriteBaseline(file string) (int, error) {
	base, err := baseDir(file)
	if err != nil {
		return 0, err
	}
	old, err := ReadBaseline(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	old = slices.DeleteFunc(old, func(k Known) bool { return r.decides(base, k.File) })
	var text bytes.Buffer
	if err := append(r.known(base), old...).sorted().write(&text); err != nil {
		return 0, err
	}
	return len(r.Findings), os.WriteFile(file, text.Bytes(), 0o644) // #nosec G306 -- goes into the repository
}

func (r *Report) known(base string) Baseline {
	places := declarations{}
	var b Baseline
	for _, f := range r.Findings {
		k := places.known(f, base)
		same := func(o Known) bool { return o.alike() == k.alike() && o.Message == k.Message }
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

// declarations maps the path of each file with findings to the parsed file, or to nil
// if the file does not parse.
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

// functionName returns the function's name in the form of Go's own tools, without type
// parameters.
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
