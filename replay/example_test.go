package replay_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/replay"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// A replay sends yesterday's events of one group again, in order, from a file. A consumer
// had lost them.
func Example() {
	ctx := context.Background()
	queue, err := sqstest.NewQueue(sqstest.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	producer, err := sqsfifo.NewProducer(queue, config(queue.URL()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer producer.Close(ctx)

	file := strings.NewReader(storedYesterday()) // or an *os.File, and its size
	source := replay.NewJSONLines("yesterday.jsonl", file, file.Size())
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC) // time.Now()
	plan, err := replay.NewPlan(ctx, source, replay.Options{Redeliver: true, Filter: replay.Filter{Groups: []string{"kaw"}}}, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	steps, err := replay.DryRun(ctx, plan, nil, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range steps {
		fmt.Println(s.Action, s.Item.Group, s.Item.DedupeKey, s.Label)
	}

	store := new(idempotency.Memory) // a durable one, for example of package sqlstore
	report, err := replay.Run(ctx, plan, replay.Config{Source: source, Sender: producer, Store: store, MessagesPerSecond: 100})
	fmt.Println(report.Planned, report.Sent, report.Complete(), err)
	for _, m := range queue.Messages() {
		e, _ := sqsfifo.DecodeEnvelope[Event](m.Body)
		fmt.Println("delivered", e.Payload.ID)
	}
	// Output:
	// send kaw gauge-1 outside
	// send kaw gauge-2 outside
	// 2 2 true <nil>
	// delivered gauge-1
	// delivered gauge-2
}

func ExampleReadReport() {
	ctx := context.Background()
	file := strings.NewReader(storedYesterday())
	source := replay.NewJSONLines("yesterday.jsonl", file, file.Size())
	plan, err := replay.NewPlan(ctx, source, replay.Options{}, time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))
	if err != nil {
		fmt.Println(err)
		return
	}
	// Before the first run the store may be nil. After a run, pass the run's store.
	report, results, err := replay.ReadReport(ctx, plan, nil, time.Now())
	fmt.Println(report.Planned, report.Skipped, report.SkippedFor, err)
	for _, r := range results {
		fmt.Println(r.Item.DedupeKey, r.Outcome, r.Reason)
	}
	// Output:
	// 3 3 map[delivered:3] <nil>
	// gauge-1 skipped delivered
	// gauge-9 skipped delivered
	// gauge-2 skipped delivered
}

// storedYesterday returns a file with three messages that were delivered yesterday.
func storedYesterday() string {
	var file strings.Builder
	yesterday := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for i, e := range []Event{{ID: "gauge-1", Group: "kaw"}, {ID: "gauge-9", Group: "platte"}, {ID: "gauge-2", Group: "kaw"}} {
		m, err := builder.Build(e)
		if err != nil {
			panic(err)
		}
		at := yesterday.Add(time.Duration(i) * time.Minute)
		writeLine(&file, replay.MessageLine{Message: *m, BodyHash: sqsfifo.BodyHash(m.Body), Status: replay.StatusDelivered, Sent: replay.SentBetween{From: at, To: at}})
	}
	return file.String()
}
