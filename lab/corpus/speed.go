package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// speed compares the time and memory of "sqsfifo vet" and "go vet -vettool" on packages of
// a module, by default on all. Each command runs once without cached analysis, then three
// times with cached analysis.
func speed(ctx context.Context, path string, packages []string) error {
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	var m module
	for _, c := range corpus {
		if c.path == path {
			m = c
		}
	}
	if m.path == "" {
		return fmt.Errorf("-speed: %q is not in the corpus", path)
	}
	dir, err := m.fetch(ctx)
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := outsideWorkspaces(); err != nil {
		return err
	}
	command := filepath.Join(dir, ".sqsfifo")
	build := exec.CommandContext(ctx, "go", "build", "-o", command, ".") // #nosec G204 -- our own command
	build.Dir = filepath.Join("..", "..", "cmd", "sqsfifo")              // relative to lab/corpus
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	// The go command caches results by flags. A new flag value makes the first run cold.
	fresh := "sqsfifo.nondet=example.com/never.F" + strconv.FormatInt(time.Now().UnixNano(), 10)
	ways := []struct {
		name string
		args []string
	}{
		{"go vet -vettool", append([]string{"go", "vet", "-vettool=" + command, "-" + fresh}, packages...)},
		{"sqsfifo vet", append([]string{command, "vet", "--" + strings.TrimPrefix(fresh, "sqsfifo."), "--disable=SF020"}, packages...)},
	}
	for _, run := range []string{"cold", "warm", "warm", "warm"} {
		for _, w := range ways {
			r, err := measure(ctx, dir, w.args)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			fmt.Printf("%s %-16s %6.1f s, %6.1f s of processor time, at most %4d MiB in all processes\n", run, w.name, r.wall.Seconds(), r.cpu.Seconds(), r.peak>>20)
		}
	}
	return nil
}

type measurement struct {
	wall, cpu time.Duration
	peak      int64 // highest sum of the resident memory of all processes, in bytes
}

func measure(ctx context.Context, dir string, args []string) (measurement, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) // #nosec G204 -- the function `speed` lists the commands
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return measurement{}, err
	}
	var m measurement
	done, sampled := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			m.peak = max(m.peak, resident(cmd.Process.Pid))
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	err := cmd.Wait()
	close(done)
	<-sampled
	m.wall = time.Since(start)
	m.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		err = nil // exit code 1 means findings, not a failure
	}
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return m, err
}

// resident returns the memory of a process and its descendants on Linux, and 0 on other
// systems. Memory shared by processes counts once for each process.
func resident(root int) int64 {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0
	}
	parent, pages := map[int]int{}, map[int]int64{}
	for _, file := range stats {
		text, err := os.ReadFile(file) // #nosec G304 -- a file of the operating system, in /proc
		if err != nil {
			continue
		}
		// fields[0] is field 3 of the file: field 2 (a name in parentheses) may contain
		// spaces.
		open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
		if open < 1 || end < open {
			continue
		}
		pid, _ := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
		fields := strings.Fields(string(text[end+1:]))
		if len(fields) < 22 {
			continue
		}
		parent[pid], _ = strconv.Atoi(fields[1])
		pages[pid], _ = strconv.ParseInt(fields[21], 10, 64)
	}
	var sum int64
	for pid, n := range pages {
		for p := pid; p > 1; p = parent[p] {
			if p == root {
				sum += n
				break
			}
		}
	}
	return sum * int64(os.Getpagesize())
}
