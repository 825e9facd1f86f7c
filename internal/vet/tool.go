package vet

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// dependenciesFlag is the name of a flag for the binary that "go vet" runs. With the flag,
// the binary also reports diagnostics about imported packages, and a marker for each package.
//
// By default, the go command (1.26) requests no diagnostics about imported packages. It
// caches the results, and uses them when these packages are checked later.
//
// If the go command is killed at the wrong moment, any cached result may lack its
// diagnostics and its marker. When [Run] misses a marker, it calls "go vet" again with
// another value of the flag. The go command then ignores the old results, because the value
// is part of the cache key.
const dependenciesFlag = "dependencies"

// marker is the category of an extra diagnostic about each package. A package without this
// diagnostic is missing in the output of "go vet", and [Run] must try again.
const marker = "answered"

// withTests is the text of the diagnostic about a package that has its test files. The go
// command may check a package twice: with its test files, and without them for the packages
// that import it. Both answers have the same import path.
const withTests = "answered with test files"

// IsToolCall reports whether the arguments args come from the go command. args does not
// contain the name of the process.
//
// The go command runs the binary of "go vet -vettool" with -V=full, with -flags, or with
// flags and the file that describes one package.
func IsToolCall(args []string) bool {
	if len(args) == 0 {
		return false
	}
	last := args[len(args)-1]
	if strings.HasSuffix(last, ".cfg") {
		return len(args) == 1 || strings.HasPrefix(args[0], "-")
	}
	return len(args) == 1 && (last == "-V=full" || last == "-flags")
}

// ToolMain performs a request of the go command, such as the analysis of one package, and
// exits the process. Call it only if [IsToolCall] returns true.
//
// [Run] makes "go vet" start a binary for each package: Options.Tool, or by default the
// running binary again. The main function of this binary must begin with:
//
//	if vet.IsToolCall(os.Args[1:]) {
//		vet.ToolMain(analyzers...)
//	}
func ToolMain(analyzers ...*analysis.Analyzer) {
	flag.String(dependenciesFlag, "", "for sqsfifo vet: report on dependencies as well, and that a package was analyzed")
	last := len(os.Args) - 1
	if os.Args[last] == "-V=full" {
		// The go command calls the tool with -V=full first. It shows standard error, and sets
		// GOVERSION to its own version.
		if err := newerThanBuilt(os.Getenv("GOVERSION"), runtime.Version()); err != nil {
			fmt.Fprintln(os.Stderr, "sqsfifo:", err)
			os.Exit(2)
		}
	}
	if strings.HasSuffix(os.Args[last], ".cfg") {
		byRun := isSet(os.Args[1:], dependenciesFlag)
		unit, err := withDiagnostics(os.Args[last], byRun, isSet(os.Args[1:], "fix"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "sqsfifo:", err)
			os.Exit(1)
		}
		os.Args[last] = unit
		if byRun {
			for i, a := range analyzers {
				analyzers[i] = withMarker(a)
			}
		}
	}
	unitchecker.Main(analyzers...)
}

func isSet(args []string, name string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		arg = "-" + strings.TrimLeft(arg, "-")
		return arg == "-"+name || strings.HasPrefix(arg, "-"+name+"=")
	})
}

// withMarker returns a copy of an analyzer. For each package that it analyzes, the copy also
// reports an extra diagnostic: see the constant `marker`.
func withMarker(a *analysis.Analyzer) *analysis.Analyzer {
	out := *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		result, err := a.Run(pass)
		text := marker
		for _, f := range pass.Files {
			if isTest(pass.Fset.File(f.FileStart).Name()) {
				text = withTests
			}
		}
		pass.Report(analysis.Diagnostic{Pos: pass.Files[0].Package, Category: marker, Message: text})
		return result, err
	}
	return &out
}

// withDiagnostics adds diagnostics to a request about an imported package. The parameter
// `file` is the path of the request. withDiagnostics returns the path of a changed copy, or
// `file` if nothing must change.
//
// If the parameter `all` is false, only requests about packages of the main module change.
// The user may check these packages later. The go command may then use the cached results,
// so the results need diagnostics.
func withDiagnostics(file string, all, fix bool) (string, error) {
	text, err := os.ReadFile(file) // #nosec G304 -- the go command's own file
	if err != nil {
		return "", err
	}
	var unit map[string]json.RawMessage
	if err := json.Unmarshal(text, &unit); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	var wanted struct {
		ModulePath, ModuleVersion string                         // of Go 1.26
		Module                    struct{ Path, Version string } // of Go 1.27
		VetxOnly                  bool
	}
	if err := json.Unmarshal(text, &wanted); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	path, version := cmp.Or(wanted.Module.Path, wanted.ModulePath), cmp.Or(wanted.Module.Version, wanted.ModuleVersion)
	// With -fix, a request about an imported package need not change: its cached result has
	// no fixes, and a later "go vet -fix" of this package ignores results without fixes.
	if main := path != "" && version == ""; !wanted.VetxOnly || !all && (!main || fix) {
		return file, nil
	}
	unit["VetxOnly"] = json.RawMessage("false")
	if text, err = json.Marshal(unit); err != nil {
		return "", err
	}
	file = strings.TrimSuffix(file, ".cfg") + ".diagnostics.cfg"
	return file, os.WriteFile(file, text, 0o600)
}
