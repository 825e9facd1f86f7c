package main

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/lab/bench/internal/meter"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// command is an event of about 300 bytes.
type command struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

const (
	// target is the minimum rate with a store, relative to the rate without a store.
	target = 0.35

	// roundTrip is the duration of a request to the fake SQS, typical within an AWS region.
	roundTrip = 5 * time.Millisecond

	inFlight = 10
)

// produce prints the rates of producers with and without the store. The producers take
// turns. They send batches of events over HTTP to a fake SQS in this process.
func produce(name string, db *sql.DB, dialect sqlstore.Dialect, n, rounds int, delay time.Duration) {
	ctx := context.Background()
	meter.Check(sqlstore.Migrate(ctx, db, dialect))
	s, err := sqlstore.Open(ctx, sqlstore.Config{DB: db, Dialect: dialect})
	meter.Check(err)
	sides := []struct {
		name  string
		store sqsfifo.StoreConfig
		rates []float64
		costs []float64
		makes []float64 // allocations per event
		wrote sqlstore.Stats
	}{
		{name: "without a store"},
		{name: "with the store", store: sqsfifo.StoreConfig{Store: s}},
		{name: "the same events again", store: sqsfifo.StoreConfig{Store: s}},
	}
	for range rounds {
		first := sent.Add(int64(n))
		for i := range sides {
			side := &sides[i]
			before := s.Stats()
			rate, cost, allocations := send(side.store, first, n, i == 2, delay)
			after := s.Stats()
			side.wrote.Transactions += after.Transactions - before.Transactions
			side.wrote.Claims += after.Claims - before.Claims
			side.wrote.Endings += after.Endings - before.Endings
			side.rates, side.costs, side.makes = append(side.rates, rate), append(side.costs, cost), append(side.makes, allocations)
		}
	}
	without := meter.Median(sides[0].rates)
	fmt.Printf("%s: a producer over HTTP, SQS takes %v, %d requests in flight, batches, %d events, %d rounds\n", name, delay, inFlight, n, rounds)
	for i, side := range sides {
		rate := meter.Median(side.rates)
		fmt.Printf("  %-22s %9.0f events/s, %5.1f us of processor time and %.0f allocations an event", side.name, rate, 1e6*meter.Median(side.costs), meter.Median(side.makes))
		if i > 0 {
			fmt.Printf(", %.2f of that without", rate/without)
		}
		if i == 1 {
			fmt.Printf(" (at least %.2f wanted)", target)
		}
		if transactions := float64(side.wrote.Transactions); transactions > 0 {
			fmt.Printf(", %.1f claims and %.1f results a transaction", float64(side.wrote.Claims)/transactions, float64(side.wrote.Endings)/transactions)
		}
		fmt.Println()
	}
	meter.Check(s.Close())
}

// sent is the number of events sent so far, by all measurements.
var sent atomic.Int64

// send measures one producer, including Close, which writes results to the store. The fake
// SQS waits for the duration in the parameter `delay` before it handles a request. send
// returns the events per second and, for each event, the processor time in seconds and the
// number of allocations. The processor time and the allocations include the fake SQS.
func send(store sqsfifo.StoreConfig, first int64, n int, duplicates bool, delay time.Duration) (rate, cost, allocations float64) {
	ctx := context.Background()
	q, err := sqstest.NewQueue(sqstest.Config{})
	meter.Check(err)
	fake := sqstest.NewServer(q)
	endpoint, end := meter.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(delay)
		fake.ServeHTTP(w, r)
	}))
	defer end()
	// As in production, the requests have a signature. Without one, the SDK's middleware would
	// make all requests of the producer, not only the first.
	signed := credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "")
	client := sqsfifo.NewClient(aws.Config{Region: sqstest.Region, Credentials: signed}, func(o *sqs.Options) { o.BaseEndpoint = &endpoint })
	if store.Store != nil {
		store.Queue = "bench" // each measurement has its own queue name
	}
	p, err := sqsfifo.NewProducer(client, sqsfifo.Config[command]{
		QueueURL: endpoint + "/" + sqstest.Account + "/" + q.Name(), Source: "kfm.bench.commands", Store: store,
		Delivery: sqsfifo.Delivery{InFlight: inFlight},
		Identify: func(c command) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: c.ID, Group: c.ID[len(c.ID)-3:], Time: time.Unix(1e9, 0)}, nil
		},
	})
	meter.Check(err)
	events := make([]command, n)
	for i := range events {
		events[i] = command{ID: fmt.Sprintf("command-%09d", first+int64(i)), Text: fmt.Sprintf("%0150d", first+int64(i))}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, used := time.Now(), meter.ProcessorTime()
	for _, r := range p.SendBatch(ctx, events) {
		meter.Check(r.Err)
		if r.Receipt.Duplicate != duplicates {
			meter.Check(fmt.Errorf("%s: duplicate %v", r.Receipt.DedupeKey, r.Receipt.Duplicate))
		}
	}
	meter.Check(p.Close(ctx))
	took, use := time.Since(start), meter.ProcessorTime()-used
	runtime.ReadMemStats(&after)
	return float64(n) / took.Seconds(), use.Seconds() / float64(n), float64(after.Mallocs-before.Mallocs) / float64(n)
}
