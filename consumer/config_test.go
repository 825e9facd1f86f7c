package consumer_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// New returns an error that names each field of Config that breaks a rule.
func TestConfigErrors(t *testing.T) {
	const url = "https://sqs.us-east-1.test/000000000000/jobs.fifo"
	handle := func(context.Context, consumer.Message[job]) error { return nil }
	handleTx := func(context.Context, *sql.Tx, consumer.Message[job]) error { return nil }
	skip := consumer.Failure{Action: consumer.ActionSkip}
	for field, change := range map[string]func(c *consumer.Config[job]){
		"QueueURL":   func(c *consumer.Config[job]) { c.QueueURL = "https://sqs.us-east-1.test/000000000000/fair" },
		"Handle":     func(c *consumer.Config[job]) { c.Handle = nil },
		"DB":         func(c *consumer.Config[job]) { c.DB = &sql.DB{} },
		"Store":      func(c *consumer.Config[job]) { c.Handle, c.HandleTx, c.DB = nil, handleTx, &sql.DB{} },
		"Guarantee":  func(c *consumer.Config[job]) { c.Guarantee = consumer.GuaranteeAtMostOnce },
		"Effect":     func(c *consumer.Config[job]) { c.Effect = "a b" },
		"KeepKeys":   func(c *consumer.Config[job]) { c.KeepKeys = time.Hour },
		"Groups":     func(c *consumer.Config[job]) { c.Groups, c.Messages = -1, 100 },
		"PerReceive": func(c *consumer.Config[job]) { c.PerReceive = 11 },
		"Messages":   func(c *consumer.Config[job]) { c.Messages = 9 },
		"Bytes":      func(c *consumer.Config[job]) { c.Bytes = 1 << 20 },
		"Visibility": func(c *consumer.Config[job]) { c.Visibility = 1500 * time.Millisecond },
		"Timeout":    func(c *consumer.Config[job]) { c.Timeout = time.Hour },
		"MaxHold":    func(c *consumer.Config[job]) { c.MaxHold = 12 * time.Hour },
		"Wait":       func(c *consumer.Config[job]) { c.Wait = 21 * time.Second },
		"Shutdown":   func(c *consumer.Config[job]) { c.Shutdown = time.Millisecond },
		"Probe": func(c *consumer.Config[job]) {
			c.Probe = func(context.Context, consumer.Message[job]) (bool, error) { return true, nil }
		},
		"Failure.Action":       func(c *consumer.Config[job]) { c.Failure.Action = 0 },
		"Failure.Unresolved":   func(c *consumer.Config[job]) { c.Failure.Unresolved = 9 },
		"Failure.ParkingQueue": func(c *consumer.Config[job]) { c.Failure.Action = consumer.ActionPark },
		"Failure.Attempts":     func(c *consumer.Config[job]) { c.Failure.Attempts = -1 },
		"Failure.Deliveries":   func(c *consumer.Config[job]) { c.Failure.Deliveries = 8 }, // with ActionSkip
		"Failure.FirstBackoff": func(c *consumer.Config[job]) { c.Failure.FirstBackoff, c.Failure.MaxBackoff = time.Hour, time.Minute },
	} {
		c := consumer.Config[job]{QueueURL: url, Handle: handle, Failure: skip}
		_, err := consumer.New(nopConsumerClient{}, c)
		require.NoError(t, err)
		change(&c)
		_, err = consumer.New(nopConsumerClient{}, c)
		var wrong *sqsfifo.InvalidError
		require.ErrorAs(t, err, &wrong, field)
		assert.Equal(t, "Config."+field, wrong.Field)
		assert.NotEmpty(t, wrong.Rule)
	}
	_, err := consumer.New[job](nil, consumer.Config[job]{QueueURL: url, Handle: handle, Failure: skip})
	require.ErrorContains(t, err, "client")
}

type nopConsumerClient struct{ consumer.Client }

// Preflight returns an error for a queue with which the consumer cannot keep a guarantee,
// and notes for less serious problems.
func TestPreflight(t *testing.T) {
	for _, tc := range []struct {
		name        string
		maxReceives int
		change      func(w *world, c *consumer.Config[job])
		problem     string
		notes       int
	}{
		{name: "fits", change: func(*world, *consumer.Config[job]) {}},
		{name: "fits with a redrive policy", maxReceives: 10, change: func(*world, *consumer.Config[job]) {}},
		{name: "a small receive count", maxReceives: 3, change: func(_ *world, c *consumer.Config[job]) { c.Failure.Deliveries = 8 }, notes: 2},
		{name: "Deliveries at a dead-letter queue", maxReceives: 10, change: func(w *world, c *consumer.Config[job]) {
			c.QueueURL, c.Failure.Deliveries = w.dead.URL(), 8
			w.queue, w.dead = w.dead, w.queue
			w.send("a", 1, 2)
		}, notes: 1},
		{name: "parking in the queue itself", change: func(w *world, c *consumer.Config[job]) {
			c.Failure.ParkingQueue = strings.Replace(w.queue.URL(), "https:", "http:", 1)
		}, problem: "the queue itself"},
		{name: "a parking queue for smaller messages", change: func(w *world, c *consumer.Config[job]) {
			q, err := sqstest.NewQueue(sqstest.Config{Name: "small.fifo", MaximumMessageSize: 1024})
			require.NoError(w, err)
			w.server = sqstest.NewServer(w.queue, q)
			c.Failure.ParkingQueue = q.URL()
		}, notes: 1},
		{name: "block beside a redrive policy", maxReceives: 10, change: func(_ *world, c *consumer.Config[job]) { c.Failure.Action = consumer.ActionBlock }, problem: "redrive policy"},
		{name: "at most once beside a redrive policy", maxReceives: 10, change: func(_ *world, c *consumer.Config[job]) {
			c.Store, c.Guarantee = &idempotency.Memory{}, consumer.GuaranteeAtMostOnce
		}, problem: "redrive policy"},
		{name: "block", change: func(_ *world, c *consumer.Config[job]) { c.Failure.Action = consumer.ActionBlock }},
		{name: "no such queue", change: func(_ *world, c *consumer.Config[job]) { c.QueueURL += "x.fifo" }, problem: "read the attributes"},
		{name: "no parking queue", change: func(_ *world, c *consumer.Config[job]) { c.Failure.ParkingQueue += "x.fifo" }, problem: "read the attributes"},
		{name: "short parking", change: func(w *world, c *consumer.Config[job]) {
			q, err := sqstest.NewQueue(sqstest.Config{Name: "short.fifo", Retention: time.Hour})
			require.NoError(w, err)
			w.server = sqstest.NewServer(w.queue, q)
			c.Failure.ParkingQueue = q.URL()
		}, notes: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, tc.maxReceives, func(w *world) {
				w.send("a", 1, 2)
				c := w.config(nil)
				tc.change(w, &c)
				running, err := consumer.New(w.server, c)
				require.NoError(w, err)
				report, err := running.Preflight(w.Context())
				if tc.problem != "" {
					require.ErrorContains(w, err, tc.problem)
					return
				}
				require.NoError(w, err)
				assert.Len(w, report.Notes, tc.notes)
				assert.True(w, report.FIFO)
				assert.Equal(w, 2, report.Visible)
				if report.DeadLetterQueue != "" {
					assert.Equal(w, tc.maxReceives, report.MaxReceiveCount)
				}
			})
		})
	}
}

func TestErrorTexts(t *testing.T) {
	assert.Equal(t, "park block skip Action(0)", consumer.ActionPark.String()+" "+consumer.ActionBlock.String()+" "+consumer.ActionSkip.String()+" "+consumer.Action(0).String())
	err := &consumer.ShutdownError{Running: []string{"a"}, Unreleased: []string{"b"}}
	assert.EqualError(t, err, `consumer: shutdown incomplete: handlers still run for the groups ["a"]; messages of the groups ["b"] come back after their visibility timeout`)
	cause := errors.New("cause")
	assert.ErrorIs(t, &consumer.DeniedError{Operation: "X", Code: "Y", Err: cause}, cause)
}
