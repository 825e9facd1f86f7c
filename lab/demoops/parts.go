package main

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	_ "modernc.org/sqlite" // SQL driver for the outbox

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// faultTime is the duration of a fault, long enough for each alert to fire: a minute in the
// alert rules lasts a second here, and the longest delay is "for: 15m".
const faultTime = 20 * time.Second

func sceneConfig(queueURL string, meters *metric.MeterProvider) sqsfifo.Config[scene] {
	return sqsfifo.Config[scene]{
		QueueURL: queueURL, Source: "kfm.remote-sensing.landsat-refresh",
		Identify: func(s scene) (sqsfifo.Identity, error) {
			return sqsfifo.Identity{DedupeKey: "scene|" + s.ID, Group: s.ID, Time: time.Date(2025, 12, 4, 12, 0, 0, 0, time.UTC)}, nil
		},
		Telemetry: sqsfifo.Telemetry{MeterProvider: meters},
	}
}

// newPart returns a queue with the given name and a producer for the queue.
func newPart(name string, meters *metric.MeterProvider, change func(*sqsfifo.Config[scene])) (*sqstest.Queue, *sqsfifo.Producer[scene], error) {
	q, err := sqstest.NewQueue(sqstest.Config{Name: name})
	if err != nil {
		return nil, nil, err
	}
	config := sceneConfig(q.URL(), meters)
	change(&config)
	p, err := sqsfifo.NewProducer(q, config)
	return q, p, err
}

// failingStore is a store with two faults. While claimsFail is true, ClaimBatch fails. The
// producer makes all its claims of this store with ClaimBatch. While finishFails is true,
// Finish fails and records nothing.
type failingStore struct {
	idempotency.Store
	claimsFail, finishFails atomic.Bool
}

func (s *failingStore) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if s.claimsFail.Load() {
		return nil, errors.New("the disk is full")
	}
	return s.Store.ClaimBatch(ctx, claims)
}

func (s *failingStore) Finish(ctx context.Context, ref idempotency.Ref, e idempotency.Ending) error {
	if s.finishFails.Load() {
		return idempotency.ErrClosed
	}
	return s.Store.Finish(ctx, ref, e)
}

// storePart makes the alerts about a producer's store fire. The store first refuses claims,
// and later refuses a result. Each alert ends some time after its fault.
func storePart(ctx context.Context, meters *metric.MeterProvider) error {
	store := &failingStore{Store: new(idempotency.Memory)}
	_, p, err := newPart("stored.fifo", meters, func(c *sqsfifo.Config[scene]) { c.Store.Store = store })
	if err != nil {
		return err
	}
	if _, err := p.Send(ctx, scene{ID: "first"}); err != nil {
		return err
	}
	store.claimsFail.Store(true)
	restored := time.AfterFunc(faultTime, func() { store.claimsFail.Store(false) })
	defer restored.Stop()
	if _, err := p.Send(ctx, scene{ID: "waits"}); err != nil {
		return err
	}
	store.finishFails.Store(true)
	receipt, err := p.Send(ctx, scene{ID: "lost"})
	store.finishFails.Store(false)
	if err == nil && !receipt.Unrecorded {
		return errors.New("the receipt of a lost result does not say so")
	}
	return err
}

// memoryPart triggers the alert about a producer's memory for keys: the memory has 95 of at
// most 100 keys. The alert ends when the producer is closed.
func memoryPart(ctx context.Context, meters *metric.MeterProvider) error {
	const limit = 100
	_, p, err := newPart("small.fifo", meters, func(c *sqsfifo.Config[scene]) { c.Delivery.Memory.MaxKeys = limit })
	if err != nil {
		return err
	}
	for i := range limit * 95 / 100 {
		if _, err := p.Send(ctx, scene{ID: strconv.Itoa(i)}); err != nil {
			return err
		}
	}
	time.Sleep(faultTime)
	return p.Close(ctx)
}

// consumerPart triggers the alert about a blocked message group: the handler of a message
// fails. The alert ends when the group is retried and the handler succeeds.
func consumerPart(ctx context.Context, meters *metric.MeterProvider) error {
	q, p, err := newPart("handled.fifo", meters, func(*sqsfifo.Config[scene]) {})
	if err != nil {
		return err
	}
	var works atomic.Bool
	c, err := consumer.New(q, consumer.Config[scene]{
		QueueURL: q.URL(), Store: new(idempotency.Memory), Failure: consumer.Failure{Action: consumer.ActionBlock},
		Telemetry: consumer.Telemetry{MeterProvider: meters},
		Handle: func(context.Context, consumer.Message[scene]) error {
			if !works.Load() {
				return consumer.Permanent(errors.New("no such table"))
			}
			return nil
		},
	})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	go c.Run(running)
	if _, err := p.Send(ctx, scene{ID: "blocked"}); err != nil {
		return err
	}
	time.Sleep(faultTime)
	works.Store(true)
	if err := c.Retry("blocked"); err != nil {
		return err
	}
	return c.WaitIdle(ctx, time.Second)
}

// outboxPart triggers the alerts about an outbox: SQS's answers to the sends of a message
// are lost until a resend is too late. Then outboxPart resolves the message, and the alerts
// end.
func outboxPart(ctx context.Context, meters *metric.MeterProvider, dir string) error {
	q, p, err := newPart("outbox.fifo", meters, func(c *sqsfifo.Config[scene]) { c.Delivery.RetryFor = 2 * time.Second })
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "outbox.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return err
	}
	defer db.Close()
	if err := outbox.Migrate(ctx, db, outbox.SQLite); err != nil {
		return err
	}
	box, err := outbox.Open(ctx, outbox.Config{DB: db, Dialect: outbox.SQLite, ResendFor: 3 * time.Second})
	if err != nil {
		return err
	}
	relay, err := outbox.NewRelay(box, outbox.RelayConfig{Sender: p, MeterProvider: meters})
	if err != nil {
		return err
	}
	go relay.Run(ctx)
	defer relay.Close(ctx)
	message, err := p.Build(scene{ID: "late"})
	if err != nil {
		return err
	}
	q.Inject(sqstest.LoseAnswer(), 100_000)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := box.Add(ctx, tx, message); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	relay.Wake()
	time.Sleep(faultTime + 5*time.Second)
	q.ClearFaults()
	if err := box.Resolve(ctx, "late", 1, idempotency.ResolutionTookEffect); err != nil {
		return err
	}
	p.ResumeAll()
	return nil
}

// cloudWatch has gauges with the names of CloudWatch's SQS metrics in an exporter, for the
// queues scenes.fifo and scenes-dead.fifo. The values do not come from a queue; the method
// `part` sets them.
type cloudWatch struct{ age, inFlight, dead prometheus.Gauge }

func newCloudWatch(registry *prometheus.Registry) cloudWatch {
	gauge := func(name, queue string) prometheus.Gauge {
		g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "aws_sqs_approximate_" + name + "_maximum", ConstLabels: prometheus.Labels{"queue_name": queue}})
		registry.MustRegister(g)
		return g
	}
	return cloudWatch{
		age:      gauge("age_of_oldest_message", "scenes.fifo"),
		inFlight: gauge("number_of_groups_with_inflight_messages", "scenes.fifo"),
		dead:     gauge("number_of_messages_visible", "scenes-dead.fifo"),
	}
}

// part triggers both CloudWatch alerts: the age of the oldest message grows, and the
// number of dead letters is 1. Then both values are 0, and the alerts end.
func (c cloudWatch) part() {
	c.inFlight.Set(1)
	c.dead.Set(1)
	for age := range 25 {
		c.age.Set(float64(age))
		time.Sleep(time.Second)
	}
	c.age.Set(0)
	c.dead.Set(0)
}

// skewed is an HTTP client. If skew is true, the header Date of each answer is half a
// minute ahead.
type skewed struct{ skew atomic.Bool }

func (s *skewed) Do(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultClient.Do(r)
	if err == nil && s.skew.Load() {
		answer.Header.Set("Date", time.Now().Add(30*time.Second).UTC().Format(http.TimeFormat))
	}
	return answer, err
}
