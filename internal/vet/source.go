package vet

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"strconv"

	"golang.org/x/tools/go/packages"
)

// code is the parsed source of one package, with the type information that rule SF020 (no
// compliance test) needs.
type code struct {
	name  string
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
}

// sources caches the texts of files, by path. A package and its variant with tests have
// most files in common.
type sources map[string][]byte

func (s sources) read(file string) ([]byte, error) {
	text, ok := s[file]
	if ok {
		return text, nil
	}
	text, err := os.ReadFile(file) // #nosec G304 -- a source file listed by the go command
	if err != nil {
		return nil, err
	}
	s[file] = text
	return text, nil
}

// mustCheck reports whether SF020 (missing compliance test) may have a finding in the files of a
// package. It searches their text for the import path of this module and for SF020.
func (s sources) mustCheck(files []string) (bool, error) {
	imported := []byte(strconv.Quote(sdkPath))
	for _, file := range files {
		text, err := s.read(file)
		if err != nil {
			return false, err
		}
		if bytes.Contains(text, imported) || bytes.Contains(text, []byte("`"+sdkPath+"`")) || bytes.Contains(text, []byte(noComplianceTest)) {
			return true, nil
		}
		delete(s, file) // the text is not needed again
	}
	return false, nil
}

// check parses a package and finds the types that SF020 needs. Most types of imported
// packages stay unknown, because check does not load these packages.
func (s sources) check(p *packages.Package) (*code, error) {
	c := &code{fset: token.NewFileSet(), info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{},
		Uses:  map[*ast.Ident]types.Object{},
	}}
	for _, name := range p.GoFiles {
		text, err := s.read(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(c.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		c.files = append(c.files, file)
	}
	if len(c.files) > 0 {
		c.name = c.files[0].Name.Name
	}
	config := types.Config{
		Importer:                 known{},
		FakeImportC:              true,
		DisableUnusedImportCheck: true,
		Error:                    func(error) {}, // makes Check continue after a type error
	}
	// The package compiles: type errors come only from the imports, which are not loaded.
	_, _ = config.Check(p.PkgPath, c.fset, c.files, c.info)
	return c, nil
}

// known is a types.Importer that reads no files. A package that matters for SF020 (no
// compliance test) gets only the names that the rule looks for, such as NewProducer. Any
// other package is empty.
type known map[string]*types.Package

func (k known) Import(name string) (*types.Package, error) {
	if p := k[name]; p != nil {
		return p, nil
	}
	p := types.NewPackage(name, path.Base(name))
	k[name] = p
	declare := func(o types.Object) { p.Scope().Insert(o) }
	function := func(name string) {
		declare(types.NewFunc(token.NoPos, p, name, types.NewSignatureType(nil, nil, nil, nil, nil, false)))
	}
	switch name {
	case sdkPath:
		function("NewProducer")
		function("NewProducerOn")
	case fakePath:
		queue := types.NewTypeName(token.NoPos, p, "Queue", nil)
		fake := types.NewNamed(queue, types.NewStruct(nil, nil), nil)
		declare(queue)
		results := types.NewTuple(types.NewVar(token.NoPos, p, "", types.NewPointer(fake)), types.NewVar(token.NoPos, p, "", types.Universe.Lookup("error").Type()))
		config := types.NewTypeName(token.NoPos, p, "Config", nil)
		parameter := types.NewVar(token.NoPos, p, "", types.NewNamed(config, types.NewStruct(nil, nil), nil))
		declare(config)
		declare(types.NewFunc(token.NoPos, p, "NewQueue", types.NewSignatureType(nil, nil, nil, types.NewTuple(parameter), results, false)))
		value := types.NewTypeParam(types.NewTypeName(token.NoPos, p, "T", nil), types.Universe.Lookup("any").Type())
		both := types.NewTuple(types.NewVar(token.NoPos, p, "", value), results.At(1))
		declare(types.NewFunc(token.NoPos, p, "Must", types.NewSignatureType(nil, nil, []*types.TypeParam{value}, both, types.NewTuple(both.At(0)), false)))
	case suitePath:
		function("TestProducer")
		function("CheckProducer")
	case "testing":
		for _, name := range []string{"T", "B", "F", "TB", "M", "PB"} {
			o := types.NewTypeName(token.NoPos, p, name, nil)
			t := types.NewNamed(o, types.NewStruct(nil, nil), nil)
			for _, method := range []string{"Skip", "Skipf", "SkipNow"} {
				receiver := types.NewVar(token.NoPos, p, "", types.NewPointer(t))
				t.AddMethod(types.NewFunc(token.NoPos, p, method, types.NewSignatureType(receiver, nil, nil, nil, nil, false)))
			}
			declare(o)
		}
	}
	p.MarkComplete()
	return p, nil
}
