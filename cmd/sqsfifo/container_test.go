package main

import (
	"bufio"
	"context"
	"debug/elf"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// containerfile holds the parsed instructions of a Containerfile, as far as the tests check
// them.
type containerfile struct {
	from       []string
	build      string // the step that builds the command
	user, port string
	entrypoint []string
}

func readContainerfile(t *testing.T, name string) containerfile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../deploy", name))
	require.NoError(t, err)
	var c containerfile
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "FROM":
			c.from = append(c.from, rest)
		case "RUN":
			require.Empty(t, c.build, "one step")
			c.build = rest
		case "USER":
			c.user = rest
		case "EXPOSE":
			c.port = rest
		case "ENTRYPOINT":
			require.NoError(t, json.Unmarshal([]byte(rest), &c.entrypoint), "no shell is in the image")
		case "ARG", "COPY", "WORKDIR", "", "#":
		default:
			t.Errorf("unexpected %s", word)
		}
	}
	return c
}

func TestContainerfile(t *testing.T) {
	c := readContainerfile(t, "Containerfile")
	module, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^go ([0-9]+\.[0-9]+)`).FindStringSubmatch(string(module))[1]
	assert.Equal(t, []string{"docker.io/library/golang:" + version + " AS build", "scratch"}, c.from)
	assert.Regexp(t, `^[1-9][0-9]+:[1-9][0-9]+$`, c.user, "a number: scratch has no /etc/passwd")
	assert.Equal(t, []string{"/sqsfifo", "serve", "--addr", "0.0.0.0:" + c.port, "--allow-remote"}, c.entrypoint)
}

// Containerfile.release is Containerfile without the build step.
func TestContainerfileOfARelease(t *testing.T) {
	c, released := readContainerfile(t, "Containerfile"), readContainerfile(t, "Containerfile.release")
	c.from, c.build = c.from[1:], ""
	assert.Equal(t, c, released)
}

func TestContainerCompose(t *testing.T) {
	c := readContainerfile(t, "Containerfile")
	text, err := os.ReadFile("../../deploy/compose.yaml")
	require.NoError(t, err)
	var compose struct {
		Services map[string]struct {
			Build       struct{ Context, Dockerfile string }
			Command     []string
			Ports       []string
			ReadOnly    bool `yaml:"read_only"`
			Environment map[string]string
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &compose))
	sqs := compose.Services["sqs"]
	assert.FileExists(t, filepath.Join("../../deploy", sqs.Build.Context, sqs.Build.Dockerfile))
	assert.Equal(t, []string{"127.0.0.1:" + c.port + ":" + c.port}, sqs.Ports, "on loopback only")
	assert.True(t, sqs.ReadOnly)
	assert.Equal(t, "http://sqs:"+c.port, compose.Services["app"].Environment["AWS_ENDPOINT_URL_SQS"])
	_, _, err = parse(append(append([]string{}, c.entrypoint[1:]...), sqs.Command...), stdio{out: os.Stderr})
	assert.NoError(t, err, "the flags are those of serve")
}

// The binary in the image is statically linked and starts with the image's entry point.
func TestContainerBuild(t *testing.T) {
	if testing.Short() || runtime.GOOS != "linux" {
		t.Skip("builds the command for Linux")
	}
	c := readContainerfile(t, "Containerfile")
	program := filepath.Join(t.TempDir(), "sqsfifo")
	require.Contains(t, c.build, " -o /out/sqsfifo ")
	build := exec.CommandContext(t.Context(), "sh", "-c", strings.Replace(c.build, "/out/sqsfifo", program, 1)) // #nosec G204 -- the command is in the Containerfile
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)

	binary, err := elf.Open(program)
	require.NoError(t, err)
	defer binary.Close()
	for _, p := range binary.Progs {
		assert.NotEqual(t, elf.PT_INTERP, p.Type, "there is no dynamic linker in the image")
	}
	libraries, err := binary.ImportedLibraries()
	require.NoError(t, err)
	assert.Empty(t, libraries)

	ctx, stop := context.WithCancel(t.Context())
	args := append([]string{}, c.entrypoint[1:]...)
	for i, arg := range args {
		args[i] = strings.Replace(arg, "0.0.0.0:"+c.port, "127.0.0.1:0", 1) // listens on loopback only, on any free port
	}
	serve := exec.CommandContext(ctx, program, append(args, "--queue", "scenes.fifo")...) // #nosec G204
	serve.Env = []string{}
	serve.Dir = "/"
	printed, err := serve.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, serve.Start())
	defer func() { stop(); _ = serve.Wait() }()
	lines := bufio.NewScanner(printed)
	require.True(t, lines.Scan())
	answer, err := http.Get(lines.Text() + "/")
	require.NoError(t, err)
	defer answer.Body.Close()
	assert.Equal(t, http.StatusOK, answer.StatusCode)
}
