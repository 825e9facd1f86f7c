// Command flaky runs the tests of every package repeatedly, shuffled: first alone, then
// with four busy processes. The output of each failure is kept. The exit code is 1 after
// any failure.
//
//	go run ./flaky -runs 20 -out folder -match outbox ..  # the modules in the folders, packages with "outbox" in their path
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

const busyProcesses = 4

func main() {
	runs := flag.Int("runs", 20, "runs of each package, idle and again under load")
	out := flag.String("out", "flaky", "folder for the output of failures")
	match := flag.String("match", "", "only packages whose path contains this")
	busy := flag.Bool("busy", false, "keep one processor busy until this process is killed")
	flag.Parse()
	if *busy {
		spin()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failures, err := run(ctx, os.Stdout, flag.Args(), *match, *runs, *out)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "flaky:", err)
		os.Exit(2)
	}
	if failures > 0 {
		os.Exit(1)
	}
}

// spin keeps a processor busy until the process is killed: x would become 0 only after
// years.
func spin() {
	for x := uint64(1); x != 0; x = x*6364136223846793005 + 1442695040888963407 {
	}
}

// testBinary is the program with the compiled tests of a package.
type testBinary struct{ path, dir, program string }

func run(ctx context.Context, w io.Writer, modules []string, match string, runs int, out string) (failures int, err error) {
	if err := os.MkdirAll(out, 0o750); err != nil {
		return 0, err
	}
	folder, err := os.MkdirTemp("", "flaky")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	binaries, err := compile(ctx, modules, match, folder)
	if err != nil {
		return 0, err
	}
	for _, load := range []string{"idle", "loaded"} {
		if load == "loaded" {
			end, err := startBusy(ctx)
			if err != nil {
				return failures, err
			}
			defer end()
		}
		total := 0
		for _, b := range binaries {
			n, err := repeat(ctx, b, runs, load, out)
			if err != nil {
				return failures, err
			}
			total += n
			if n > 0 {
				fmt.Fprintf(w, "%s: %s failed in %d of %d runs\n", load, b.path, n, runs)
			}
		}
		failures += total
		fmt.Fprintf(w, "%s: %d packages, %d runs each, %d failures\n", load, len(binaries), runs, total)
	}
	return failures, nil
}

func compile(ctx context.Context, modules []string, match, folder string) (binaries []testBinary, err error) {
	for _, module := range modules {
		list := exec.CommandContext(ctx, "go", "list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}", "./...")
		list.Dir = module
		text, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", module, err)
		}
		for line := range strings.Lines(string(text)) {
			path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
			if !strings.Contains(path, match) {
				continue
			}
			b := testBinary{path, dir, filepath.Join(folder, fmt.Sprintf("%d.test", len(binaries)))}
			build := exec.CommandContext(ctx, "go", "test", "-c", "-o", b.program, ".") // #nosec G204 -- a package of ours
			build.Dir = dir
			if text, err := build.CombinedOutput(); err != nil {
				return nil, fmt.Errorf("%s: %w\n%s", path, err, text)
			}
			binaries = append(binaries, b)
		}
	}
	return binaries, nil
}

// startBusy starts four processes that keep processors busy. A call of the returned
// function end kills them.
func startBusy(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	program, err := os.Executable()
	if err != nil {
		cancel()
		return nil, err
	}
	var started []*exec.Cmd
	end = func() {
		cancel()
		for _, c := range started {
			_ = c.Wait() // returns an error, because the process was killed
		}
	}
	for range busyProcesses {
		c := exec.CommandContext(ctx, program, "-busy")
		if err := c.Start(); err != nil {
			end()
			return nil, err
		}
		started = append(started, c)
	}
	return end, nil
}

// repeat runs the tests of a package and returns the number of failures. A run that takes
// ten minutes counts as a failure.
func repeat(ctx context.Context, b testBinary, runs int, load, out string) (failures int, err error) {
	for i := range runs {
		limited, cancel := context.WithTimeout(ctx, 11*time.Minute)
		test := exec.CommandContext(limited, b.program, "-test.short", "-test.shuffle=on", "-test.timeout=10m") // #nosec G204 -- tests of ours
		test.Dir = b.dir
		text, err := test.CombinedOutput()
		cancel()
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return failures, context.Cause(ctx)
		case err == nil:
			continue
		case !errors.As(err, &exit):
			return failures, err
		}
		failures++
		name := fmt.Sprintf("%s.%s.%d.txt", strings.ReplaceAll(b.path, "/", "_"), load, i+1)
		if err := os.WriteFile(filepath.Join(out, name), text, 0o600); err != nil {
			return failures, err
		}
	}
	return failures, nil
}
