package vet

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/unitchecker"
)

// dependenciesFlag is the name of a flag. It makes the binary run by "go vet" also report
// diagnostics about imported packages, and a marker for each package.
//
// Without the flag, the go command (1.26) caches results for imported packages without
// diagnostics, and uses them when these packages are checked later. If the go command is
// killed at the wrong moment, any cached result may lack its diagnostics and its marker.
// When [Run] misses a marker, it calls "go vet" again with another value of the flag. The
// value is part of the cache key, so the go command does not use the cached result.
const dependenciesFlag = "dependencies"

// marker is the category of an extra diagnostic about each package. A package without this
// diagnostic is missing in the output of "go vet", and [Run] must try again.
const marker = "answered"

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

// withMarker returns a copy of an analyzer. The copy also reports the marker in each package.
func withMarker(a *analysis.Analyzer) *analysis.Analyzer {
	out := *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		result, err := a.Run(pass)
		pass.Report(analysis.Diagnostic{Pos: pass.Files[0].Package, Category: marker, Message: marker})
		return result, err
	}
	return &out
}

// withDiagnostics makes the request in the parameter `file` include diagnostics. It
// returns the path of a changed copy, or `file` if nothing must change.
//
// If the parameter `all` is false, only requests about packages of the main module change.
// The user may check such a package later, and the go command may then use the cached result
// of this request.
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
		ModulePath, ModuleVersion string
		VetxOnly                  bool
	}
	if err := json.Unmarshal(text, &wanted); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	// With -fix, the request need not change. Its cached result will have no fixes, so a
	// later "go vet -fix" of the package ignores the result.
	if main := wanted.ModulePath != "" && wanted.ModuleVersion == ""; !wanted.VetxOnly || !all && (!main || fix) {
		return file, nil
	}
	unit["VetxOnly"] = json.RawMessage("false")
	if text, err = json.Marshal(unit); err != nil {
		return "", err
	}
	file = strings.TrimSuffix(file, ".cfg") + ".diagnostics.cfg"
	return file, os.WriteFile(file, text, 0o600)
}
