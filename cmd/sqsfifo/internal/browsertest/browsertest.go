// Package browsertest opens pages in a browser, for tests.
//
// Tests are skipped on a machine without Chromium. The environment variable
// SQSFIFO_SCREENSHOTS names a folder for screenshots; without it none are taken.
package browsertest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// limit is the longest time for a test, so that no test hangs. Tests usually need less than
// a quarter of this time.
const limit = 2 * time.Minute

// Tab is one browser page for one test. If the page reports an error, the test fails at the
// end.
type Tab struct {
	t   testing.TB
	ctx context.Context

	touches bool // fingers are on the screen

	reported sync.Mutex
	errors   []string
	allowed  bool
}

// Open starts a headless browser of 1,440 by 900 pixels, and ends it with the test. It
// skips a short test.
func Open(t testing.TB) *Tab {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser")
	}
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("no chromium, chromium-browser, google-chrome or chrome in PATH")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(1440, 900))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // root may not use the browser's sandbox
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit) // cancelled in the cleanup below
	ctx, endBrowser := chromedp.NewExecAllocator(ctx, options...)
	ctx, endTab := chromedp.NewContext(ctx)
	tab := &Tab{t: t, ctx: ctx}
	ended := make(chan struct{})
	messages := chromedp.Console(ctx)
	go func() {
		defer close(ended)
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" {
				tab.reported.Lock()
				tab.errors = append(tab.errors, m.String())
				tab.reported.Unlock()
			}
		}
	}()
	t.Cleanup(func() {
		last, cancelLast := context.WithTimeout(ctx, 10*time.Second)
		defer cancelLast()
		assert.NoError(t, chromedp.Cancel(last)) // waits until the browser has ended
		endTab()
		endBrowser()
		cancel()
		<-ended
		tab.reported.Lock()
		defer tab.reported.Unlock()
		if !tab.allowed {
			assert.Empty(t, tab.errors, "the page reports errors")
		}
	})
	tab.Size(1440, 900)
	return tab
}

// AllowErrors makes the test ignore errors that the page reports.
func (b *Tab) AllowErrors() {
	b.reported.Lock()
	defer b.reported.Unlock()
	b.allowed = true
}

// Do runs actions of chromedp.
func (b *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

// Open opens an address.
func (b *Tab) Open(address string) {
	b.t.Helper()
	b.Do(chromedp.Navigate(address))
}

// File opens a page from the disk.
func (b *Tab) File(path string) {
	b.t.Helper()
	absolute, err := filepath.Abs(path)
	require.NoError(b.t, err)
	b.Open("file://" + filepath.ToSlash(absolute))
}

// Value evaluates a JavaScript expression in the page and returns its value. If the value
// is a promise, Value waits for its result.
func Value[V any](b *Tab, expression string) V {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[V](expression, chromedp.EvalAwaitPromise))
	require.NoError(b.t, err, "%s", expression)
	return v
}

// Until waits until a JavaScript expression in the page is true.
func (b *Tab) Until(expression string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(20*time.Second), chromedp.WithPollingInterval(20*time.Millisecond)))
	require.NoError(b.t, err, "%s", expression)
}

// Click clicks the first element that a CSS selector matches.
func (b *Tab) Click(selector string) {
	b.t.Helper()
	b.Do(chromedp.Click(chromedp.CSS(selector)))
}

// Keys presses keys, one after another.
func (b *Tab) Keys(keys ...string) {
	b.t.Helper()
	for _, key := range keys {
		b.Do(chromedp.KeyEvent(key))
	}
}

// Enter replaces the text of an input.
func (b *Tab) Enter(selector, text string) {
	b.t.Helper()
	Value[bool](b, fmt.Sprintf("(document.querySelector(%q).value = '') === ''", selector))
	b.Do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Move moves the mouse pointer to a place in CSS pixels.
func (b *Tab) Move(x, y float64) {
	b.t.Helper()
	b.Do(chromedp.MouseEvent(chromedp.MouseMoved, x, y))
}

// Wheel turns the mouse wheel with the pointer at x, y. The parameter `distance` is in CSS
// pixels; a negative distance turns the wheel away from the user.
func (b *Tab) Wheel(x, y, distance float64) {
	b.t.Helper()
	b.Do(chromedp.MouseEvent(chromedp.MouseWheel, x, y, func(p *input.DispatchMouseEventParams) {
		p.DeltaX, p.DeltaY = 0.01, distance // not 0, because chromedp omits 0 and the browser needs a value
	}))
}

// Touch simulates fingers on the screen, one for each place: x and y in CSS pixels of the
// viewport. If fingers are already down, they move to the places. A call without places
// lifts all fingers.
func (b *Tab) Touch(places ...[]float64) {
	b.t.Helper()
	kind := input.DispatchTouchEventTypeTouchMove
	switch {
	case len(places) == 0:
		kind = input.DispatchTouchEventTypeTouchEnd
	case !b.touches:
		kind = input.DispatchTouchEventTypeTouchStart
	}
	b.touches = len(places) > 0
	points := []*input.TouchPoint{}
	for i, at := range places {
		points = append(points, &input.TouchPoint{X: at[0], Y: at[1], ID: new(float64(i))})
	}
	_, err := chromedp.Call(b.ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
	require.NoError(b.t, err)
}

// Dark sets the colour scheme that the browser prefers: dark or light.
func (b *Tab) Dark(dark bool) {
	b.t.Helper()
	value := "light"
	if dark {
		value = "dark"
	}
	b.media(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}})
}

// Print shows the page in print layout.
func (b *Tab) Print() {
	b.t.Helper()
	Value[bool](b, "dispatchEvent(new Event('beforeprint'))")
	b.media(emulation.SetEmulatedMediaParams{Media: "print"})
}

func (b *Tab) media(p emulation.SetEmulatedMediaParams) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, p)
	require.NoError(b.t, err)
}

// Size sets the size of the window.
func (b *Tab) Size(width, height int64) {
	b.t.Helper()
	b.Do(chromedp.EmulateViewport(width, height))
}

// Picture saves a screenshot if SQSFIFO_SCREENSHOTS is set.
func (b *Tab) Picture(name string) {
	b.t.Helper()
	folder := os.Getenv("SQSFIFO_SCREENSHOTS")
	if folder == "" {
		return
	}
	b.Do(chromedp.Sleep(300 * time.Millisecond))
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600))
}
