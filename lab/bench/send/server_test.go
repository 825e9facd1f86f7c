package main

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/window"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The server's check of a queue counts the lost, the repeated and the disordered messages.
func TestFlaws(t *testing.T) {
	events := scenes(8, 2)
	for _, test := range []struct {
		name   string
		stored []int
		want   flaws
	}{
		{"all in order", []int{0, 1, 2, 3, 4, 5, 6, 7}, flaws{}},
		{"each group in order", []int{1, 3, 5, 7, 0, 2, 4, 6}, flaws{}},
		{"one lost", []int{0, 1, 2, 4, 5, 6, 7}, flaws{Lost: 1}},
		{"one late", []int{0, 1, 3, 4, 2, 5, 6, 7}, flaws{Disorder: 1}},
		{"one twice", []int{0, 1, 2, 3, 4, 5, 6, 7, 0}, flaws{Twice: 1}},
	} {
		q, err := sqstest.NewQueue(sqstest.Config{Name: "bench.fifo"})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[int]bool{}
		for _, i := range test.stored {
			if seen[i] {
				q.Advance(window.Interval)
			}
			seen[i] = true
			p, err := sqsfifo.NewProducer(q, sqsfifo.Config[Scene]{QueueURL: q.URL(), Source: source, Identify: identify})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Send(t.Context(), events[i]); err != nil {
				t.Fatal(err)
			}
		}
		if got := (command{Events: len(events)}).run(q, nil); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
