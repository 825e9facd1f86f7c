package livepage

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/cmd/sqsfifo/internal/browsertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

func is(name, value string) string {
	return fmt.Sprintf("document.body.dataset.%s === %q", name, value)
}

// listening starts a server for h. At the end of the test it closes the server without
// waiting for open streams.
func listening(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

func TestLivePageInBrowser(t *testing.T) {
	tab := browsertest.Open(t)
	q := newQueue(t, sqstest.Config{Name: "scenes.fifo"})
	h := newHandler(t, q, newQueue(t, sqstest.Config{Name: "tiles.fifo"}))
	server := listening(t, h)
	// A URL with a query gets the page, unless the query has the parameter Action of an
	// SQS call.
	tab.Open(server.URL + "/?now")
	tab.Until(is("connection", "live"))
	tab.Until(is("remembered", "0"))
	text := func(selector string) string {
		return browsertest.Value[string](tab, fmt.Sprintf("document.querySelector(%q).innerText", selector))
	}

	// Sent messages appear without a reload.
	const tile = `{"collection":"landsat","tile":"p32r29"}`
	send(t, q, "p32r29", tile, map[string]string{"unique_key": "landsat-2025-12-04"})
	send(t, q, "p33r30", `{"dedupe_key":"landsat/p33r30"}`, nil)
	tab.Until(is("remembered", "2"))
	q.Advance(time.Minute)
	send(t, q, "p32r29", tile, map[string]string{"unique_key": "landsat-2025-12-20"})
	send(t, q, "p33r30", `{"dedupe_key":"landsat/p33r30"}`, nil)
	in := func(group, body string) {
		_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: &body, MessageGroupId: &group, MessageDeduplicationId: aws.String("nightly-17")})
		require.NoError(t, err)
	}
	in("p34r31", `{"cloud":10,"scene":"LC08"}`)
	in("p34r31", `{"cloud":12,"scene":"LC08"}`)
	tab.Until(is("suppressed", "3"))
	assert.Equal(t, "2", browsertest.Value[string](tab, "document.body.dataset.lost"))
	assert.Contains(t, text("#suppressed"), `unique_key is "landsat-2025-12-20" instead of "landsat-2025-12-04"`)
	assert.Equal(t, "2", text(`#suppressed [data-kind="lost"] .differs`), "the first byte that differs")
	assert.NotEqual(t, "0", browsertest.Value[string](tab, "document.body.dataset.drawn"))
	tab.Size(1280, 560)
	tab.Picture("live-light")
	tab.Size(1440, 900)

	// Markup in a message is shown as text.
	in("</script><script>document.title='broken'</script>", "{\"scene\":\"LC08\u202e\"}")
	tab.Until(is("suppressed", "4"))
	assert.Contains(t, text("#suppressed"), "</script><script>")
	assert.Contains(t, text("#suppressed"), `LC08\u202e`)
	assert.NotContains(t, text("body"), "\u202e")
	assert.Equal(t, "sqsfifo serve", browsertest.Value[string](tab, "document.title"))
	tab.Click("#lost-only")
	assert.Equal(t, 3, browsertest.Value[int](tab, "document.querySelectorAll('#suppressed article').length"))
	tab.Click("#lost-only")

	// Switch a fault on and off.
	tab.Click("#fault-on")
	tab.Until(is("faults", "1"))
	_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String("a"), MessageGroupId: aws.String("g")})
	require.Error(t, err, "the next send loses its answer")
	tab.Until(is("faults", "0"))
	browsertest.Value[bool](tab, `(document.getElementById("fault-calls").value = "each") !== ""`)
	tab.Click("#fault-on")
	tab.Until(is("faults", "1"))
	assert.Contains(t, text("#faults"), "lose answer, each send")
	tab.Dark(true)
	tab.Picture("live-dark")
	tab.Click("#faults button")
	tab.Until(is("faults", "0"))
	send(t, q, "g", "b", nil)

	// The clock's buttons advance the time to the end of the next deduplication interval,
	// by five minutes, and by one minute.
	before := len(q.Window())
	tab.Until(is("remembered", fmt.Sprint(before)))
	tab.Click("#clock-next")
	tab.Until(fmt.Sprintf("document.body.dataset.remembered < %d", before))
	assert.Positive(t, len(q.Window()), "and no further")
	tab.Click("#clock-five")
	tab.Until(is("remembered", "0"))
	at := q.Now()
	tab.Click("#clock-minute")
	assert.Eventually(t, func() bool { return q.Now().Sub(at) >= time.Minute }, 10*time.Second, 10*time.Millisecond)

	// The page shows requests while its section "log" is open.
	tab.Click("#log summary")
	assert.Eventually(t, h.requests.wanted, 10*time.Second, 10*time.Millisecond)
	client := sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &server.URL, Credentials: aws.AnonymousCredentials{}})
	_, err = client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: aws.String("c"), MessageGroupId: aws.String("g")})
	require.NoError(t, err)
	tab.Until(is("requests", "1"))
	assert.Contains(t, text("#log-rows"), "SendMessage")
	assert.Contains(t, text("#log-rows"), "scenes.fifo")
	tab.Click("#log summary")
	assert.Eventually(t, func() bool { return !h.requests.wanted() }, 10*time.Second, 10*time.Millisecond)

	// Show another queue.
	browsertest.Value[bool](tab, `(() => { const s = document.getElementById("queue"); s.value = "tiles.fifo"; s.dispatchEvent(new Event("change")); return true })()`)
	tab.Until(is("queue", "tiles.fifo"))
	tab.Until(is("remembered", "0"))
	tab.Size(1280, 800)
	assert.Less(t, browsertest.Value[int](tab, "document.querySelector('header').scrollWidth"), 1281)

	// On a phone the page fits the screen's width, all text is visible, and the sections
	// form one column.
	tab.Size(390, 844)
	browsertest.Value[bool](tab, `(() => { const s = document.getElementById("queue"); s.value = "scenes.fifo"; s.dispatchEvent(new Event("change")); return true })()`)
	tab.Until(is("queue", "scenes.fifo"))
	tab.Until("document.querySelectorAll('#suppressed article').length > 0")
	assert.LessOrEqual(t, browsertest.Value[int](tab, "document.documentElement.scrollWidth"), 390)
	assert.Empty(t, browsertest.Value[[]string](tab, `[...document.querySelectorAll("header > :not(.hidden), #controls button, #controls select, #stage, article")].filter((e) => { const box = e.getBoundingClientRect(); return box.left < -1 || box.right > 391 || e.tagName !== "SELECT" && e.scrollWidth > e.clientWidth + 1 && e.clientWidth }).map((e) => e.tagName + e.id)`))
	bottoms := browsertest.Value[[]float64](tab, `["#controls", "#stage", "#side", "#log", "#legend"].flatMap((s) => { const box = document.querySelector(s).getBoundingClientRect(); return [box.top, box.bottom] })`)
	assert.IsNonDecreasing(t, bottoms, "one below the other")
	tab.Picture("live-390")

	// When the browser leaves the page, the page's stream ends.
	tab.Open("about:blank")
	assert.Eventually(t, func() bool { return h.open() == 0 }, 10*time.Second, 10*time.Millisecond)
}

// A page of another origin in the same browser cannot turn faults on, move the clock,
// read the suppressed sends, or show the page in a frame.
func TestForeignPageInBrowser(t *testing.T) {
	tab := browsertest.Open(t)
	tab.AllowErrors() // the browser reports the refused requests as errors
	q := newQueue(t, sqstest.Config{})
	server := listening(t, newHandler(t, q))
	foreign := listening(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><body><iframe id=frame src="%[1]s/"></iframe>
<form id=form method=post enctype="text/plain" target=hidden action="%[1]s/_sqsfifo/faults"><input name='{"fault":"lose_answer","code":"' value='"}'></form><iframe name=hidden></iframe>
<script>
const results = [];
const asks = [
  fetch("%[1]s/_sqsfifo/faults", {method: "POST", mode: "no-cors", body: '{"fault":"throttle"}'}),
  fetch("%[1]s/_sqsfifo/clock", {method: "POST", mode: "no-cors", headers: {"Content-Type": "text/plain"}, body: '{"advance_seconds":300}'}),
  fetch("%[1]s/_sqsfifo/faults", {method: "POST", headers: {"Content-Type": "application/json"}, body: '{"fault":"throttle"}'}),
  fetch("%[1]s/_sqsfifo/suppressed").then((r) => r.text()).then((t) => results.push(t)),
  new Promise((done) => { const s = new EventSource("%[1]s/_sqsfifo/live"); s.onmessage = (e) => { results.push(e.data); done(); }; s.onerror = () => done(); }),
];
document.getElementById("form").submit();
Promise.allSettled(asks).then(() => setTimeout(() => { document.body.dataset.done = String(results.length); }, 300));
</script>`, server.URL)
	}))
	tab.Open(foreign.URL)
	tab.Until("document.body.dataset.done")
	assert.Equal(t, "0", browsertest.Value[string](tab, "document.body.dataset.done"), "it has read something")
	assert.Zero(t, q.PendingFaults())
	assert.WithinDuration(t, time.Now(), q.Now(), 30*time.Second)
}
