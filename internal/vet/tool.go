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

// dependenciesFlag is a flag that [Run] gives to the tool, the binary that "go vet" runs on
// each package. With the flag, the tool also reports diagnostics about imported packages,
// and adds one diagnostic to each package (see marker). The flag works around two faults of
// the go command (1.26) that lose findings:
//
//   - For an imported package, the go command requests only facts, the data for the
//     analysis of other packages. It caches the result without diagnostics. A later run for
//     the package itself would get this cached result.
//   - The go command stores facts before diagnostics. If it is killed between these steps,
//     later runs print nothing about the package. Run then tries again with another value
//     of the flag, because the go command caches results by flags.
const dependenciesFlag = "dependencies"

// marker is the category of the diagnostic that the tool adds to every package. The
// diagnostic shows [Run] that the output of "go vet" includes the package.
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
// If Options.Tool is empty, [Run] makes "go vet" start the running binary again as its
// tool. The main function of this binary must call IsToolCall first. If IsToolCall returns
// true, the main function must call ToolMain.
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

// withMarker returns a copy of analyzer a. The copy reports an additional diagnostic for
// each package, to show [Run] that the package was analyzed.
func withMarker(a *analysis.Analyzer) *analysis.Analyzer {
	out := *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		result, err := a.Run(pass)
		pass.Report(analysis.Diagnostic{Pos: pass.Files[0].Package, Category: marker, Message: marker})
		return result, err
	}
	return &out
}

// withDiagnostics turns a request for facts into a request for facts and diagnostics. The
// parameter file is the path of the go command's request to analyze one package. The result
// is the path of a changed copy in the same folder, or file if nothing must change.
//
// If all is false, only requests for packages of the main module change. The user may name
// such a package in a later call, and the go command then uses the cached result.
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
	// With -fix, the request need not change: in a later call for this package, the go
	// command ignores a cached result without fixes.
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
