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

// dependencies is the flag for calls of this binary by [Run] through the go command:
// report on every package, including packages that are only imported, and add a
// diagnostic to each analyzed package. Its value is any text.
//
// The cache of the go command (1.26) has two faults that lose findings. The key of an
// answer does not include whether the go command asked for diagnostics, so a package
// that was first analyzed as a dependency, only for its facts, keeps an empty answer.
// And the go command stores the facts before the answer, so a run killed between the two
// leaves a package without an answer. With this flag every answer has the diagnostics,
// and Run detects missing answers. A different value makes a different key.
const dependencies = "dependencies"

// answered is the category of the additional diagnostic of every package.
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

// answering adds one diagnostic for each package to the analyzer.
func answering(a *analysis.Analyzer) *analysis.Analyzer {
	out := *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		result, err := a.Run(pass)
		pass.Report(analysis.Diagnostic{Pos: pass.Files[0].Package, Category: answered, Message: answered})
		return result, err
	}
	return &out
}

// withDiagnostics returns a package description with which the analysis also reports
// diagnostics if the go command asked only for facts. The new file is in the folder of
// the go command's file; the go command removes the folder.
//
// If all is true, every package gets diagnostics; only Run sets all. A plain "go vet
// -vettool" also gets the findings of main module packages that are only imported,
// because the go command keeps their answer for later runs that name these packages. A
// module with a version is a dependency, and its findings stay out. With -fix the go
// command asks again for each named package, so only named packages get diagnostics.
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
