// Command window compares package window, which recognizes repeated IDs for five minutes,
// with a Go map with expiry and with several caches. It prints the times of each, the
// ratios to the times of package window, and which targets are missed.
//
// Each compared implementation (called a side) runs in a process with one processor. The
// sides take turns of a few milliseconds to seconds. The measure is the processor time of
// the process, including garbage collection, so the ratios are stable on a busy machine.
// In each call, called a claim, a side reports whether it saw an ID in the last five
// minutes, and remembers the ID. The times of the claims are simulated, such that n IDs
// are remembered (live) at a time. Every answer is checked: a side must not treat a live
// ID as new, nor still know an ID after the five minutes. Either mistake would make a
// program lose an event.
//
// The exit code is 1 if a target is missed. The command needs Linux.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
)

func main() {
	n := flag.Int("n", 900_000, "live IDs: 900000 are 3,000 messages a second, 21000000 are 70,000")
	rounds := flag.Int("rounds", 15, "turns that each side takes in a phase; the table has their medians")
	only := flag.String("only", strings.Join(sideNames, ","), "sides to run, of "+strings.Join(sideNames, ", "))
	side := flag.String("work", "", "for internal use: hold this side and take orders on standard input")
	flag.Parse()
	if *side != "" {
		meter.Check(work(*side, *n, os.Stdin, os.Stdout))
		return
	}
	missed, err := compare(*n, *rounds, strings.Split(*only, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if missed > 0 {
		fmt.Printf("\n%d missed\n", missed)
		os.Exit(1)
	}
}

func compare(n, rounds int, names []string) (missed int, err error) {
	var processes []*process
	for _, name := range names {
		if sides[name] == nil {
			return 0, fmt.Errorf("no side %q", name)
		}
		p, err := start(name, n)
		if err != nil {
			return 0, err
		}
		defer p.Stop()
		processes = append(processes, p)
	}
	// The number of claims in the phase "stall". Each claim makes one ID live, and one
	// older ID expires.
	const stallClaims = 90_000
	for _, phase := range phases {
		turns, o := rounds, command{Phase: phase, Count: max(n/100, 10_000)}
		switch phase {
		case "fill":
			// n IDs arrive in five simulated minutes. With 5 % more IDs, the first IDs
			// expire.
			o.Count = (n + n/20) / rounds
		case "stall":
			turns, o.Count = 5, stallClaims
		case "memory":
			turns, o.Count = 1, 0
		case "gc":
			turns, o.Count = 5, 0
		}
		for range turns {
			for _, p := range processes {
				if err := p.do(o); err != nil {
					return 0, err
				}
			}
		}
	}
	fmt.Printf("%s, %d live IDs, %d rounds, processor time, medians\n\n", runtime.Version(), n, rounds)
	fmt.Println("| | fill, ns | insert, ns | hit, ns | miss, ns | B/ID | GC cycle | longest claim (of no claim) |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, p := range processes {
		missed += p.print(n, processes[0])
	}
	fmt.Printf("\nWrong answers, of all of the kind\n\n")
	fmt.Println("| | claimed again at once: taken for new | live: not known | interval just over: known | never claimed: known |")
	fmt.Println("|---|---|---|---|---|")
	for _, p := range processes {
		missed += p.printWrong(processes[0])
	}
	return missed, nil
}

// print prints one implementation's row of the table, with ratios to the times of package
// window (the parameter `ours`). It returns the number of missed targets.
func (p *process) print(n int, ours *process) (missed int) {
	row := []string{p.name}
	for _, phase := range []string{"fill", "insert", "hit", "miss"} {
		text := fmt.Sprintf("%.0f", p.perOp(phase))
		if p != ours {
			ratio := p.perOp(phase) / ours.perOp(phase)
			text += fmt.Sprintf(" (%.2fx)", ratio)
			if (phase == "fill" || phase == "insert") && ratio < 1 {
				text += " **missed**"
				missed++
			}
		}
		row = append(row, text)
	}
	bytes := float64(p.got["memory"][0].Bytes) / float64(n)
	gc := p.median("gc", func(r report) float64 { return float64(r.GC) })
	stall, floor := time.Duration(0), time.Duration(0)
	for _, r := range p.got["stall"] {
		stall, floor = max(stall, r.Stall), max(floor, r.Floor)
	}
	row = append(row, fmt.Sprintf("%.1f", bytes), time.Duration(gc).Round(10*time.Microsecond).String(),
		fmt.Sprintf("%v (%v)", stall.Round(10*time.Microsecond), floor.Round(10*time.Microsecond)))
	if p == ours {
		for i, ok := range map[int]bool{5: bytes <= 75, 6: gc <= 5e6, 7: stall <= 5*time.Millisecond} {
			if !ok {
				row[i] += " **missed**"
				missed++
			}
		}
	}
	fmt.Println("| " + strings.Join(row, " | ") + " |")
	return missed
}

// printWrong prints one implementation's row of the table of wrong answers. For package
// window (the parameter `ours`), it returns the number of columns with wrong answers. For
// other implementations, it returns 0.
func (p *process) printWrong(ours *process) (missed int) {
	row := []string{p.name}
	for _, kind := range [][]string{{"again"}, {"hit", "inside"}, {"outside"}, {"miss", "fill", "insert"}} {
		wrong, asked := p.wrong(kind...)
		text := fmt.Sprintf("%d of %d", wrong, asked)
		if p == ours && wrong > 0 {
			text += " **missed**"
			missed++
		}
		row = append(row, text)
	}
	fmt.Println("| " + strings.Join(row, " | ") + " |")
	return missed
}

func (p *process) wrong(phases ...string) (wrong, asked int) {
	for _, phase := range phases {
		for _, r := range p.got[phase] {
			wrong, asked = wrong+r.Wrong, asked+r.Asked
		}
	}
	return wrong, asked
}

func (p *process) perOp(phase string) float64 {
	return p.median(phase, func(r report) float64 { return r.PerOp })
}

func (p *process) median(phase string, of func(report) float64) float64 {
	var v []float64
	for _, r := range p.got[phase] {
		v = append(v, of(r))
	}
	slices.Sort(v)
	return v[len(v)/2]
}
