package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// generatedLog is an io.Reader of a generated log. The log has 3,000 lines for each
// second, and every twentieth line is a duplicate.
type generatedLog struct {
	lines, next int
	// Every lostEvery-th duplicate has an additional attribute, so "sqsfifo simulate"
	// counts this duplicate as LOST. 0 means none.
	lostEvery int
	rest      []byte
	buffer    []byte
}

func (g *generatedLog) Read(p []byte) (int, error) {
	for len(g.rest) == 0 {
		if g.next == g.lines {
			return 0, io.EOF
		}
		g.buffer = g.buffer[:0]
		for range min(200, g.lines-g.next) {
			event := g.next
			if event%20 == 19 {
				event -= 10
			}
			at := time.Date(2025, 12, 4, 0, 0, 0, 0, time.UTC).Add(time.Duration(g.next) * time.Second / 3000)
			g.buffer = append(g.buffer, `{"at":"`...)
			g.buffer = at.AppendFormat(g.buffer, "2006-01-02T15:04:05.000Z07:00")
			// Do not use fmt here: it would take as long as the measured work.
			number := strconv.Itoa(event)
			for _, part := range []string{
				`","group":"p`, strconv.Itoa(event % 500), `r29","body":{"dedupe_key":"landsat/p32r29/`, number,
				`","event_id":"0197a0c2-7f00-7000-8000-`, "000000000000"[len(number):], number,
				`","event_source":"kfm.landsat.scenes","payload":{"cloud":`, strconv.Itoa(event % 100), `,"scene":"LC08_L2SP_`, number, `"}}`, g.attributes(event), "}\n",
			} {
				g.buffer = append(g.buffer, part...)
			}
			g.next++
		}
		g.rest = g.buffer
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}

func (g *generatedLog) attributes(event int) string {
	if g.lostEvery == 0 || event == g.next || g.next/20%g.lostEvery != 0 {
		return ""
	}
	return `,"attributes":{"unique_key":"` + strconv.Itoa(g.next) + `"}`
}

// BenchmarkSimulate prints the lines per second, the processor time per line and the peak
// memory of the process. SQSFIFO_SIMULATE_LINES sets the length of the log, by default
// 300,000.
func BenchmarkSimulate(b *testing.B) {
	lines := benchmarkLines(b)
	before, counted := processorTime()
	for b.Loop() {
		var summary strings.Builder
		code := run(b.Context(), []string{"simulate", "--findings"}, stdio{&generatedLog{lines: lines}, io.Discard, &summary})
		if code != exitFine || !strings.HasPrefix(summary.String(), fmt.Sprintf("%d messages: 0 LOST", lines)) || !strings.HasSuffix(summary.String(), fmt.Sprintf("%d duplicates suppressed, %d delivered once\n", lines/20, lines-lines/20)) {
			b.Fatal(code, summary.String())
		}
	}
	reportLines(b, lines, before, counted)
}

// BenchmarkSimulatePage is like BenchmarkSimulate with a file, --html and one finding per
// 2,000 lines. It also prints the size of the page.
func BenchmarkSimulatePage(b *testing.B) {
	lines := benchmarkLines(b)
	folder := b.TempDir()
	log, page := filepath.Join(folder, "events.jsonl"), filepath.Join(folder, "page.html")
	f, err := os.Create(log)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(f, &generatedLog{lines: lines, lostEvery: 100}); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	before, counted := processorTime()
	for b.Loop() {
		var summary strings.Builder
		code := run(b.Context(), []string{"simulate", "--findings", "--html", page, log}, stdio{nil, io.Discard, &summary})
		if code != exitFindings || !strings.HasPrefix(summary.String(), fmt.Sprintf("%d messages: %d LOST", lines, lines/2000)) || !strings.HasSuffix(summary.String(), fmt.Sprintf("%d delivered once\n", lines-lines/20)) {
			b.Fatal(code, summary.String())
		}
	}
	reportLines(b, lines, before, counted)
	info, err := os.Stat(page)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/(1<<20), "page-MiB")
}

// benchmarkLines returns the length of the log, by default 300,000.
func benchmarkLines(b *testing.B) int {
	text := os.Getenv("SQSFIFO_SIMULATE_LINES")
	if text == "" {
		return 300_000
	}
	lines, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return lines
}

func reportLines(b *testing.B, lines int, before float64, counted bool) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ReportMetric(float64(lines)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
	if after, ok := processorTime(); ok && counted {
		b.ReportMetric((after-before)*1e9/(float64(lines)*float64(b.N)), "cpu-ns/line")
	}
	b.ReportMetric(float64(m.Sys)/(1<<20), "MiB")
	if peak, ok := peakMemory(); ok {
		b.ReportMetric(peak, "peak-MiB")
	}
}

// peakMemory returns the peak memory of the process, from /proc.
func peakMemory() (mib float64, ok bool) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, false
	}
	_, after, found := bytes.Cut(status, []byte("VmHWM:"))
	fields := bytes.Fields(after)
	if !found || len(fields) == 0 {
		return 0, false
	}
	kib, err := strconv.ParseFloat(string(fields[0]), 64)
	return kib / 1024, err == nil
}

// processorTime returns the processor time of this process in seconds, from /proc. The
// unit there is USER_HZ, which Linux fixes at 100.
func processorTime() (seconds float64, ok bool) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, false
	}
	// The text is "PID (NAME) FIELDS". Among these fields, user and system time are the
	// 12th and 13th.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, false
	}
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseFloat(string(field), 64)
		if err != nil {
			return 0, false
		}
		seconds += ticks / 100
	}
	return seconds, true
}
