package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	installed := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v0.1.0"}}
	assert.Equal(t, "sqsfifo v0.1.0 go1.26.8", versionOf(installed).String())
	built := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"}, {Key: "vcs.modified", Value: "true"},
	}}
	assert.Equal(t, "sqsfifo unreleased commit 0123456789ab with changes go1.26.8", versionOf(built).String())
	assert.Equal(t, "sqsfifo unreleased ", versionOf(&debug.BuildInfo{}).String())

	var out, err strings.Builder
	assert.Equal(t, exitFine, run(t.Context(), []string{"version"}, stdio{strings.NewReader(""), &out, &err}))
	assert.True(t, strings.HasPrefix(out.String(), "sqsfifo "), out.String())
	assert.Empty(t, err.String())
}

// A binary built with the flags of .goreleaser.yaml prints the version of its tag.
func TestReleasedVersion(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	config, err := os.ReadFile("../../.goreleaser.yaml")
	require.NoError(t, err)
	flags := regexp.MustCompile(`ldflags: \["(.*)"\]`).FindSubmatch(config)
	require.NotNil(t, flags, "no ldflags in .goreleaser.yaml")
	program := filepath.Join(t.TempDir(), "sqsfifo")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", strings.ReplaceAll(string(flags[1]), "{{ .Tag }}", "v1.2.3"), "-o", program, ".")
	text, err := build.CombinedOutput()
	require.NoError(t, err, string(text))
	text, err = exec.CommandContext(t.Context(), program, "version").CombinedOutput()
	require.NoError(t, err, string(text))
	assert.Regexp(t, "^sqsfifo v1.2.3 ", string(text))
}
