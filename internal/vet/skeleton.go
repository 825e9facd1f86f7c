package vet

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"golang.org/x/tools/go/packages"
)

// SkeletonFile is the name of the file made by [Skeleton.Write].
const SkeletonFile = "sqsfifo_compliance_test.go"

// Skeleton is the beginning of a compliance test for one package. The user completes the
// test.
type Skeleton struct {
	Untested

	// event is the type of the events that the package's producer sends, or nil if unknown.
	event types.Type

	// scopes have the names declared in the package and its tests. The compliance test must
	// use other names.
	scopes []*types.Scope

	// importable has the paths of the packages whose types the test may name: the tested
	// package, which contains the test, and its direct imports. An import of any other
	// package could cause an import cycle.
	importable map[string]bool
}

// Skeletons prepares a compliance test for each package in the list `untested`, in the same
// order.
// The Options must be those of the [Run] that reported these packages. Skeletons loads
// types, so it compiles the imports of the packages.
func Skeletons(ctx context.Context, o Options, untested []Untested) ([]Skeleton, error) {
	if len(untested) == 0 {
		return nil, nil
	}
	o.Patterns = nil
	for _, u := range untested {
		o.Patterns = append(o.Patterns, u.Path)
	}
	loaded, err := load(ctx, o, packages.LoadSyntax|packages.NeedForTest)
	if err != nil {
		return nil, err
	}
	if err := loadErrors(loaded); err != nil {
		return nil, err
	}
	var out []Skeleton
	for _, u := range untested {
		out = append(out, skeletonOf(u, loaded))
	}
	return out, nil
}

func skeletonOf(u Untested, loaded []*packages.Package) Skeleton {
	s := Skeleton{Untested: u, importable: map[string]bool{u.Path: true}}
	for _, p := range loaded {
		switch {
		case p.ForTest == "" && p.PkgPath == u.Path:
			code := &code{p.Name, p.Fset, p.Syntax, p.TypesInfo}
			ignores := ignoresOf(code)
			for _, made := range constructions(code) {
				if s.event == nil && !ignores.cover(code.fset.Position(made.name.Pos())) {
					s.event = made.event
				}
			}
			for path := range p.Imports {
				s.importable[path] = true
			}
			s.scopes = append(s.scopes, p.Types.Scope())
		case p.ForTest == u.Path && p.PkgPath == u.Path:
			s.scopes = append(s.scopes, p.Types.Scope())
		}
	}
	return s
}

// Write creates the file [SkeletonFile] in the package's folder and returns its path. The
// file compiles. Its test fails until the user fills in Send and Events.
//
// If the file exists, Write does not change it. Write then returns an error that matches
// [os.ErrExist].
func (s Skeleton) Write() (string, error) {
	code, err := s.skeleton()
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.Dir, SkeletonFile)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) // #nosec G302 G304 -- source code that everybody may read, in the folder of the package
	if err != nil {
		return "", err
	}
	if _, err = f.Write(code); err != nil {
		f.Close()
		return "", err
	}
	return path, f.Close()
}

// skeletonText is the template of the compliance test. The test is in the package itself,
// because types of events are often unexported, and because external tests cannot import
// a main package.
var skeletonText = template.Must(template.New("").Parse(`package {{.Package}}

import (
{{- range .Imports}}
	{{.}}
{{- end}}
)

// {{.Test}} runs the compliance suite of the KFM message contract on this
// package's producer. It fails until Send and Events are filled in.
func {{.Test}}(t *{{.testing}}.T) {
	{{.compliance}}.TestProducer(t, {{.compliance}}.Suite[{{.Event}}]{
{{- if .Placeholder}}
		// The source does not show the type of the events: put the producer's own type here and in Send.
{{- end}}
		Send: func(ctx {{.context}}.Context, client *{{.sqs}}.Client, queueURL string, event {{.Event}}) error {
			// Create the producer as the program does, with client and queueURL, and then:
			//
			//	defer producer.Close(ctx)
			//	_, err = producer.Send(ctx, event)
			//	return err
			return {{.errors}}.New("{{.Test}}: fill in Send")
		},
		Events: []{{.Event}}{
			// Two or more real events with the smallest possible differences, two of them in one message group.
		},
	})
}
`))

func (s Skeleton) skeleton() ([]byte, error) {
	names := map[string]string{} // by import path
	imported := func(path, name string) string {
		if names[path] == "" {
			names[path] = s.unusedName(name, names)
		}
		return names[path]
	}
	data := map[string]any{"Package": s.Package, "Test": s.unusedName("TestCompliance", nil)}
	for _, path := range []string{"context", "errors", "testing", "github.com/aws/aws-sdk-go-v2/service/sqs", suitePath} {
		name := filepath.Base(path)
		data[name] = imported(path, name)
	}

	event := "struct{ ID string }"
	named := s.event != nil && s.nameable(s.event)
	if named {
		event = types.TypeString(s.event, func(p *types.Package) string {
			if p.Path() == s.Path {
				return ""
			}
			return imported(p.Path(), p.Name())
		})
	}
	data["Event"], data["Placeholder"] = event, !named

	var std, others []string
	for path, name := range names {
		line := strconv.Quote(path)
		if name != filepath.Base(path) {
			line = name + " " + line
		}
		if isStandard(path) {
			std = append(std, line)
		} else {
			others = append(others, line)
		}
	}
	slices.Sort(std)
	slices.Sort(others)
	data["Imports"] = slices.Concat(std, []string{""}, others)

	var b bytes.Buffer
	if err := skeletonText.Execute(&b, data); err != nil {
		return nil, err
	}
	code, err := format.Source(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("the compliance test of %s: %w", s.Path, err)
	}
	return code, nil
}

// unusedName returns the name in the parameter `name` if neither the package, nor its internal
// tests, nor an import in the map `taken` has this name. Otherwise unusedName appends the
// smallest number, from 2, that makes the name unused.
func (s Skeleton) unusedName(name string, taken map[string]string) string {
	for n := 1; ; n++ {
		candidate := name
		if n > 1 {
			candidate = name + strconv.Itoa(n)
		}
		used := slices.ContainsFunc(s.scopes, func(scope *types.Scope) bool { return scope.Lookup(candidate) != nil })
		for _, t := range taken {
			used = used || t == candidate
		}
		if !used {
			return candidate
		}
	}
}

// nameable reports whether a test file of the package can contain the name of type t.
func (s Skeleton) nameable(t types.Type) bool {
	all := func(list *types.TypeList) bool {
		for arg := range list.Types() {
			if !s.nameable(arg) {
				return false
			}
		}
		return true
	}
	declared := func(o *types.TypeName) bool {
		return o.Pkg() == nil || o.Parent() == o.Pkg().Scope() && s.importable[o.Pkg().Path()] && (o.Exported() || o.Pkg().Path() == s.Path)
	}
	switch t := t.(type) {
	case *types.Basic:
		return true
	case *types.Alias:
		return declared(t.Obj()) && all(t.TypeArgs())
	case *types.Named:
		return declared(t.Obj()) && all(t.TypeArgs())
	case *types.Pointer:
		return s.nameable(t.Elem())
	case *types.Slice:
		return s.nameable(t.Elem())
	case *types.Array:
		return s.nameable(t.Elem())
	case *types.Map:
		return s.nameable(t.Key()) && s.nameable(t.Elem())
	}
	// Type parameters are undefined in the compliance test. Types without a name are hard
	// to read.
	return false
}

// isStandard reports whether the path is in the standard library: its first element has
// no dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
