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

// dependencies is the flag with which [Run] calls this binary through the go
// command: also report on the packages that are only imported by those named, and say
// of each package that it was analyzed. Its value is any text.
//
// The cache of the go command (1.26) has two faults that make a clean result of none.
// It keeps the answer about a package under a key that does not say whether diagnostics
// were asked for: a package that was first analyzed as a dependency, for its facts
// alone, has an empty answer from then on. And it stores the facts before the answer: a
// run that is killed between the two leaves a package without one. With this flag
// the answers to both questions are the same, and Run sees which are missing; another
// text is another key.
const dependencies = "dependencies"

// answered is the category of the diagnostic that every package has.
const answered = "answered"

// IsToolCall reports whether the arguments of the process, without its name, are those
// of the go command, which runs a binary as "go vet -vettool" says: with -V=full,
// with -flags, or with the file that describes one package after flags.
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

// ToolMain answers a call of the go command, for which [IsToolCall] is true, and does
// not return. A binary that calls [Run] without Options.Tool begins with both.
func ToolMain(analyzers ...*analysis.Analyzer) {
	flag.String(dependencies, "", "for sqsfifo vet: report on dependencies as well, and that a package was analyzed")
	last := len(os.Args) - 1
	if isSet(os.Args[1:], dependencies) && strings.HasSuffix(os.Args[last], ".cfg") {
		unit, err := withDiagnostics(os.Args[last])
		if err != nil {
			fmt.Fprintln(os.Stderr, "sqsfifo:", err)
			os.Exit(1)
		}
		os.Args[last] = unit
		for i, a := range analyzers {
			analyzers[i] = answering(a)
		}
	}
	unitchecker.Main(analyzers...)
}

func isSet(args []string, name string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix("-"+strings.TrimLeft(arg, "-"), "-"+name+"=")
	})
}

// answering is the analyzer with one diagnostic more for each package.
func answering(a *analysis.Analyzer) *analysis.Analyzer {
	out := *a
	out.Run = func(pass *analysis.Pass) (any, error) {
		result, err := a.Run(pass)
		pass.Report(analysis.Diagnostic{Pos: pass.Files[0].Package, Category: answered, Message: answered})
		return result, err
	}
	return &out
}

// withDiagnostics writes the description of a package once more, beside the one
// that the go command has written and with its other members as they are, so that
// the analysis is not for facts alone. The go command removes the folder.
func withDiagnostics(file string) (string, error) {
	text, err := os.ReadFile(file) // #nosec G304 -- the go command's own file
	if err != nil {
		return "", err
	}
	var unit map[string]json.RawMessage
	if err := json.Unmarshal(text, &unit); err != nil {
		return "", fmt.Errorf("%s: %w", file, err)
	}
	unit["VetxOnly"] = json.RawMessage("false")
	if text, err = json.Marshal(unit); err != nil {
		return "", err
	}
	file = strings.TrimSuffix(file, ".cfg") + ".diagnostics.cfg"
	return file, os.WriteFile(file, text, 0o600)
}
