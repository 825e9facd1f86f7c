// Command canonical measures the speed of package canonicaljson and of other libraries. The
// libraries take turns in one process, and the measure is processor time. For each other
// library, the output has the ratio of its median time to the median time of canonicaljson,
// and the target for this ratio. A ratio of medians is stable on a busy machine; a single
// time is not.
//
// It exits with 1 if a target is missed.
package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gowebpki/jcs"
	"github.com/kansas-frontier-matrix/sqsfifo/canonicaljson"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

// side is one compared library in one row of the table. The field `do` is the row's work,
// done with this library.
type side struct {
	name string
	do   func()
	took []float64 // ns per operation, one value per round
}

// target is the minimum ratio of another library's time to the time of canonicaljson.
type target struct {
	side string // name of the other library
	min  float64
}

type row struct {
	name    string
	bytes   int
	sides   []*side
	targets []target
}

func main() {
	data := flag.String("data", cmp.Or(os.Getenv("SQSFIFO_DATA"), "../../shared/data"), "folder of real inputs; rows without their file are left out")
	rounds := flag.Int("rounds", 41, "rounds to take the median of")
	slice := flag.Duration("slice", 3*time.Millisecond, "time that one side runs in a round")
	only := flag.String("only", "", "measure the rows whose name contains this")
	flag.Parse()

	// With one processor, each library pays for its own garbage: the garbage collector
	// cannot use an idle processor.
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(400)

	missed := 0
	fmt.Printf("%s, %d rounds of %v a side, processor time, medians\n\n", runtime.Version(), *rounds, *slice)
	fmt.Println("| work | bytes | ours | others: time, ratio to ours (target) |")
	fmt.Println("|---|---|---|---|")
	for _, r := range rowsOf(*data) {
		if !strings.Contains(r.name, *only) {
			continue
		}
		r.measure(*rounds, *slice)
		missed += r.print()
	}
	missed += allocations()
	if missed > 0 {
		fmt.Printf("\n%d missed\n", missed)
		os.Exit(1)
	}
}

func (r *row) measure(rounds int, slice time.Duration) {
	counts := make([]int, len(r.sides))
	for i, s := range r.sides {
		for n := 1; ; n *= 2 {
			start := meter.ProcessorTime()
			for range n {
				s.do()
			}
			if took := meter.ProcessorTime() - start; took > slice/4 {
				counts[i] = max(1, int(float64(n)*float64(slice)/float64(took)))
				break
			}
		}
	}
	for range rounds {
		for i, s := range r.sides {
			start := meter.ProcessorTime()
			for range counts[i] {
				s.do()
			}
			s.took = append(s.took, float64(meter.ProcessorTime()-start)/float64(counts[i]))
		}
	}
}

// print prints a row and returns the number of missed targets.
func (r *row) print() int {
	missed := 0
	ours := meter.Median(r.sides[0].took)
	var others []string
	for _, s := range r.sides[1:] {
		took := meter.Median(s.took)
		text := fmt.Sprintf("%s %s, %.2fx", s.name, duration(took), took/ours)
		for _, t := range r.targets {
			if t.side == s.name {
				text += fmt.Sprintf(" (>= %gx", t.min)
				if took/ours < t.min {
					text += " **missed**"
					missed++
				}
				text += ")"
			}
		}
		others = append(others, text)
	}
	fmt.Printf("| %s | %d | %s | %s |\n", r.name, r.bytes, duration(ours), strings.Join(others, "; "))
	return missed
}

func duration(ns float64) string {
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.2f us", ns/1e3)
	}
	return fmt.Sprintf("%.2f ms", ns/1e6)
}

// textRow measures the canonicalisation of the JSON text src.
func textRow(name string, src []byte, targets ...target) *row {
	want, err := canonicaljson.Canonicalize(src)
	meter.Check(err)
	ours := make([]byte, 0, 2*len(src))
	theirs := make([]byte, 0, 2*len(src))
	return &row{name: name, bytes: len(src), targets: targets, sides: []*side{
		{name: "ours", do: func() {
			var err error
			ours, err = canonicaljson.AppendStrict(ours[:0], src)
			meter.Check(err)
		}},
		{name: "jsontext", do: func() {
			v := jsontext.Value(append(theirs[:0], src...))
			meter.Check(v.Canonicalize())
			theirs = v
		}},
		{name: "gowebpki", do: func() {
			_, err := jcs.Transform(src)
			meter.Check(err)
		}},
		{name: "sha256", do: func() { sha256.Sum256(want) }},
	}}
}

// valueRow measures the conversion of a Go value to canonical bytes.
func valueRow(name string, v any, targets ...target) *row {
	want, err := canonicaljson.Marshal(v)
	meter.Check(err)
	text, err := json.Marshal(v)
	meter.Check(err)
	check, err := jcs.Transform(text)
	meter.Check(err)
	if !bytes.Equal(want, check) {
		panic("the sides disagree on " + name)
	}
	ours := make([]byte, 0, 2*len(want))
	return &row{name: name, bytes: len(want), targets: targets, sides: []*side{
		{name: "ours", do: func() {
			var err error
			ours, err = canonicaljson.AppendValue(ours[:0], v)
			meter.Check(err)
		}},
		{name: "Marshal", do: func() {
			_, err := json.Marshal(v)
			meter.Check(err)
		}},
		{name: "Marshal+jsontext", do: func() {
			text, err := json.Marshal(v)
			meter.Check(err)
			meter.Check((*jsontext.Value)(&text).Canonicalize())
		}},
		{name: "Marshal+gowebpki", do: func() {
			text, err := json.Marshal(v)
			meter.Check(err)
			_, err = jcs.Transform(text)
			meter.Check(err)
		}},
		{name: "sha256", do: func() { sha256.Sum256(want) }},
	}}
}

func rowsOf(data string) []*row {
	text, err := json.Marshal(sampleEvent)
	meter.Check(err)
	canonical, err := canonicaljson.Canonicalize(text)
	meter.Check(err)
	stac := sampleItem()
	rows := []*row{
		textRow("event, compact", text, target{"jsontext", 5}, target{"gowebpki", 18}),
		textRow("event, canonical", canonical, target{"jsontext", 6}, target{"gowebpki", 24}, target{"sha256", 0.9}),
		valueRow("typed event", &sampleEvent, target{"Marshal", 2}, target{"Marshal+jsontext", 8}),
		valueRow("typed STAC item", &stac, target{"Marshal", 2}, target{"Marshal+jsontext", 6}),
	}
	scene, err := read(data, "landsat/LC08_L2SP_047027_20201204_02_T1.json")
	if err != nil {
		fmt.Fprintf(os.Stderr, "no real inputs in %s (flag -data): %v\n", data, err)
		return rows
	}
	canonical, err = canonicaljson.Canonicalize(scene)
	meter.Check(err)
	rows = append(rows,
		textRow("Landsat scene, compact", compact(scene), target{"jsontext", 4}),
		textRow("Landsat scene, canonical", canonical, target{"jsontext", 5}),
		textRow("Landsat scene, pretty", scene, target{"jsontext", 3}))
	for _, file := range []struct {
		name string
		min  float64
	}{{"canada.json", 2.8}, {"citm_catalog.json", 3}, {"twitter.json", 3.5}} {
		text, err := read(data, "json/"+file.name)
		meter.Check(err)
		rows = append(rows, textRow(file.name, text, target{"jsontext", file.min}))
	}
	return rows
}

// allocations prints the allocations per call of AppendStrict and AppendValue with enough
// room in dst. It returns 1 if there are any, otherwise 0.
func allocations() int {
	dst := make([]byte, 0, 4096)
	text, err := json.Marshal(sampleEvent)
	meter.Check(err)
	inText := testing.AllocsPerRun(1000, func() {
		_, err := canonicaljson.AppendStrict(dst, text)
		meter.Check(err)
	})
	inValue := testing.AllocsPerRun(1000, func() {
		_, err := canonicaljson.AppendValue(dst, &sampleEvent)
		meter.Check(err)
	})
	fmt.Printf("\nAllocations: Append %g, AppendValue %g (target 0)\n", inText, inValue)
	if inText+inValue > 0 {
		return 1
	}
	return 0
}
