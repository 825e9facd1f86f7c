package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"

	sdk "github.com/kansas-frontier-matrix/sqsfifo"
)

type versionCmd struct{}

// Help is the manual of the command.
func (*versionCmd) Help() string {
	return "Prints the version of this command and of the Go release that built it."
}

func (*versionCmd) run(_ context.Context, std stdio) (int, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	fmt.Fprintln(std.out, versionOf(info))
	return exitFine, nil
}

// versionOf is one line: the module's version if the command was installed or is a
// tool of a module, or the commit that it was built from.
func versionOf(info *debug.BuildInfo) string {
	v, commit, modified := info.Main.Version, "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			commit = " commit " + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " with changes"
		}
	}
	if v == "" || v == "(devel)" {
		v = "unreleased"
	}
	return fmt.Sprintf("sqsfifo %s%s%s %s", v, commit, modified, info.GoVersion)
}

// moduleVersion is that of the command's module, where the binary was built from one, and otherwise
// the one that the code is about to have.
func moduleVersion() string {
	const module = "github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path == module && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return "v" + sdk.Version
}
