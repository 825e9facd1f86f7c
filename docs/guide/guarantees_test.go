package guide_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// Each row of the tables in guarantees.md is one sentence, and its tests exist in the named
// folders.
func TestGuaranteesNameTheirTests(t *testing.T) {
	text, err := os.ReadFile("guarantees.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| (.*) \| (.*) \|$`).FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(rows), 35)
	for _, row := range rows {
		sentence, tests := row[1], row[2]
		if tests == "test" {
			continue
		}
		assert.Regexp(t, `[^.]\.$`, sentence)
		assert.NotRegexp(t, `\. [A-Z]`, sentence, "more than one sentence")
		for test := range strings.SplitSeq(tests, ", ") {
			folder, name, ok := strings.Cut(test, ".")
			require.True(t, ok, test)
			if !strings.Contains(folder, "/") {
				folder = "internal/producertest/" + folder
			}
			assert.True(t, hasTest(t, root+folder, name), "there is no %s", test)
		}
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(folder + "/*_test.go")
	require.NoError(t, err)
	for _, file := range files {
		code, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(code), "\nfunc "+name+"(t *testing.T) {") {
			return true
		}
	}
	return false
}

// An attribute with the name of an identity is refused unless the body has its value. Other
// names are not checked.
func TestNamesThatAreNotChecked(t *testing.T) {
	queue := newQueue(t, sqstest.Config{})
	send := func(name string) error {
		producer := rows(t, queue, func(c *sqsfifo.Config[Row]) {
			c.Attributes = func(Row) map[string]string { return map[string]string{name: "not in the body"} }
		})
		_, err := producer.Send(t.Context(), Row{"17", 1, "ada", time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)})
		return err
	}
	for _, name := range []string{"event_id", "dedupe-key", "messageUuid"} {
		var violation *sqsfifo.ViolationError
		require.ErrorAs(t, send(name), &violation, name)
	}
	for _, name := range []string{"order_id", "sku"} {
		require.NoError(t, send(name), name)
	}
}

// Two producers represent two processes: they share no memory.
func TestLimitsWithoutAStore(t *testing.T) {
	queue := newQueue(t, sqstest.Config{})
	short := func(c *sqsfifo.Config[Row]) { c.Delivery.RetryFor = time.Millisecond }
	a, b := rows(t, queue, short), rows(t, queue)
	row := Row{"17", 1, "ada", time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)}
	send := func(p *sqsfifo.Producer[Row], r Row, messages int) {
		t.Helper()
		_, err := p.Send(t.Context(), r)
		require.NoError(t, err)
		assert.Len(t, queue.Messages(), messages)
	}
	send(a, row, 1)
	send(b, row, 1) // an unchanged copy of another process is dropped
	queue.Advance(5 * time.Minute)
	send(b, row, 2) // after five minutes it is delivered twice
	changed := row
	changed.CreatedAt = row.CreatedAt.Add(time.Second) // another payload with the same key
	send(rows(t, queue), changed, 3)                   // a producer that does not know the first payload

	// The first attempt of a fails with "not stored". Its event is in the queue, because b sent it.
	other := Row{"18", 1, "ada", row.CreatedAt}
	send(b, other, 4)
	queue.Inject(sqstest.Throttle(), 1<<20)
	_, err := a.Send(t.Context(), other)
	assert.Equal(t, sqsfifo.FateNotStored, sqsfifo.FateOf(err), err)
}

// A group that is paused in one producer goes on in another.
func TestProducersHaveNoCommonOrder(t *testing.T) {
	queue := newQueue(t, sqstest.Config{})
	short := func(c *sqsfifo.Config[Row]) { c.Delivery.RetryFor = time.Millisecond }
	a, b := rows(t, queue, short), rows(t, queue)
	at := time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)
	queue.Inject(sqstest.LoseAnswer(), 1<<20)
	_, err := a.Send(t.Context(), Row{"1", 1, "ada", at})
	require.Equal(t, sqsfifo.FateInDoubt, sqsfifo.FateOf(err), err)
	queue.ClearFaults()
	_, err = a.Send(t.Context(), Row{"2", 1, "ada", at})
	require.ErrorIs(t, err, sqsfifo.ErrGroupPaused)
	_, err = b.Send(t.Context(), Row{"2", 1, "ada", at})
	require.NoError(t, err)
}

// rows returns a producer of rows. The invoices belong to another organization than kfm.
func rows(t *testing.T, queue *sqstest.Queue, change ...func(*sqsfifo.Config[Row])) *sqsfifo.Producer[Row] {
	t.Helper()
	c := sqsfifo.Config[Row]{QueueURL: queue.URL(), Organization: "acme", Source: "acme.billing.invoices", Identify: identify}
	for _, f := range change {
		f(&c)
	}
	producer, err := sqsfifo.NewProducer(queue, c)
	require.NoError(t, err)
	return producer
}
