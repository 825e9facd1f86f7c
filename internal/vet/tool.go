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
// command: also report on the packages that are only imported by those named.
//
// The go command (1.26) caches the answer about a package under a key that does not
// say whether diagnostics were asked for. A package that was first analyzed as a
// dependency, for its facts alone, has an empty answer from then on. With this flag
// both answers are the same, and Run leaves out the packages that were not asked for.
const dependencies = "dependencies"

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
	flag.Bool(dependencies, false, "report on dependencies as well, so that the go command's cache has one answer for each package")
	last := len(os.Args) - 1
	if isSet(os.Args[1:], dependencies) && strings.HasSuffix(os.Args[last], ".cfg") {
		unit, err := withDiagnostics(os.Args[last])
		if err != nil {
			fmt.Fprintln(os.Stderr, "sqsfifo:", err)
			os.Exit(1)
		}
		os.Args[last] = unit
	}
	unitchecker.Main(analyzers...)
}

func isSet(args []string, name string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		arg = strings.TrimPrefix(arg, "-")
		return arg == "-"+name || arg == "-"+name+"=true" || arg == name || arg == name+"=true"
	})
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
