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

// dependencies is the name of a flag of the tool. [Run] sets the flag when it runs "go
// vet". The tool then reports diagnostics of every package, including packages that are
// only imported. It also adds one diagnostic to each analyzed package. The flag's value
// is any text.
//
// The flag works around two faults in the cache of the go command (1.26) that lose
// findings. First, the go command may ask for the facts of a package without its
// diagnostics. If a later run asks for the diagnostics, the go command uses the cached
// result, which has none. Second, the go command stores the facts before the result. A run
// killed between the two leaves a package without a result.
//
// With this flag every result has the diagnostics. If the added diagnostic is missing,
// Run knows that the result is missing. A try with another value of the flag does not use
// the cached results.
const dependencies = "dependencies"

// answered is the category of the diagnostic that the tool adds to every package.
const answered = "answered"

// IsToolCall reports whether the arguments of the process, without its name, come from
// the go command. The go command runs the binary of "go vet -vettool" with -V=full,
// with -flags, or with flags and the file that describes one package.
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

// ToolMain answers a call of the go command and does not return. [IsToolCall] must be
// true. The main function of a binary that calls [Run] without Options.Tool must begin
// with IsToolCall and, if it returns true, ToolMain.
func ToolMain(analyzers ...*analysis.Analyzer) {
	flag.String(dependencies, "", "for sqsfifo vet: report on dependencies as well, and that a package was analyzed")
	last := len(os.Args) - 1
	if strings.HasSuffix(os.Args[last], ".cfg") {
		byRun := isSet(os.Args[1:], dependencies)
		unit, err := withDiagnostics(os.Args[last], byRun, isSet(os.Args[1:], "fix"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "sqsfifo:", err)
			os.Exit(1)
		}
		os.Args[last] = unit
		if byRun {
			for i, a := range analyzers {
				analyzers[i] = answering(a)
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

// answering returns an analyzer that does the same as a and also reports one diagnostic of
// the category answered for each package.
func answering(a *analysis.Analyzer) *analysis.Analyzer {
	out := *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		result, err := a.Run(pass)
		pass.Report(analysis.Diagnostic{Pos: pass.Files[0].Package, Category: answered, Message: answered})
		return result, err
	}
	return &out
}

// withDiagnostics returns the name of the file that describes a package for the analysis.
// The parameter file names the go command's description. For an imported package the go
// command may ask only for facts, without diagnostics. To get its diagnostics,
// withDiagnostics writes a changed copy to the same folder and returns the copy's name. The
// go command removes the folder later. In all other cases withDiagnostics returns file.
//
// With all, set by Run, every package gets diagnostics. Without all, every package of the
// main module gets them, even if it is only imported: the go command keeps the result, and
// a later run may name this package. Packages of other modules, known by their module
// version, get none. With -fix the go command runs the analysis again for each named
// package, so an imported package gets none.
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
