package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows a progress bar on a terminal. Lines printed by say() appear above the
// bar. The methods may be called concurrently.
type progress struct {
	out   io.Writer
	quiet bool

	mu    sync.Mutex
	bar   *progressbar.ProgressBar // nil if no progress is shown
	shown time.Time
	sized bool // the total is known, so the bar can show a percentage
}

// newProgress returns a progress that counts up to `size`; 0 means an unknown total. It
// shows no bar if `quiet` is true, the writer `out` is not a terminal, or the environment
// variable CI is set.
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

// terminal reports whether `out` is a terminal on which the cursor can be moved. Programs
// without such a terminal, for example editors, set TERM to dumb.
func terminal(out any) bool {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// setBytes sets the progress bar to a number of input bytes.
func (p *progress) setBytes(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil && p.sized {
		_ = p.bar.Set64(bytes) // errors of the bar have no effect on the work
	}
}

// outcome shows the number of events that have an outcome, and how many of them are
// duplicates and conflicts.
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

// setDone sets the progress bar to the number of finished messages and shows the text.
func (p *progress) setDone(done int, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar == nil || time.Since(p.shown) < 200*time.Millisecond {
		return
	}
	p.shown = time.Now()
	p.bar.Describe(text)
	_ = p.bar.Set64(int64(done))
}

// say prints a line for people, unless p.quiet is set. If there is a progress bar, the line
// is above it.
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

func (p *progress) finish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Finish()
		p.bar = nil
	}
}
