package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// kfmInstruments lists the instruments of each producer required by the contract of the
// Kansas Frontier Matrix (KFM): see docs/kfm.
var kfmInstruments = []string{
	"sqs_fifo.dedupe.collisions_detected",
	"sqs_fifo.producer.violations",
	"sqs_fifo.body_hash.length_bytes",
	"sqs_fifo.dedupe_window_hits",
}

// printMetrics prints one line for each instrument in kfmInstruments.
func printMetrics(ctx context.Context, w io.Writer, reader metric.Reader) error {
	var rm metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &rm); err != nil {
		return err
	}
	lines := map[string]string{}
	for _, scope := range rm.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Sum[int64]:
				var sum int64
				for _, p := range data.DataPoints {
					sum += p.Value
				}
				lines[m.Name] = fmt.Sprintf("%d %s", sum, m.Unit)
			case metricdata.Histogram[int64]:
				var bodies uint64
				var sum int64
				for _, p := range data.DataPoints {
					bodies, sum = bodies+p.Count, sum+p.Sum
				}
				lines[m.Name] = fmt.Sprintf("%d bodies, %d %s in all", bodies, sum, m.Unit)
			}
		}
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, name := range slices.Sorted(slices.Values(kfmInstruments)) {
		fmt.Fprintf(t, "   %s\t%s\n", name, lines[name])
	}
	return t.Flush()
}
