package vet

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Fix is one change to the source code that removes a finding.
type Fix struct {
	Message string
	Edits   []Edit
}

// Edit replaces a part of a file with New. The part begins at byte offset Start and ends
// before End.
type Edit struct {
	File       string
	Start, End int
	New        string
}

// Fixed is the result of [Report.Fix].
type Fixed struct {
	// Findings is the number of findings whose fix was applied.
	Findings int

	// Files are the written files, sorted.
	Files []string

	// Left has a line for each fix that was not applied: file:line:column, rule and
	// reason. Fixes that would together produce invalid Go code have one line for the
	// whole file.
	Left []string
}

// Fix applies the first fix of each finding to the files. The report still describes the
// files before the fixes: call Run again for the remaining findings.
//
// A fix is applied completely or not at all. If a fix overlaps an applied fix, call Fix
// again after the next Run. A changed file is formatted as by gofmt. Fix removes imports
// that only the replaced code used.
//
// Fix does not change:
//
//   - generated files
//   - files outside the main module
//   - files written since Run began
//   - files with line directives or cgo, because the positions of their findings refer to
//     other files
//
// An error means that a file could not be read or written. Other files may already have
// been changed.
func (r *Report) Fix() (Fixed, error) {
	var out Fixed
	files := map[string]*fixedFile{}
	for _, f := range r.Findings {
		if len(f.Fixes) == 0 {
			continue
		}
		reason, err := r.accept(files, f.Fixes[0])
		if err != nil {
			return out, err
		}
		if reason != "" {
			out.Left = append(out.Left, fmt.Sprintf("%s: %s: %s", f.Start, f.Rule, reason))
		}
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		file := files[name]
		if len(file.edits) == 0 {
			continue
		}
		text, err := file.apply()
		if err != nil {
			out.Left = append(out.Left, fmt.Sprintf("%s: the fixed code is not Go: %v", name, err))
			continue
		}
		if err := os.WriteFile(name, text, 0o644); err != nil { // #nosec G306 -- the file exists, so its mode stays
			return out, err
		}
		out.Findings += file.findings
		out.Files = append(out.Files, name)
	}
	return out, nil
}

type fixedFile struct {
	text     []byte
	refused  string // reason to leave the file unchanged, or ""
	edits    []Edit
	findings int
}

// accept adds the edits of a fix to the file that they change. If the fix cannot be
// applied, accept adds nothing and returns the reason.
func (r *Report) accept(files map[string]*fixedFile, fix Fix) (reason string, err error) {
	if len(fix.Edits) == 0 {
		return "the fix changes nothing", nil
	}
	name := fix.Edits[0].File
	file := files[name]
	if file == nil {
		if file, err = r.open(name); err != nil {
			return "", err
		}
		files[name] = file
	}
	if file.refused != "" {
		return file.refused, nil
	}
	for i, e := range fix.Edits {
		switch {
		case e.File != name:
			return "the fix changes several files", nil
		case e.Start < 0 || e.Start > e.End || e.End > len(file.text):
			return "the fix is about another text than that of the file", nil
		case slices.ContainsFunc(fix.Edits[:i], e.overlaps):
			return "the fix overlaps itself", nil
		}
	}
	// If an earlier finding had the same fix, do not add the edits twice. Only count this
	// finding as fixed.
	if !slices.ContainsFunc(fix.Edits, func(e Edit) bool { return !slices.Contains(file.edits, e) }) {
		file.findings++
		return "", nil
	}
	for _, e := range fix.Edits {
		if slices.ContainsFunc(file.edits, e.overlaps) {
			return "the fix overlaps another; run again", nil
		}
	}
	file.edits = append(file.edits, fix.Edits...)
	file.findings++
	return "", nil
}

// overlaps reports whether two edits change common bytes, or one edit inserts text inside
// or at the edge of the other. The result of such edits would depend on their order.
func (e Edit) overlaps(o Edit) bool {
	if e.Start == e.End || o.Start == o.End {
		return e.Start <= o.End && o.Start <= e.End
	}
	return e.Start < o.End && o.Start < e.End
}

var lineDirective = regexp.MustCompile(`(?m)^//line |/\*line `)

func (r *Report) open(name string) (*fixedFile, error) {
	if !r.fixable[name] {
		return &fixedFile{refused: "the file is not one of the packages of the main module"}, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(name) // #nosec G304 -- a source file listed by the go command
	if err != nil {
		return nil, err
	}
	file := &fixedFile{text: text}
	syntax, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	switch {
	case err != nil || info.ModTime().After(r.began):
		file.refused = "the file was changed while it was checked; run again"
	case ast.IsGenerated(syntax):
		file.refused = "the file is generated: fix what generates it"
	case lineDirective.Match(text):
		file.refused = "the file has line directives"
	case slices.ContainsFunc(syntax.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"C"` }):
		file.refused = "the file uses cgo"
	}
	return file, nil
}

// apply returns the text of the file after its edits, formatted.
func (f *fixedFile) apply() ([]byte, error) {
	slices.SortFunc(f.edits, func(a, b Edit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	var b bytes.Buffer
	at := 0
	for _, e := range f.edits {
		b.Write(f.text[at:e.Start])
		b.WriteString(e.New)
		at = e.End
	}
	b.Write(f.text[at:])
	text, err := withoutImports(b.Bytes(), f.text)
	if err != nil {
		return nil, err
	}
	return format.Source(text)
}

// withoutImports removes the imports that the file used before its edits and no longer
// uses.
func withoutImports(text, before []byte) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	old, err := parser.ParseFile(token.NewFileSet(), "", before, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	was, is := qualifiers(old), qualifiers(file)
	var removed []*ast.ImportSpec
	for _, spec := range file.Imports {
		if slices.ContainsFunc(namesOf(spec), func(name string) bool { return was[name] && !is[name] }) {
			removed = append(removed, spec)
		}
	}
	var gone [][2]int
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.IMPORT {
			continue
		}
		whole := !slices.ContainsFunc(decl.Specs, func(s ast.Spec) bool { return !slices.Contains(removed, s.(*ast.ImportSpec)) })
		for _, s := range decl.Specs {
			var node ast.Node = s
			if whole {
				node = decl
			} else if !slices.Contains(removed, s.(*ast.ImportSpec)) {
				continue
			}
			gone = append(gone, wholeLines(text, fset.Position(node.Pos()).Offset, fset.Position(node.End()).Offset))
			if whole {
				break
			}
		}
	}
	for _, g := range slices.Backward(gone) {
		text = slices.Delete(text, g[0], g[1])
	}
	return text, nil
}

// wholeLines extends a range of bytes to whole lines, with the final line break. If these
// lines contain other text, or have no final line break, the range stays unchanged.
func wholeLines(text []byte, from, to int) [2]int {
	start := bytes.LastIndexByte(text[:from], '\n') + 1
	end := bytes.IndexByte(text[to:], '\n')
	if end < 0 || len(bytes.TrimSpace(text[start:from])) > 0 || len(bytes.TrimSpace(text[to:to+end])) > 0 {
		return [2]int{from, to}
	}
	return [2]int{start, to + end + 1}
}

// qualifiers returns the names that stand before a dot in the code, such as fmt in
// fmt.Println.
func qualifiers(file *ast.File) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := s.X.(*ast.Ident); ok {
				names[id.Name] = true
			}
		}
		return true
	})
	return names
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// namesOf returns the names that an import may have in the code. Without an explicit name,
// namesOf guesses the package's name from the last element of the import path.
func namesOf(spec *ast.ImportSpec) []string {
	if spec.Name != nil {
		return []string{spec.Name.Name}
	}
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return nil
	}
	base := path.Base(p)
	if majorVersion.MatchString(base) {
		base = path.Base(path.Dir(p))
	}
	if name, version, ok := strings.Cut(base, "."); ok && majorVersion.MatchString(version) {
		base = name
	}
	return []string{base, strings.TrimPrefix(base, "go-"), strings.TrimSuffix(base, "-go")}
}
