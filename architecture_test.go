package sqsfifo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

const root = "github.com/kansas-frontier-matrix/sqsfifo"

// Some packages must not depend on certain others, not even indirectly. For example, the
// root package must not depend on package testing.
func TestDependencies(t *testing.T) {
	imports := importsOf(t)
	for _, tc := range []struct {
		pkg       string
		forbidden []string
	}{
		{".", []string{"testing", "golang.org/x/tools", "github.com/golangci", "github.com/stretchr", "go.opentelemetry.io/otel/sdk", root + "/sqstest", root + "/lint/fifovet", root + "/internal/vet"}},
		{"./consumer", []string{"testing", "golang.org/x/tools", "github.com/stretchr", "go.opentelemetry.io/otel/sdk", root + "/sqstest", root + "/lint/fifovet"}},
		{"./sqstest", []string{"golang.org/x/tools", "github.com/golangci", "github.com/stretchr", root + "/lint/fifovet", root + "/internal/vet"}},
		{"./lint", []string{"testing", "golang.org/x/tools", "github.com/aws", "go.opentelemetry.io", root}},
		{"./lint/fifovet", []string{"testing", "github.com/aws", "go.opentelemetry.io", root}},
		{"./lint/golangci", []string{"testing", "github.com/aws", "go.opentelemetry.io", root}},
		{"./internal/vet", []string{"testing", "github.com/aws", "go.opentelemetry.io", "github.com/golangci", root}},
		{"./canonicaljson", []string{"."}}, // "." forbids every import outside the standard library and this module
		{"./internal/window", []string{"."}},
		{"./idempotency", []string{"."}},
		{"./idempotency/ledger", []string{"."}},
		{"./idempotency/sqlstore", []string{"."}},
		{"./idempotency/httpidem", []string{"."}},
	} {
		reached := map[string]bool{}
		reach(imports, path.Join(root, tc.pkg), reached)
		require.Greater(t, len(reached), 1, tc.pkg)
		for dep := range reached {
			for _, f := range tc.forbidden {
				wrong := dep == f || f != root && strings.HasPrefix(dep, f+"/")
				if f == "." {
					first, _, _ := strings.Cut(dep, "/")
					wrong = strings.Contains(first, ".") && !strings.HasPrefix(dep, root)
				}
				assert.False(t, wrong, "%s reaches %s", tc.pkg, dep)
			}
		}
	}
}

// Each package may import at most the listed packages of this module.
func TestArrows(t *testing.T) {
	imports := importsOf(t)
	for pkg, allowed := range map[string][]string{
		".":                    {"canonicaljson", "idempotency", "internal/attempt", "internal/clock", "internal/digest", "internal/dispatch", "internal/foreign", "internal/jsondiff", "internal/memory", "internal/observe", "internal/outage", "internal/queueurl", "internal/sink", "internal/snsbody", "internal/sourceuri", "internal/sqscall", "internal/textview", "internal/verdict", "internal/window", "internal/wire", "lint"},
		"./internal/attempt":   nil,
		"./internal/verdict":   {"internal/attempt"},
		"./internal/clock":     nil,
		"./internal/digest":    {"internal/textview"},
		"./internal/directive": {"lint"},
		"./internal/dispatch":  {"internal/attempt", "internal/pacer", "internal/verdict"},
		"./internal/sink":      nil,
		"./internal/memory":    {"idempotency", "internal/attempt", "internal/memory/process", "internal/memory/store", "internal/verdict", "internal/window"},
		"./internal/observe":   {"internal/attempt", "internal/verdict"},
		"./internal/outage":    nil,
		"./internal/pacer":     {"internal/attempt"},
		"./internal/queueurl":  nil,
		"./internal/jsondiff":  nil,
		"./internal/snsbody":   nil,
		"./internal/sourceuri": nil,
		"./internal/foreign":   {"internal/queueurl"},
		"./internal/sqscall":   {"internal/attempt", "internal/digest", "internal/foreign", "internal/queueurl", "internal/window", "internal/wire"},
		"./internal/window":    nil,
		"./internal/wire":      {"canonicaljson"},
		"./internal/sqldb":     {"idempotency"},
		"./internal/pgserver":  nil,
		"./canonicaljson":      {"canonicaljson/internal/decimal", "canonicaljson/internal/word"},
		"./internal/attrname":  nil,

		"./idempotency":             {"internal/clock"},
		"./idempotency/ledger":      {"idempotency"},
		"./idempotency/sqlstore":    {"idempotency", "idempotency/ledger", "internal/clock", "internal/sink", "internal/sqldb"},
		"./idempotency/httpidem":    {"idempotency"},
		"./internal/memory/process": {"internal/attempt", "internal/clock", "internal/verdict", "internal/window"},
		"./internal/memory/store":   {"idempotency", "internal/attempt", "internal/verdict", "internal/window"},

		// The test does not check imports of the root package. Packages outbox, replay and
		// consumer import the root package.
		"./outbox":                {"idempotency", "internal/clock", "internal/sqldb", "internal/window", "lint"},
		"./replay":                {"consumer", "idempotency", "internal/messageline", "internal/window", "outbox"},
		"./consumer/consumertest": {"internal/clock", "sqstest"},
		"./consumer/lambdasqs":    nil,
		"./consumer":              {"canonicaljson", "idempotency", "internal/attempt", "internal/clock", "internal/digest", "internal/observe", "internal/pacer", "internal/sink", "internal/snsbody", "internal/sqscall"},
		"./lint":                  {"canonicaljson", "internal/attrname", "internal/jsondiff", "internal/textview", "internal/window"},
		"./internal/textview":     nil,
	} {
		list, ok := imports[path.Join(root, pkg)]
		require.True(t, ok, pkg)
		for _, imported := range list {
			if own, ok := strings.CutPrefix(imported, root+"/"); ok {
				assert.Contains(t, allowed, own, "%s imports it", pkg)
			}
		}
	}
}

// importsOf returns the imports of each package of this module and of its dependencies,
// by import path, as reported by the go command.
func importsOf(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepathOfGo(t), "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	require.NoError(t, err)
	imports := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		imports[fields[0]] = fields[1:]
	}
	return imports
}

// reach adds a package and its direct and indirect imports to the set `reached`.
func reach(imports map[string][]string, pkg string, reached map[string]bool) {
	if reached[pkg] {
		return
	}
	reached[pkg] = true
	for _, imported := range imports[pkg] {
		reach(imports, imported, reached)
	}
}

// No two files of the root package, or of package consumer, depend on each other, not
// even indirectly. So each file can be read before the files that use it.
func TestFilesHaveNoCycle(t *testing.T) {
	filepathOfGo(t)
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile,
	}, ".", "./consumer")
	require.NoError(t, err)
	require.Len(t, pkgs, 2)
	for _, pkg := range pkgs {
		require.Empty(t, pkg.Errors)
		names := namesBetweenFiles(pkg)
		for file := range names {
			if cycle := cycleFrom(names, file, []string{file}); cycle != nil {
				t.Errorf("files of %s name each other: %s", pkg.Name, strings.Join(cycle, " -> "))
				break
			}
		}
	}
}

// namesBetweenFiles maps each file to the other files whose declarations it uses.
func namesBetweenFiles(pkg *packages.Package) map[string]map[string]bool {
	fileOf := func(o types.Object) string { return filepath.Base(pkg.Fset.Position(o.Pos()).Filename) }
	out := map[string]map[string]bool{}
	for _, f := range pkg.Syntax {
		from := filepath.Base(pkg.Fset.Position(f.Pos()).Filename)
		out[from] = map[string]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			o := pkg.TypesInfo.Uses[id]
			if o == nil || o.Pkg() != pkg.Types {
				return true
			}
			if to := fileOf(o); to != from {
				out[from][to] = true
			}
			return true
		})
	}
	return out
}

func cycleFrom(names map[string]map[string]bool, file string, path []string) []string {
	for _, next := range slices.Sorted(maps.Keys(names[file])) {
		if next == path[0] {
			return append(path, next)
		}
		if slices.Contains(path, next) {
			continue
		}
		if cycle := cycleFrom(names, next, append(path, next)); cycle != nil {
			return cycle
		}
	}
	return nil
}

func filepathOfGo(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("no go command on the path of %s", runtime.GOOS)
	}
	return path
}

// The chapter "The heart" of ARCHITECTURE.md is short, and all files, functions, types,
// constants and tests that it names exist. Each verdict and each state has a row.
func TestHeart(t *testing.T) {
	page, err := os.ReadFile("ARCHITECTURE.md")
	require.NoError(t, err)
	_, chapter, found := strings.Cut(string(page), "\n## The heart\n")
	require.True(t, found)
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	assert.LessOrEqual(t, len(strings.Fields(chapter)), 1_200)

	declared := declarations(t, ".", "idempotency", "internal/attempt", "internal/verdict", "internal/window", "internal/dispatch",
		"internal/memory", "internal/memory/process", "internal/memory/store", "internal/sqscall",
		"internal/producertest/store", "internal/producertest/model", "internal/producertest/order", "internal/producertest/doubt")
	name := regexp.MustCompile("`([^`]+)`|\\b([A-Za-z]+(?:\\.[A-Za-z]+)+)\\b")
	checked := 0
	for line := range strings.Lines(chapter) {
		dir := "" // of the last file that the line names
		for _, m := range name.FindAllStringSubmatch(line, -1) {
			checked++
			switch text := m[1] + m[2]; {
			case !strings.HasSuffix(text, ".go"):
				assert.True(t, isDeclared(declared, dir, text), "%s, in the line %s", text, line)
			case strings.Contains(text, "/") || dir == "":
				dir = path.Dir(text)
				assert.FileExists(t, text)
			default: // another file of the same directory
				assert.FileExists(t, path.Join(dir, text))
			}
		}
	}
	assert.Greater(t, checked, 150)
	for name := range declared["internal/verdict"] {
		if kind := declared["internal/verdict"][name]; kind == "Kind" || kind == "State" {
			assert.Contains(t, chapter, "\n| `verdict."+name+"` |")
		}
	}
}

// isDeclared reports whether a name of the chapter is declared. In a line with a file, the
// name is one of the file's package. Otherwise the name may have a package in front, and is
// else one of any package.
func isDeclared(declared map[string]map[string]string, dir, name string) bool {
	if dir != "" {
		_, ok := declared[dir][name]
		return ok
	}
	for dir, names := range declared {
		of, ok := strings.CutPrefix(name, path.Base(dir)+".")
		if !ok {
			of = name
		}
		if _, ok := names[of]; ok {
			return true
		}
	}
	return false
}

// declarations returns the names declared in each directory, with the type of each constant:
// functions, methods and fields with their types, types, constants and variables.
func declarations(t *testing.T, dirs ...string) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{}
	for _, dir := range dirs {
		names := map[string]string{}
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		require.NoError(t, err)
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			for _, d := range f.Decls {
				declare(names, d)
			}
		}
		out[filepath.ToSlash(dir)] = names
	}
	return out
}

func declare(names map[string]string, d ast.Decl) {
	if f, ok := d.(*ast.FuncDecl); ok {
		name := f.Name.Name
		if f.Recv != nil {
			name = receiver(f.Recv.List[0].Type) + "." + name
		}
		names[name] = ""
		return
	}
	kind := "" // of a group of constants: only the first has it
	for _, s := range d.(*ast.GenDecl).Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			names[s.Name.Name] = ""
			if fields, ok := s.Type.(*ast.StructType); ok {
				for _, field := range fields.Fields.List {
					for _, name := range field.Names {
						names[s.Name.Name+"."+name.Name] = ""
					}
				}
			}
		case *ast.ValueSpec:
			if of, ok := s.Type.(*ast.Ident); ok {
				kind = of.Name
			}
			for _, name := range s.Names {
				names[name.Name] = kind
			}
		}
	}
}

// receiver returns the name of a receiver's type, without pointer and type parameters.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	default:
		return ""
	}
}
