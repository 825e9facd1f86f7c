package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"
)

// maxRounds limits the number of loads of a module. Each load leaves out the code that
// had errors in the load before.
const maxRounds = 12

// completeGoMod writes the go.mod for this run. A replacement by another folder of the
// repository becomes a copy of that folder. Requirements on modules missing from every
// proxy are dropped, and the requirements listed in modules.go are added. A module without
// go.mod gets a new go.mod.
func (m module) completeGoMod(dir string, repos *repositories) error {
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name) // #nosec G304 -- of a module of the list
	if os.IsNotExist(err) {
		text, err = []byte("module "+m.path+"\n\ngo 1.16\n"), nil
	}
	if err != nil {
		return err
	}
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	for i, r := range slices.Clone(file.Replace) {
		if !strings.HasPrefix(r.New.Path, "..") || repos == nil {
			continue
		}
		beside := filepath.Join(dir, "_beside", strconv.Itoa(i)) // a folder whose name starts with _ matches no package pattern
		subdir := strings.TrimPrefix(path.Join("/", m.subdir, r.New.Path), "/")
		if _, err := repos.unpack(module{path: m.path, version: m.version, subdir: subdir}, beside); err != nil {
			return err
		}
		if err := file.AddReplace(r.Old.Path, r.Old.Version, beside, ""); err != nil {
			return err
		}
	}
	for _, name := range m.lacks {
		if err := file.DropRequire(name); err != nil {
			return err
		}
	}
	for _, r := range m.requires {
		name, version, _ := strings.Cut(r, "@")
		if err := file.AddRequire(name, version); err != nil {
			return err
		}
	}
	file.Cleanup()
	if text, err = file.Format(); err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o600)
}

// load returns the packages with their imports, as syntax and types. For a module with
// missing imports, load leaves out the statements that need these imports.
func (m module) load(ctx context.Context, dir string) ([]*packages.Package, error) {
	gone := omissions{}
	for range maxRounds {
		loaded, err := packages.Load(&packages.Config{
			Context: ctx,
			Dir:     dir,
			Mode:    packages.LoadAllSyntax | packages.NeedModule,
			Env:     append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=local"),
			ParseFile: func(fset *token.FileSet, name string, src []byte) (*ast.File, error) {
				file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
				if file != nil {
					gone.apply(fset.File(file.FileStart), file)
				}
				return file, err
			},
		}, m.packages...)
		if err != nil || len(m.lacks) == 0 {
			return loaded, err
		}
		if more := gone.add(dir, loaded); !more {
			forget(loaded, m.lacks)
			return loaded, nil
		}
	}
	return nil, fmt.Errorf("%s: errors after %d rounds without the code that needs %s", m, maxRounds, strings.Join(m.lacks, ", "))
}

// forget removes the imports of packages from the missing modules, and the errors about
// these imports.
func forget(loaded []*packages.Package, lacks []string) {
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for path := range p.Imports {
			if within(path, lacks) {
				delete(p.Imports, path)
				p.Errors = slices.DeleteFunc(p.Errors, func(e packages.Error) bool { return e.Kind == packages.ListError })
			}
		}
		p.IllTyped = len(p.Errors) > 0
		for _, imported := range p.Imports {
			p.IllTyped = p.IllTyped || imported.IllTyped
		}
	})
}

// within reports whether a package belongs to one of the modules.
func within(pkg string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool { return pkg == m || strings.HasPrefix(pkg, m+"/") })
}

// omissions says which code to leave out. The keys are a file's name and the offset of an
// error in the file. The value says how much code around the error is left out.
type omissions map[string]map[int]extent

// extent says how much code around an error is left out.
type extent uint8

const (
	statement   extent = iota + 1 // the statement, struct field or import with the error
	wholeBody                     // the body of the function with the error
	declaration                   // the declaration of the function, type or variable with the error
)

// add records the places of type errors in packages below a folder, so that the next load
// leaves out the code there. If an error is at a recorded place again, more code around it
// will be left out. add reports whether it changed anything.
func (o omissions) add(dir string, loaded []*packages.Package) bool {
	more := false
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, e := range p.TypeErrors {
			at := e.Fset.Position(e.Pos)
			if !strings.HasPrefix(at.Filename, dir+string(filepath.Separator)) {
				continue
			}
			if o[at.Filename] == nil {
				o[at.Filename] = map[int]extent{}
			}
			if o[at.Filename][at.Offset] < declaration {
				o[at.Filename][at.Offset]++
				more = true
			}
		}
	})
	return more
}

// apply removes omitted code from a file.
func (o omissions) apply(at *token.File, file *ast.File) {
	for offset, much := range o[at.Name()] {
		omit(file, at.Pos(offset), much)
	}
}

// omit removes code around a position, as much as the extent says.
func omit(file *ast.File, pos token.Pos, much extent) {
	file.Decls = slices.DeleteFunc(file.Decls, func(d ast.Decl) bool {
		if pos < d.Pos() || d.End() < pos {
			return false
		}
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body == nil || pos < d.Body.Pos() || much == declaration {
				return true
			}
			if much == wholeBody || !omitStatement(d.Body, pos) {
				d.Body.List = []ast.Stmt{&ast.ExprStmt{X: &ast.CallExpr{Fun: ast.NewIdent("panic"), Args: []ast.Expr{ast.NewIdent("nil")}}}}
			}
		case *ast.GenDecl:
			d.Specs = slices.DeleteFunc(d.Specs, func(s ast.Spec) bool {
				return s.Pos() <= pos && pos <= s.End() && (much == declaration || !omitField(s, pos))
			})
			return len(d.Specs) == 0
		}
		return false
	})
}

// omitStatement removes the innermost statement around a position that is in a list of
// statements. It reports whether there was such a statement.
func omitStatement(body *ast.BlockStmt, pos token.Pos) bool {
	var list *[]ast.Stmt
	var at int
	ast.Inspect(body, func(n ast.Node) bool {
		var in *[]ast.Stmt
		switch n := n.(type) {
		case *ast.BlockStmt:
			in = &n.List
		case *ast.CaseClause:
			in = &n.Body
		case *ast.CommClause:
			in = &n.Body
		default:
			return n == nil || n.Pos() <= pos && pos <= n.End()
		}
		for i, s := range *in {
			if s.Pos() <= pos && pos < s.End() {
				list, at = in, i
			}
		}
		return true
	})
	if list == nil {
		return false
	}
	*list = slices.Delete(*list, at, at+1)
	return true
}

// omitField removes the struct field or interface method around a position. It reports
// whether there was one.
func omitField(spec ast.Spec, pos token.Pos) bool {
	done := false
	ast.Inspect(spec, func(n ast.Node) bool {
		fields, ok := n.(*ast.FieldList)
		if !ok || done {
			return !done
		}
		fields.List = slices.DeleteFunc(fields.List, func(f *ast.Field) bool {
			if _, nested := f.Type.(*ast.StructType); nested || pos < f.Pos() || f.End() < pos {
				return false
			}
			done = true
			return true
		})
		return true
	})
	return done
}
