package timeline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/browsertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// simulated sends the messages to a simulated queue. It returns a recorder with their
// outcomes, in order.
func simulated(t testing.TB, messages []sqstest.TimedMessage, replay func(int) int32) *Recorder {
	t.Helper()
	s, err := sqstest.NewSimulation(sqstest.Config{})
	require.NoError(t, err)
	r := NewRecorder()
	for i, m := range messages {
		o, err := s.Send(m)
		require.NoError(t, err)
		r.Add(Message{At: m.At, Group: m.GroupID, Place: Place{Line: int32(i + 1), Replay: replay(i)}, Outcome: o})
	}
	return r
}

// textsOf returns messages in the form of Options.Texts: messages[i] is in line i+1 of the
// log.
func textsOf(messages []sqstest.TimedMessage) map[Place]sqstest.TimedMessage {
	texts := map[Place]sqstest.TimedMessage{}
	for i, m := range messages {
		texts[Place{Line: int32(i + 1)}] = m
	}
	return texts
}

// sampleMessages returns messages with hostile texts, and with each kind of finding if the
// caller records the last two messages as a replay.
func sampleMessages() []sqstest.TimedMessage {
	const hostile = "</script><script>document.title='broken'</script>"
	send := func(at int, group, body string, attributes map[string]string) sqstest.TimedMessage {
		return sqstest.TimedMessage{At: noon.Add(time.Duration(at) * time.Second), GroupID: group, Body: body, Attributes: attributes}
	}
	scene := func(key string, cloud int) string {
		return fmt.Sprintf(`{"dedupe_key":"landsat/%s","payload":{"cloud":%d,"scene":"%s"}}`, key, cloud, key)
	}
	tile := `{"collection":"landsat","tile":"001010"}`
	return []sqstest.TimedMessage{
		0:  send(0, "wrs1-001010", tile, map[string]string{"unique_key": "2025-12-04"}),
		1:  send(1, "wrs2-002026", scene("LC08_002026", 10), nil),
		2:  send(2, "wrs2-010067", scene("LC08_010067", 10), nil),
		3:  send(5, "wrs2-047027", scene("LC08_047027", 10), nil),
		4:  send(20, "wrs1-001010", tile, map[string]string{"unique_key": "2025-12-20"}),
		5:  send(34, "wrs2-010068", scene("LC08_010067", 10), nil),
		6:  send(62, "wrs2-047027", scene("LC08_047027", 12), nil),
		7:  send(70, "path 10 row 65", scene("LC08_010065", 10), nil),
		8:  send(80, "a\u202eb"+hostile[:9], scene("right to left", 10), nil),
		9:  send(90, "wrs2-002026", scene("LC08_002026", 10), nil),
		10: send(95, "hostile", hostile, map[string]string{"k": hostile}),
		11: send(99, "hostile", hostile, map[string]string{"k": "\u202e" + hostile}),
		12: send(400, "wrs2-002026", scene("LC08_002026", 10), nil), // a replay
		13: send(401, "wrs2-010067", scene("LC08_010067", 10), nil),
	}
}

func pageOf(t testing.TB, r *Recorder, o Options) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "page.html")
	f, err := os.Create(file)
	require.NoError(t, err)
	require.NoError(t, r.Write(f, o))
	require.NoError(t, f.Close())
	return file
}

func attribute(tab *browsertest.Tab, name string) string {
	return browsertest.Value[string](tab, "document.body.dataset."+name+" || ''")
}

func TestPageInBrowser(t *testing.T) {
	tab := browsertest.Open(t)
	r := simulated(t, sampleMessages(), func(i int) int32 {
		if i >= 12 {
			return 1
		}
		return 0
	})
	tab.File(pageOf(t, r, Options{Files: []string{"events.jsonl"}, Scope: "queue", Replays: []time.Duration{6 * time.Minute}, Texts: textsOf(sampleMessages())}))
	tab.Until("document.body.dataset.opened")

	text := func(selector string) string {
		return browsertest.Value[string](tab, fmt.Sprintf("document.querySelector(%q).innerText", selector))
	}
	visible := func(selector string) bool {
		return browsertest.Value[bool](tab, fmt.Sprintf("!document.querySelector(%q).hidden", selector))
	}

	// The page has the recorder's count for each kind of outcome.
	for kind, name := range []string{"lost", "bodies", "again", "refused", "duplicate", "delivered"} {
		assert.Equal(t, fmt.Sprint(r.kinds[kind]), attribute(tab, name), name)
		assert.Positive(t, r.kinds[kind], name)
	}
	assert.Contains(t, text("#about"), "14 messages in 8 groups")
	assert.Contains(t, text("#findings-title"), "Findings · 8")
	tab.Picture("timeline-few-light")

	// Markup in a message is shown as text, and invisible characters are shown as their
	// code.
	assert.Equal(t, "sqsfifo simulate", browsertest.Value[string](tab, "document.title"))
	tab.Until("document.querySelectorAll('#report-rows tr').length === 8") // the table is made when the browser is idle
	assert.Contains(t, text("#report"), `a\u202eb</script>`)
	assert.False(t, browsertest.Value[bool](tab, `document.documentElement.innerText.includes("\u202e")`))

	// When the pointer is on the dot of a message, a card shows the message's outcome with
	// the first difference highlighted.
	at := browsertest.Value[struct{ X, Y float64 }](tab, "sqsfifoPage.mark(5)")
	tab.Move(at.X, at.Y)
	tab.Until("!document.getElementById('card').hidden")
	assert.Contains(t, text("#card"), "#5 LOST")
	assert.Contains(t, text("#card"), "accepted 20 s before with message #1")
	assert.Contains(t, text("#card"), `unique_key is "2025-12-20" instead of "2025-12-04"`)
	tab.Picture("timeline-few-hover")

	// A click in the list of findings does not move the view, and the entry keeps the
	// focus.
	type state struct{ From, To, Top float64 }
	view := func() state {
		return browsertest.Value[state](tab, "({from: sqsfifoPage.view.from, to: sqsfifoPage.view.to, top: document.getElementById('scroll').scrollTop})")
	}
	before := view()
	tab.Click(`#list button[data-number="7"]`)
	assert.Equal(t, "7", attribute(tab, "selected"))
	assert.Equal(t, before, view())
	assert.Equal(t, "7", browsertest.Value[string](tab, "document.activeElement.dataset.number || ''"))
	tab.Until("!document.getElementById('card').hidden && document.getElementById('card').dataset.number === '7'")
	assert.Equal(t, "2", text("#card .differs"), "12 instead of 10")
	assert.Contains(t, text("#card"), "the first byte that differs is at offset")
	tab.Click("#card button") // goes to message 4
	assert.Equal(t, "4", attribute(tab, "selected"))

	// A tile filters the list of findings by kind, a chip by cause.
	tab.Click(`#tiles [data-kind="lost"]`)
	assert.Equal(t, fmt.Sprint(r.kinds[Lost]), attribute(tab, "listed"))
	assert.Equal(t, "true", browsertest.Value[string](tab, `document.querySelector('#tiles [data-kind="lost"]').getAttribute("aria-pressed")`))
	tab.Click(`#chips [data-cause="lost:other group"]`)
	assert.Equal(t, "1", attribute(tab, "listed"))
	assert.Equal(t, []string{"lost:other group"}, browsertest.Value[[]string](tab, `[...document.querySelectorAll('[aria-pressed="true"]')].map((b) => b.dataset.cause || b.dataset.kind || b.id)`),
		"the tile shows more than the chip")
	tab.Keys(kb.Escape, kb.Escape)
	assert.Equal(t, "8", attribute(tab, "listed"))

	// The search finds messages by group, key, ID and number.
	search := func(what string) {
		tab.Enter("#search", what)
		tab.Until(fmt.Sprintf("sqsfifoPage.view.search === %q", what))
	}
	search("010067")
	assert.Contains(t, text("#found"), "1 group")
	search("landsat/LC08_047027")
	assert.Equal(t, "1", attribute(tab, "listed"), "by the key of a finding")
	search(r.all.last.id[:12])
	assert.Contains(t, text("#found"), "0 groups, 3 messages", "#3, #6 and #14 have one ID")
	search("#6")
	assert.Equal(t, "6", attribute(tab, "selected"))
	search("#99")
	assert.Equal(t, "no such message", text("#found"))
	tab.Enter("#search", " ")
	tab.Until("sqsfifoPage.view.search === ''")
	tab.Keys(kb.Escape)

	// Keys zoom, move the view, and go to the next finding.
	length := func() float64 { return browsertest.Value[float64](tab, "sqsfifoPage.view.to - sqsfifoPage.view.from") }
	browsertest.Value[bool](tab, "document.getElementById('scroll').focus() || true")
	tab.Keys("0")
	whole := length()
	tab.Keys("+")
	assert.Less(t, length(), whole)
	from := browsertest.Value[float64](tab, "sqsfifoPage.view.from")
	tab.Keys(kb.ArrowRight)
	assert.Greater(t, browsertest.Value[float64](tab, "sqsfifoPage.view.from"), from)
	tab.Keys("n")
	first := attribute(tab, "selected")
	tab.Keys("n")
	assert.NotEqual(t, first, attribute(tab, "selected"))
	tab.Keys("p")
	assert.Equal(t, first, attribute(tab, "selected"))
	tab.Keys("?")
	assert.True(t, browsertest.Value[bool](tab, "document.getElementById('help').open"))
	tab.Click("#help button")
	assert.False(t, browsertest.Value[bool](tab, "document.getElementById('help').open"))

	// The wheel zooms around the pointer.
	tab.Keys("0", kb.Escape)
	at = browsertest.Value[struct{ X, Y float64 }](tab, "sqsfifoPage.mark(7)")
	tab.Until("document.getElementById('card').hidden") // otherwise a card under the pointer gets the wheel's events
	tab.Wheel(at.X, at.Y, -240)
	tab.Until("sqsfifoPage.view.to - sqsfifoPage.view.from < " + fmt.Sprint(whole*0.9))
	after := browsertest.Value[struct{ X, Y float64 }](tab, "sqsfifoPage.mark(7)")
	assert.InDelta(t, at.X, after.X, 2)

	// The page has the colours of the system, until the button selects others.
	assert.Equal(t, "light", browsertest.Value[string](tab, "document.documentElement.dataset.theme"))
	tab.Dark(true)
	tab.Until("document.documentElement.dataset.theme === 'dark'")
	tab.Picture("timeline-few-dark")
	tab.Click("#theme")
	assert.Equal(t, "light", browsertest.Value[string](tab, "document.documentElement.dataset.theme"))

	// At a width of 1,280 pixels, all text of the tiles and the header is visible.
	tab.Size(1280, 800)
	cut := browsertest.Value[[]string](tab, `[...document.querySelectorAll("#tiles button, #tiles span, header button, header select, #legend span")].filter((e) => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline").map((e) => e.innerText)`)
	assert.Empty(t, cut)
	assert.Less(t, browsertest.Value[int](tab, "document.querySelector('header').scrollWidth"), 1281)
	assert.True(t, visible("#tiles"))
	tab.Picture("timeline-few-1280")

	// Print shows the tiles and a table of findings.
	tab.Print()
	shows := func(selector string) bool {
		return browsertest.Value[bool](tab, fmt.Sprintf("(() => { const box = document.querySelector(%q).getBoundingClientRect(); return box.width > 0 && box.left >= 0 && box.left < 1280 })()", selector))
	}
	assert.True(t, shows("#report-rows tr"))
	assert.True(t, shows("#tiles button"))
	assert.False(t, shows("#lanes"))
	assert.Equal(t, 8, browsertest.Value[int](tab, "document.querySelectorAll('#report-rows tr').length"))
	tab.Picture("timeline-few-print")
}

// overlaps returns a JavaScript expression: true if the boxes of two elements overlap by
// more than a pixel in both directions. The parameters `a` and b select the elements.
func overlaps(a, b string) string {
	return fmt.Sprintf(`(() => { const a = document.querySelector(%q).getBoundingClientRect(), b = document.querySelector(%q).getBoundingClientRect();
return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1 })()`, a, b)
}

// At any window size, the page shows the message groups and the whole list of findings side
// by side. The card of a selected message covers neither the list nor the message's dot.
func TestPageFitsWindow(t *testing.T) {
	tab := browsertest.Open(t)
	r := simulated(t, sampleMessages(), func(i int) int32 { return int32(i / 12) })
	file := pageOf(t, r, Options{Files: []string{"events.jsonl"}, Scope: "queue", Replays: []time.Duration{6 * time.Minute}, Texts: textsOf(sampleMessages())})
	for _, size := range []struct{ width, height int64 }{{1280, 800}, {820, 900}, {390, 844}, {390, 640}} {
		tab.Size(size.width, size.height)
		tab.File(file)
		tab.Until("document.body.dataset.opened")
		name := fmt.Sprintf("%dx%d", size.width, size.height)
		assert.LessOrEqual(t, browsertest.Value[int64](tab, "document.documentElement.scrollWidth"), size.width, name)
		for _, part := range []string{"#stage", "#list", "#scroll"} {
			assert.GreaterOrEqual(t, browsertest.Value[float64](tab, fmt.Sprintf("document.querySelector(%q).clientHeight", part)), 100.0, "%s %s", name, part)
		}
		assert.Empty(t, browsertest.Value[[]string](tab, `[...document.querySelectorAll("#list .what, #list .why, #tiles .name, header button")].filter((e) => e.getClientRects().length && (e.scrollWidth > e.clientWidth + 1 && e.clientWidth || e.scrollHeight > e.clientHeight + 1 && e.clientHeight)).map((e) => e.innerText)`), name)
		if size.width < 500 {
			tab.Click("#zoom-in")
			assert.Less(t, browsertest.Value[float64](tab, "sqsfifoPage.view.to - sqsfifoPage.view.from"), 800_000.0, name)
			tab.Click("#fit")
		}
		for _, number := range []string{"5", "6", "7", "13"} {
			tab.Click(fmt.Sprintf("#list button[data-number='%s']", number))
			tab.Until(fmt.Sprintf("!document.getElementById('card').hidden && document.getElementById('card').dataset.number === '%s'", number))
			assert.False(t, browsertest.Value[bool](tab, overlaps("#card", "#side")), "%s: the card of #%s covers the list", name, number)
			assert.False(t, browsertest.Value[bool](tab, fmt.Sprintf(`(() => { const at = sqsfifoPage.mark(%s), box = document.getElementById("card").getBoundingClientRect();
return at.x > box.left && at.x < box.right && at.y > box.top && at.y < box.bottom })()`, number)), "%s: the card of #%s covers its mark", name, number)
			assert.GreaterOrEqual(t, browsertest.Value[float64](tab, "document.getElementById('card').offsetHeight"), 80.0, name)
		}
		tab.Picture("timeline-fits-" + name)
	}
}

// When two fingers zoom in, each finger stays over the same time.
func TestPinch(t *testing.T) {
	tab := browsertest.Open(t)
	tab.Size(390, 844)
	tab.File(pageOf(t, simulated(t, sampleMessages(), func(int) int32 { return 0 }), Options{Files: []string{"events.jsonl"}, Scope: "queue"}))
	tab.Until("document.body.dataset.opened")
	length := func() float64 { return browsertest.Value[float64](tab, "sqsfifoPage.view.to - sqsfifoPage.view.from") }
	before := length()
	y := browsertest.Value[float64](tab, "document.getElementById('scroll').getBoundingClientRect().top + 100")
	tab.Touch([]float64{200, y}, []float64{260, y})
	tab.Touch([]float64{170, y}, []float64{290, y})
	tab.Touch()
	assert.InDelta(t, before/2, length(), before/20)
	assert.Equal(t, "", attribute(tab, "selected"), "two fingers are not a click")
}

// The page of a log with 100,000 messages works in a browser. The test logs the times that
// the page takes.
func TestLargePageInBrowser(t *testing.T) {
	tab := browsertest.Open(t)
	messages := varied(100_000, 500, 6*time.Hour)
	r := simulated(t, messages, func(int) int32 { return 0 })
	file := pageOf(t, r, Options{Files: []string{"events.jsonl"}, Scope: "queue", Texts: textsOf(messages)})
	info, err := os.Stat(file)
	require.NoError(t, err)
	tab.Dark(true)
	tab.File(file)
	tab.Until("document.body.dataset.opened")
	assert.Equal(t, "100000", attribute(tab, "messages"))
	t.Logf("%d bytes, opened in %s ms, first picture of %s shapes", info.Size(), attribute(tab, "opened"), attribute(tab, "shapes"))
	tab.Picture("timeline-100k-dark")
	// A card (tooltip) without a message number describes a column of many messages.
	counted := ""
	for x := 600.0; x < 900 && counted == ""; x += 13 {
		tab.Move(x, 300)
		counted = browsertest.Value[string](tab, "document.getElementById('card').hidden || document.getElementById('card').dataset.number ? '' : document.getElementById('card').innerText")
	}
	assert.Contains(t, counted, "zoom in to see each", "what a column counts")
	for _, share := range []float64{1, 0.1, 0.01} {
		m := browsertest.Value[struct{ FPS, Slowest, Work, Shapes float64 }](tab, fmt.Sprintf("sqsfifoPage.fps(2, %g)", share))
		t.Logf("panning over %g%% of the log: %.0f frames/s, the slowest after %.0f ms, %.1f ms of work a frame, %.0f shapes", 100*share, m.FPS, m.Slowest, m.Work, m.Shapes)
		assert.Less(t, m.Shapes, 25_000.0)
		assert.Positive(t, m.FPS)
	}
	// Clicks in the list go from finding to finding. Each finding shows its card.
	for i := range 5 {
		tab.Click(fmt.Sprintf("#list .item[aria-posinset='%d'] button", i+1))
		tab.Until("!document.getElementById('card').hidden && document.getElementById('card').dataset.number === document.body.dataset.selected")
	}
	tab.Keys(kb.Escape, kb.Escape)

	// At high zoom the page draws a mark for each message.
	browsertest.Value[bool](tab, "sqsfifoPage.select(50000) || true")
	tab.Until("document.body.dataset.detailed === 'true' && document.body.dataset.selected === '50000'")
	tab.Picture("timeline-100k-zoom")
	tab.Click("#expand")
	tab.Until("document.getElementById('expand').innerText === 'Collapse all'")
	tab.Picture("timeline-100k-expanded")
	m := browsertest.Value[struct{ FPS, Work, Shapes float64 }](tab, "sqsfifoPage.fps(2, 1)")
	t.Logf("all lanes open, the whole log: %.0f frames/s, %.1f ms of work a frame, %.0f shapes", m.FPS, m.Work, m.Shapes)
	assert.Less(t, m.Shapes, 25_000.0)
	tab.Picture("timeline-100k-expanded-whole")
}

// varied returns a log with findings. The log is the same in each run.
func varied(n, groups int, span time.Duration) []sqstest.TimedMessage {
	rng := rand.New(rand.NewPCG(1, 1))
	out := make([]sqstest.TimedMessage, 0, n)
	for i := range n {
		m := sqstest.TimedMessage{
			At:      noon.Add(span * time.Duration(i) / time.Duration(n)),
			GroupID: fmt.Sprintf("tile-%03d", min(int(rng.ExpFloat64()*float64(groups)/5), groups-1)),
			Body:    fmt.Sprintf(`{"dedupe_key":"scene/%d","payload":{"cloud":%d}}`, i, i%100),
		}
		if chance := rng.IntN(1000); i > 100 && chance < 180 {
			again := out[i-1-rng.IntN(min(i, 2000))]
			again.At = m.At
			switch {
			case chance == 0:
				again.GroupID = m.GroupID
			case chance < 4:
				again.Attributes = map[string]string{"unique_key": fmt.Sprint(i)}
			case chance == 4:
				again.Body = again.Body[:len(again.Body)-2] + "0}}"
			case chance == 5:
				again.GroupID = ""
			}
			m = again
		}
		out = append(out, m)
	}
	return out
}
