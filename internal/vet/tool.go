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
// each package. With the flag, the tool reports the diagnostics of imported packages, too,
// and adds one diagnostic to each package (see marker). The flag works around two faults of
// the go command (1.26), which lose findings:
//
//   - The go command may ask for the facts of an imported package only. It caches the
//     result without diagnostics, and a later run for the package gets this result.
//   - The go command stores a package's facts before its result. If the go command is
//     killed between the two, later runs print nothing about the package. Run tries again
//     with another value of the flag, because the go command caches results by flags.
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

// ToolMain answers a call by the go command, usually with an analysis of one package, and
// exits the process. Call it only if [IsToolCall] returns true.
//
// If Options.Tool is empty, [Run] makes "go vet" start the running binary again as its
// tool. The main function of this binary must begin with IsToolCall, and with ToolMain if
// the result is true.
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

// withMarker returns a copy of analyzer a that also reports one diagnostic for each
// package, with the category marker.
func withMarker(a *analysis.Analyzer) *analysis.Analyzer {
	out := *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		result, err := a.Run(pass)
		pass.Report(analysis.Diagnostic{Pos: pass.Files[0].Package, Category: marker, Message: marker})
		return result, err
	}
	return &out
}

// withDiagnostics returns the file that describes the package to analyze. If the go command
// asks for facts only, but diagnostics are needed, the result is a changed copy of the file
// in the same folder.
//
// If all is true, every package needs diagnostics. Otherwise packages of the main module
// need them, because the go command caches the result for a later call.
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
	// With -fix, the go command uses no cached results for named packages.
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
