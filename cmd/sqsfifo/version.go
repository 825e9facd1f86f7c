package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"

	sdk "github.com/kansas-frontier-matrix/sqsfifo"
)

type versionCmd struct {
	JSON bool `name:"json" help:"Print a JSON object."`
}

func (*versionCmd) Help() string {
	return "Prints the version of this command and of the Go release that built it."
}

func (c *versionCmd) run(_ context.Context, std stdio) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	v := versionOf(info)
	if c.JSON {
		return json.NewEncoder(std.out).Encode(v)
	}
	_, err := fmt.Fprintln(std.out, v)
	return err
}

// The variable `released` is the version of a released binary. In other builds it is "".
// The linker sets it (.goreleaser.yaml), because the Go toolchain records no module version
// in a build with go.work.
var released string

// buildVersion is the version as --json prints it. Member names are stable. Version names a
// released binary or an installed module. Commit is set in a build from source.
type buildVersion struct {
	Version  string `json:"version"` // "unreleased" for a build from source
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

func versionOf(info *debug.BuildInfo) buildVersion {
	v := buildVersion{Version: cmp.Or(released, info.Main.Version), Go: info.GoVersion}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "unreleased"
	}
	return v
}

// String returns v in one line.
func (v buildVersion) String() string {
	commit, modified := "", ""
	if len(v.Commit) >= 12 {
		commit = " commit " + v.Commit[:12]
	}
	if v.Modified {
		modified = " with changes"
	}
	return fmt.Sprintf("sqsfifo %s%s%s %s", v.Version, commit, modified, v.Go)
}

// moduleVersion returns the version of the command's module. For a build from source it
// returns the version constant of package sqsfifo.
func moduleVersion() string {
	if released != "" {
		return released
	}
	const module = "github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Path == module && strings.HasPrefix(info.Main.Version, "v") {
		return info.Main.Version
	}
	return "v" + sdk.Version
}
