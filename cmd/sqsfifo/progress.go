package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/input"
)

// progress shows the progress of the work on a terminal. Its methods may be called
// concurrently.
type progress struct {
	out   io.Writer
	quiet bool

	mu    sync.Mutex
	bar   *progressbar.ProgressBar // nil if no progress is shown
	shown time.Time
	sized bool // the bar has a size
}

// linesProgress counts the bytes of an input.
func linesProgress(out io.Writer, lines input.Source, quiet bool) *progress {
	size, known := lines.Size()
	if !known {
		size = 0
	}
	return newProgress(out, size, quiet)
}

// newProgress counts up to a size; 0 means unknown.
func newProgress(out io.Writer, size int64, quiet bool) *progress {
	p := &progress{out: out, quiet: quiet}
	if quiet || !terminal(out) || os.Getenv("CI") != "" {
		return p
	}
	p.sized = size > 0
	options := []progressbar.Option{
		progressbar.OptionSetWriter(out), progressbar.OptionClearOnFinish(), progressbar.OptionThrottle(100 * time.Millisecond),
		progressbar.OptionSetWidth(20), progressbar.OptionSpinnerType(14), progressbar.OptionUseANSICodes(os.Getenv("NO_COLOR") == ""),
		progressbar.OptionSetPredictTime(true), progressbar.OptionSetElapsedTime(true),
	}
	if !p.sized {
		size = -1
	}
	p.bar = progressbar.NewOptions64(size, options...)
	return p
}

// terminal reports whether out is a terminal on which the cursor can be moved. Programs
// that run commands in another kind of terminal set TERM to dumb.
func terminal(out any) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// read shows the number of input bytes read.
func (p *progress) read(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil && p.sized {
		_ = p.bar.Set64(bytes) // errors of the bar have no effect on the work
	}
}

// outcome shows the number of events with an outcome.
func (p *progress) outcome(total int, counts map[string]int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil || time.Since(p.shown) < 200*time.Millisecond {
		return
	}
	p.shown = time.Now()
	perSecond := float64(total) / max(p.bar.State().SecondsSince, 0.001)
	p.bar.Describe(fmt.Sprintf("%d events, %.0f/s, %d duplicates, %d conflicts", total, perSecond, counts[outcomeDuplicate]+counts[outcomeEarlier], counts[outcomeConflict]))
	if !p.sized {
		_ = p.bar.Add(1)
	}
}

// item shows the number of plan items with an outcome.
func (p *progress) item(done int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil || time.Since(p.shown) < 200*time.Millisecond {
		return
	}
	p.shown = time.Now()
	p.bar.Describe(text)
	_ = p.bar.Set64(int64(done))
}

// say prints a line for people. If there is a progress bar, the line is above it.
func (p *progress) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	if !p.quiet {
		fmt.Fprintln(p.out, text)
	}
}

// finish removes the bar.
func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}
