package telemetry

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/producertest"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// errorDuring returns a function that returns err in the period between two times, and
// otherwise nil. The times are measured from the call of errorDuring.
func errorDuring(from, to time.Duration, err error) func() error {
	began := time.Now()
	return func() error {
		if at := time.Since(began); from <= at && at < to {
			return err
		}
		return nil
	}
}

var errNoHost = &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "sqs.us-east-1.test", IsNotFound: true}}

const ever = 24 * time.Hour

func withHTTP(q *sqstest.Queue, fault func() error) *sqs.Client {
	return q.Client(func(o *sqs.Options) { o.HTTPClient = producertest.Unreachable{Next: o.HTTPClient, Fault: fault} })
}

func withCredentials(q *sqstest.Queue, fault func() error) *sqs.Client {
	return q.Client(func(o *sqs.Options) {
		o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, fault()
		})
	})
}

// If the configuration never works, for example without credentials, an event fails after
// 15 seconds (the default of Delivery.StartFor). The event's error and the log contain the
// cause.
func TestFaultOfTheConfiguration(t *testing.T) {
	noCredentials := errors.New("no EC2 IMDS role found")
	for name, tc := range map[string]struct {
		client func(q *sqstest.Queue) sqsfifo.Client
		change func(*sqsfifo.Config[producertest.Scene])
		after  time.Duration
		text   string
	}{
		"no credentials": {
			client: func(q *sqstest.Queue) sqsfifo.Client { return withCredentials(q, errorDuring(0, ever, noCredentials)) },
			text:   noCredentials.Error(),
		},
		"a host that does not exist": {
			client: func(q *sqstest.Queue) sqsfifo.Client { return withHTTP(q, errorDuring(0, ever, errNoHost)) },
			text:   "no such host",
		},
		"connection refused": {
			client: func(q *sqstest.Queue) sqsfifo.Client {
				return withHTTP(q, errorDuring(0, ever, producertest.ErrRefused))
			},
			text: "connection refused",
		},
		"no such queue": {
			client: func(q *sqstest.Queue) sqsfifo.Client { return q.Client() },
			change: func(c *sqsfifo.Config[producertest.Scene]) {
				c.QueueURL = strings.Replace(c.QueueURL, "events.fifo", "nowhere.fifo", 1)
			},
			text: "AWS.SimpleQueueService.NonExistentQueue",
		},
		"a setting": {
			client: func(q *sqstest.Queue) sqsfifo.Client {
				return withHTTP(q, errorDuring(0, ever, producertest.ErrRefused))
			},
			change: func(c *sqsfifo.Config[producertest.Scene]) { c.Delivery.StartFor = time.Second },
			after:  time.Second,
			text:   "connection refused",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := producertest.NewQueue(t, sqstest.Config{})
				var log logBuffer
				began := time.Now()
				p := producertest.On(t, tc.client(q), q, func(c *sqsfifo.Config[producertest.Scene]) {
					c.Telemetry.Logger = log.logger()
					if tc.change != nil {
						tc.change(c)
					}
				})
				_, err := p.Send(t.Context(), producertest.Sample)
				if tc.after == 0 {
					tc.after = 15 * time.Second
				}
				assert.Equal(t, tc.after, time.Since(began))
				var not *sqsfifo.NotStoredError
				require.ErrorAs(t, err, &not)
				assert.ErrorContains(t, err, "SQS has not answered this producer yet; check the configuration, or raise Delivery.StartFor")
				assert.ErrorContains(t, err, tc.text)
				require.NoError(t, p.Close(t.Context()))
				t.Log(err)
				for _, line := range log.lines() {
					t.Log(line)
				}
				require.Len(t, log.lines(), 1)
				assert.Contains(t, log.lines()[0], `level=ERROR msg="sqsfifo: calls to SQS fail, and none has been answered yet; check the configuration"`)
				assert.Contains(t, log.lines()[0], tc.text)
			})
		})
	}
}

// For 8 seconds, less than Delivery.StartFor, the host, the credentials or the store do
// not work, as in a new pod. No event is lost.
func TestLateStart(t *testing.T) {
	for name, start := range map[string]func(q *sqstest.Queue, c *sqsfifo.Config[producertest.Scene]) sqsfifo.Client{
		"the host": func(q *sqstest.Queue, _ *sqsfifo.Config[producertest.Scene]) sqsfifo.Client {
			return withHTTP(q, errorDuring(0, 8*time.Second, errNoHost))
		},
		"the credentials": func(q *sqstest.Queue, _ *sqsfifo.Config[producertest.Scene]) sqsfifo.Client {
			return withCredentials(q, errorDuring(0, 8*time.Second, errors.New("no role yet")))
		},
		"the store": func(q *sqstest.Queue, c *sqsfifo.Config[producertest.Scene]) sqsfifo.Client {
			c.Store.Store = faultyStore{new(idempotency.Memory), errorDuring(0, 8*time.Second, errLocked)}
			return q
		},
	} {
		for _, order := range []sqsfifo.Order{sqsfifo.OrderStrict, sqsfifo.OrderRuns} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := producertest.NewQueue(t, sqstest.Config{})
					var log logBuffer
					c := producertest.Config()
					c.QueueURL, c.Telemetry.Logger, c.Delivery.Order = q.URL(), log.logger(), order
					began := time.Now()
					p, err := sqsfifo.NewProducer(start(q, &c), c)
					require.NoError(t, err)
					require.NoError(t, p.SendBatch(t.Context(), producertest.Scenes(30, 7)).Err())
					assert.GreaterOrEqual(t, time.Since(began), 8*time.Second)
					assert.Less(t, time.Since(began), 15*time.Second)
					require.NoError(t, p.Close(t.Context()))
					require.Len(t, log.lines(), 2)
					assert.Contains(t, log.lines()[0], "level=ERROR")
					assert.Contains(t, log.lines()[1], "answers")
				})
			})
		}
	}
}

// faultyStore is a store whose calls fail while fault returns an error.
type faultyStore struct {
	idempotency.Store
	fault func() error
}

func (s faultyStore) ClaimBatch(ctx context.Context, claims []idempotency.Claim) ([]idempotency.Outcome, error) {
	if err := s.fault(); err != nil {
		return nil, err
	}
	return s.Store.ClaimBatch(ctx, claims)
}

func (s faultyStore) Lookup(ctx context.Context, keys ...idempotency.Key) ([]idempotency.Record, error) {
	if err := s.fault(); err != nil {
		return nil, err
	}
	return s.Store.Lookup(ctx, keys...)
}

func (s faultyStore) Finish(ctx context.Context, ref idempotency.Ref, e idempotency.Ending) error {
	if err := s.fault(); err != nil {
		return err
	}
	return s.Store.Finish(ctx, ref, e)
}

// lockedError is a SQLite driver's error for a locked database.
type lockedError struct{}

func (lockedError) Error() string { return "database is locked (5) (SQLITE_BUSY)" }

func (lockedError) Code() int { return 5 }

var errLocked error = lockedError{}

// Each call of the store fails with "database is locked". The event fails after 15 seconds
// with this text. The event is in doubt, because an earlier process may have stored it.
func TestStoreThatIsLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var log logBuffer
		began := time.Now()
		p := producertest.On(t, q, q, func(c *sqsfifo.Config[producertest.Scene]) {
			c.Telemetry.Logger = log.logger()
			c.Store.Store = faultyStore{new(idempotency.Memory), errorDuring(0, ever, errLocked)}
		})
		_, err := p.Send(t.Context(), producertest.Sample)
		assert.Equal(t, 15*time.Second, time.Since(began))
		var doubt *sqsfifo.InDoubtError
		require.ErrorAs(t, err, &doubt)
		assert.Zero(t, doubt.Since)
		require.ErrorIs(t, err, errLocked)
		assert.ErrorContains(t, err, "the store has not answered this producer yet")
		assert.ErrorContains(t, err, "database is locked")
		require.NoError(t, p.Close(t.Context()))
		t.Log(err)
		require.Len(t, log.lines(), 1)
		t.Log(log.lines()[0])
		assert.Contains(t, log.lines()[0], `level=ERROR msg="sqsfifo: calls to the store fail, and none has been answered yet; check the configuration"`)
		assert.Contains(t, log.lines()[0], "database is locked")
	})
}

// A service works for a minute, then fails for ten minutes. Each event has its outcome
// RetryFor after its submission: the limit StartFor applies only until the first answer of
// the service. The log has three records about the outage.
func TestOutage(t *testing.T) {
	for name, start := range map[string]func(q *sqstest.Queue, c *sqsfifo.Config[producertest.Scene], fault func() error) sqsfifo.Client{
		"of the network": func(q *sqstest.Queue, _ *sqsfifo.Config[producertest.Scene], fault func() error) sqsfifo.Client {
			return withHTTP(q, fault)
		},
		"of the credentials": func(q *sqstest.Queue, _ *sqsfifo.Config[producertest.Scene], fault func() error) sqsfifo.Client {
			return withCredentials(q, fault)
		},
		"of the store": func(q *sqstest.Queue, c *sqsfifo.Config[producertest.Scene], fault func() error) sqsfifo.Client {
			c.Store.Store = faultyStore{new(idempotency.Memory), fault}
			return q
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := producertest.NewQueue(t, sqstest.Config{})
				var log logBuffer
				c := producertest.Config()
				c.QueueURL, c.Telemetry.Logger = q.URL(), log.logger()
				p, err := sqsfifo.NewProducer(start(q, &c, errorDuring(time.Minute, 11*time.Minute, producertest.ErrRefused)), c)
				require.NoError(t, err)
				groups := 20
				if testing.Short() {
					groups = 4
				}
				every := 20 * time.Second / time.Duration(groups) // an event of each group every 20 seconds
				all := producertest.Scenes(int(14*time.Minute/every), groups)
				var failed, stored int
				ended := make(chan error, len(all))
				for _, s := range all { // for 14 minutes
					submitted := time.Now()
					p.SendAsync(t.Context(), s, func(_ sqsfifo.Receipt, err error) {
						ended <- err
						assert.Less(t, time.Since(submitted), 276*time.Second)
					})
					time.Sleep(every)
				}
				require.NoError(t, p.Close(t.Context()))
				for range all {
					if err := <-ended; err == nil {
						stored++
					} else {
						failed++
						assert.NotContains(t, err.Error(), "StartFor")
					}
				}
				// The events of five and a half minutes fail: RetryFor of the later ones ends
				// after the outage.
				assert.InDelta(t, int(330*time.Second/every), failed, float64(groups))
				assert.Equal(t, len(all), failed+stored)
				assert.Len(t, q.Messages(), stored)
				for _, line := range log.lines() {
					t.Log(line)
				}
				require.Len(t, log.lines(), 3)
				assert.Contains(t, log.lines()[0], "fail and are retried")
				assert.Contains(t, log.lines()[0], "failures=1 ")
				assert.Contains(t, log.lines()[1], "fail and are retried")
				assert.Contains(t, log.lines()[2], "answers again")
			})
		})
	}
}

// A service alternates between failures and answers: the log has at most two records a
// minute. A new outage after a long outage is logged within a minute.
func TestOutagesThatComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := producertest.NewQueue(t, sqstest.Config{})
		var log logBuffer
		down := false
		p := producertest.On(t, withHTTP(q, func() error {
			if down {
				return producertest.ErrRefused
			}
			return nil
		}), q, func(c *sqsfifo.Config[producertest.Scene]) { c.Telemetry.Logger = log.logger() })
		send := func(i int, every time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, _ = p.Send(ctx, producertest.Event("a", i))
			time.Sleep(every - 500*time.Millisecond)
		}
		minutes, long := 10, 3*time.Hour
		if testing.Short() {
			minutes, long = 3, 15*time.Minute
		}
		for i := range minutes * 60 { // every other event fails
			down = i%2 == 1
			send(i, time.Second)
		}
		assert.LessOrEqual(t, len(log.lines()), 2*minutes)
		down = true
		for i := range int(long / (10 * time.Second)) {
			send(i, 10*time.Second)
		}
		down = false
		send(1, time.Second)
		before := len(log.lines())
		down = true
		for i := range 61 {
			send(i, time.Second)
		}
		require.NoError(t, p.Close(t.Context()))
		assert.Greater(t, len(log.lines()), before)
	})
}
