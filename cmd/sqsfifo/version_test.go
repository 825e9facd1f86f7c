package main

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
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
