package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// peer is an emulator to measure. The function `command` installs the emulator into dir,
// which may take minutes, and returns the command that serves on the port.
type peer struct {
	name    string
	command func(ctx context.Context, dir, port string) (*exec.Cmd, error)

	// oneAtATime marks a slow emulator that gives a message to two receivers if requests
	// overlap.
	oneAtATime bool
}

const (
	ours = "sqsfifo serve"
	bare = "net/http alone, keeps nothing"
)

// peers are the servers to measure. docs/benchmarks.md has figures for the versions that the
// functions below install.
var peers = []peer{
	{name: ours, command: sqsfifoServe},
	{name: "moto", command: motoServer, oneAtATime: true}, // moto 5.2.1 gives a message to two receivers
	{name: "fauxqs", command: fauxqs},
	{name: "goaws", command: goaws},
	{name: bare, command: bareServer},
}

func sqsfifoServe(ctx context.Context, dir, port string) (*exec.Cmd, error) {
	root, err := output(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kansas-frontier-matrix/sqsfifo")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, "sqsfifo")
	if _, err := output(ctx, filepath.Join(root, "cmd", "sqsfifo"), "go", "build", "-o", program, "."); err != nil {
		return nil, err
	}
	return exec.Command(program, "serve", "--addr", "127.0.0.1:"+port), nil // #nosec G204
}

// motoServer uses the moto_server installed on this machine. If moto_server is not
// installed, motoServer installs moto with pip.
func motoServer(ctx context.Context, dir, port string) (*exec.Cmd, error) {
	program, err := exec.LookPath("moto_server")
	if err != nil {
		env := filepath.Join(dir, "moto")
		if _, err := output(ctx, "", "python3", "-m", "venv", env); err != nil {
			return nil, err
		}
		if _, err := output(ctx, "", filepath.Join(env, "bin", "pip"), "install", "--quiet", "moto[server]==5.2.1"); err != nil {
			return nil, err
		}
		program = filepath.Join(env, "bin", "moto_server")
	}
	return exec.Command(program, "-H", "127.0.0.1", "-p", port), nil // #nosec G204
}

// fauxqs needs version 22 of Node, so it runs under a Node that npm installs.
func fauxqs(ctx context.Context, dir, port string) (*exec.Cmd, error) {
	home := filepath.Join(dir, "fauxqs")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, err
	}
	start := `import { startFauxqs } from "fauxqs"; await startFauxqs({ port: ` + port + `, logger: false });`
	for name, text := range map[string]string{"package.json": `{"private":true,"type":"module"}`, "start.js": start} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	if _, err := output(ctx, home, "npm", "install", "--no-audit", "--no-fund", "fauxqs@2.4.1", "node@22.23.3"); err != nil {
		return nil, err
	}
	node := filepath.Join(home, "node_modules", ".bin", "node")
	if _, err := output(ctx, home, node, "--version"); err != nil {
		return nil, err
	}
	run := exec.Command(node, "start.js") // #nosec G204
	run.Dir = home
	return run, nil
}

// goaws starts the emulator goaws. If goaws is not installed, the go command installs it.
// The configuration makes the queue remember deduplication IDs, like an SQS queue.
func goaws(ctx context.Context, dir, port string) (*exec.Cmd, error) {
	program, err := exec.LookPath("goaws")
	if err != nil {
		get := exec.CommandContext(ctx, "go", "install", "github.com/Admiral-Piett/goaws/app/cmd@v0.5.4") // #nosec G204
		get.Env = append(os.Environ(), "GOBIN="+dir)
		if _, err := outputOf(get); err != nil {
			return nil, err
		}
		program = filepath.Join(dir, "cmd")
	}
	config := filepath.Join(dir, "goaws.yaml")
	text := "Local:\n  Host: localhost\n  Port: " + port + "\n  Region: us-east-1\n  AccountId: \"000000000000\"\n  EnableDuplicates: true\n" +
		"  QueueAttributeDefaults:\n    VisibilityTimeout: 30\n    MaximumMessageSize: 262144\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return exec.Command(program, "-config", config, "-loglevel", "error"), nil // #nosec G204
}

func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...) // #nosec G204
	c.Dir = dir
	return outputOf(c)
}

// outputOf returns the command's standard output. The error has the last line of standard
// error.
func outputOf(c *exec.Cmd) (string, error) {
	out, err := c.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		lines := bytes.Split(bytes.TrimSpace(failed.Stderr), []byte("\n"))
		err = fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(c.Args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
