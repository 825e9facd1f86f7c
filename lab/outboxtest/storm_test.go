//go:build unix

package outboxtest

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/pgserver"
	"github.com/kansas-frontier-matrix/sqsfifo/outbox"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var (
	stormEvents = flag.Int("storm.events", 3000, "events of the storm")
	stormKills  = flag.Int("storm.kills", 4, "relays killed in the storm")
	stormStops  = flag.Int("storm.stops", 2, "immediate stops of PostgreSQL in the storm")
	stormSeed   = flag.Uint64("storm.seed", 0, "seed of the storm; 0 draws one")
)

const (
	stormGroups    = 200
	stormWriters   = 8
	stormResendFor = 4 * time.Second
	stormLease     = time.Second

	childDialect  = "OUTBOX_TEST_DIALECT"
	childSource   = "OUTBOX_TEST_SOURCE"
	childEndpoint = "OUTBOX_TEST_ENDPOINT"
	childQueue    = "OUTBOX_TEST_QUEUE"
	childHolder   = "OUTBOX_TEST_HOLDER"
)

// With -short the storm and the brittle database are smaller, so that the module's tests
// run with all others.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		*stormEvents, *stormKills, *stormStops = min(*stormEvents, 1000), min(*stormKills, 2), min(*stormStops, 1)
		*brittleRounds, *throughputEvents = min(*brittleRounds, 1), min(*throughputEvents, 1000)
	}
	os.Exit(m.Run())
}

func stormConfig(db *sql.DB, d outbox.Dialect) outbox.Config {
	return outbox.Config{DB: db, Dialect: d, ResendFor: stormResendFor}
}

// The child of the storm runs a relay until it is killed.
func TestRelayForTheParentProcess(t *testing.T) {
	if os.Getenv(childSource) == "" {
		t.Skip("runs as a child of the storm")
	}
	dialect, _ := strconv.Atoi(os.Getenv(childDialect))
	d := database{outbox.Dialect(dialect), os.Getenv(childSource)}
	db, err := d.connect()
	require.NoError(t, err)
	var box *outbox.Outbox
	eventually(t, "the database answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		box, err = outbox.Open(ctx, stormConfig(db, d.dialect))
		return err == nil
	})
	client := sqsfifo.NewClient(aws.Config{
		BaseEndpoint: aws.String(os.Getenv(childEndpoint)), Region: sqstest.Region,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	}, 10)
	r, err := outbox.NewRelay(box, outbox.RelayConfig{
		Sender: newProducer(t, client, os.Getenv(childQueue)),
		Holder: os.Getenv(childHolder), Lease: stormLease, Poll: 20 * time.Millisecond,
	})
	require.NoError(t, err)
	require.NoError(t, r.Run(context.Background()))
}

// storm is a database with its writers, relays and queue. The queue survives all of them.
type storm struct {
	database
	t        *testing.T
	rng      *rand.Rand
	db       *sql.DB
	box      *outbox.Outbox
	queue    *sqstest.Queue
	endpoint string

	written   atomic.Int64 // including unconfirmed commits
	allowed   atomic.Int64 // number of events that may be written
	rollbacks atomic.Int64
	repeated  atomic.Int64 // transactions ended by the server

	relays   [2]*exec.Cmd
	started  int
	kills    int // of the leader and of the other
	leaders  int
	lateRows int
}

func newStorm(t *testing.T, d database) *storm {
	s := &storm{database: d, t: t}
	seed := *stormSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	s.rng = rand.New(rand.NewPCG(seed, 0))
	s.db = d.open(t)
	require.NoError(t, outbox.Migrate(t.Context(), s.db, d.dialect))
	var err error
	s.box, err = outbox.Open(t.Context(), stormConfig(s.db, d.dialect))
	require.NoError(t, err)
	for _, statement := range []string{
		`CREATE TABLE versions (message_group TEXT PRIMARY KEY, version BIGINT NOT NULL)`,
		`CREATE TABLE facts (message_group TEXT NOT NULL, version BIGINT NOT NULL, id TEXT NOT NULL)`,
	} {
		_, err := s.db.Exec(statement)
		require.NoError(t, err)
	}
	s.queue = newQueue(t)
	s.queue.InjectRandomly(sqstest.LoseAnswer(), 0.005, seed)
	s.queue.InjectRandomly(sqstest.Throttle(), 0.005, seed+1)
	server := httptest.NewServer(sqstest.NewServer(s.queue))
	t.Cleanup(server.Close)
	s.endpoint = server.URL
	return s
}

// write commits transactions of random length until all events are written. The same
// transactions write the true order into the table facts: group versions are drawn after
// Add, under the lock of their rows, so versions follow the order of commits.
func (s *storm) write(writer int, rng *rand.Rand) error {
	total := int64(*stormEvents)
	for n := 0; ; n++ {
		if s.written.Load() >= total {
			return nil
		}
		if s.written.Load() >= s.allowed.Load() {
			time.Sleep(time.Millisecond)
			continue
		}
		size := 1 + rng.IntN(30)
		byGroup := map[string][]string{}
		var msgs []*sqsfifo.Message
		for i := range size {
			e := Event{fmt.Sprintf("%d-%d-%d", writer, n, i), fmt.Sprintf("group-%03d", rng.IntN(stormGroups))}
			m, err := builder.Build(e)
			if err != nil {
				return err
			}
			msgs = append(msgs, m)
			byGroup[e.Group] = append(byGroup[e.Group], e.ID)
		}
		pause := time.Duration(rng.IntN(3000)) * time.Microsecond
		fails := rng.IntN(20) == 0
		for try := 0; ; try++ {
			err := s.commit(msgs, byGroup, pause, fails)
			switch {
			case err == nil:
				s.written.Add(int64(size))
			case errors.Is(err, errRolledBack):
				s.rollbacks.Add(1)
			case errors.Is(err, errUnknown):
				// The transaction may have committed; the table facts shows the truth at
				// the end. Do not repeat the write.
				s.repeated.Add(1)
				s.written.Add(int64(size))
			case try > 2000:
				return err
			default:
				s.repeated.Add(1)
				time.Sleep(10 * time.Millisecond)
				continue
			}
			break
		}
	}
}

var (
	errRolledBack = errors.New("rolled back as planned")
	errUnknown    = errors.New("the commit was not confirmed")
)

func (s *storm) commit(msgs []*sqsfifo.Message, byGroup map[string][]string, pause time.Duration, fails bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := s.box.Add(ctx, tx, msgs...); err != nil {
		return err
	}
	if s.dialect == outbox.PostgreSQL { // SQLite's single writer would block all others
		time.Sleep(pause)
	}
	if err := s.state(ctx, tx, byGroup); err != nil {
		return err
	}
	if fails {
		return errRolledBack
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return nil
}

// state writes the true order.
func (s *storm) state(ctx context.Context, tx *sql.Tx, byGroup map[string][]string) error {
	type fact struct {
		Group   string `json:"g"`
		Version int64  `json:"v"`
		ID      string `json:"id"`
	}
	var facts []fact
	for _, g := range slices.Sorted(maps.Keys(byGroup)) {
		var last int64
		n := int64(len(byGroup[g]))
		err := tx.QueryRowContext(ctx, `INSERT INTO versions VALUES ($1, $2) ON CONFLICT (message_group)
			DO UPDATE SET version = versions.version + excluded.version RETURNING version`, g, n).Scan(&last)
		if err != nil {
			return err
		}
		for i, id := range byGroup[g] {
			facts = append(facts, fact{g, last - n + 1 + int64(i), id})
		}
	}
	text, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	insert := `INSERT INTO facts SELECT g, v, id FROM json_to_recordset($1::text::json) AS x (g text, v bigint, id text)`
	if s.dialect == outbox.SQLite {
		insert = `INSERT INTO facts SELECT json_extract(value, '$.g'), json_extract(value, '$.v'), json_extract(value, '$.id') FROM json_each(?1)`
	}
	_, err = tx.ExecContext(ctx, insert, string(text))
	return err
}

// startRelay starts a relay in its own process.
func (s *storm) startRelay(i int) {
	s.started++
	cmd := exec.Command(os.Args[0], "-test.run", "^TestRelayForTheParentProcess$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childDialect, s.dialect), childSource+"="+s.source,
		childEndpoint+"="+s.endpoint, childQueue+"="+s.queue.URL(), fmt.Sprintf("%s=relay-%d", childHolder, i))
	require.NoError(s.t, cmd.Start())
	s.relays[i] = cmd
}

// killRelay kills a relay, usually the leader.
func (s *storm) killRelay() {
	i := s.rng.IntN(2)
	if stats, err := s.box.Stats(context.Background()); err == nil && stats.Leader != "" {
		if s.rng.IntN(4) > 0 {
			i = int(stats.Leader[len(stats.Leader)-1] - '0')
		}
		if stats.Leader == fmt.Sprintf("relay-%d", i) {
			s.leaders++
		}
	}
	require.NoError(s.t, s.relays[i].Process.Signal(syscall.SIGKILL))
	_ = s.relays[i].Wait()
	s.kills++
	s.startRelay(i)
}

// disturb kills relays, and stops the server if there is one, evenly over the events.
func (s *storm) disturb(srv *pgserver.Server, stops int) {
	var plan []bool // true for a stop
	for i := range *stormKills + stops {
		plan = append(plan, i < stops)
	}
	s.rng.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	for i, stop := range plan {
		share := int64(*stormEvents) * int64(i+1) / int64(len(plan)+1)
		s.allowed.Store(share)
		// During the allowed writes, or some time after them.
		eventually(s.t, "events are written", func() bool { return s.written.Load() >= share-int64(s.rng.IntN(500)) })
		time.Sleep(time.Duration(s.rng.IntN(700)) * time.Millisecond)
		if stop {
			srv.Stop(syscall.SIGQUIT)
			srv.Start(s.t)
		} else {
			s.killRelay()
		}
	}
	s.allowed.Store(int64(*stormEvents))
}

// resolve waits until the outbox is empty. Stuck messages must be reported as late; they
// are resolved according to the consumer's messages.
func (s *storm) resolve() {
	last, since := int64(-1), time.Now()
	for {
		stats, err := s.box.Stats(context.Background())
		require.NoError(s.t, err)
		if stats.Messages == 0 {
			return
		}
		if stats.Messages != last {
			last, since = stats.Messages, time.Now()
		}
		require.Less(s.t, time.Since(since), time.Minute, "%d messages are stuck, %d of them late", stats.Messages, stats.Late)
		late, err := s.box.Late(context.Background())
		require.NoError(s.t, err)
		group := ""
		for _, row := range late {
			if row.Group == group { // the first of each group
				continue
			}
			group = row.Group
			v := idempotency.ResolutionNoEffect
			if s.has(row.Message.Body) {
				v = idempotency.ResolutionTookEffect
			}
			if err := s.box.Resolve(context.Background(), row.Group, row.Position, v); !errors.Is(err, outbox.ErrNotFirst) {
				require.NoError(s.t, err)
				s.lateRows++
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (s *storm) has(body string) bool {
	return slices.ContainsFunc(s.queue.Messages(), func(m sqstest.Message) bool { return m.Body == body })
}

// check compares the queue with the facts.
func (s *storm) check() {
	rows, err := s.db.Query(`SELECT message_group, id FROM facts ORDER BY message_group, version`)
	require.NoError(s.t, err)
	defer rows.Close()
	want, n := map[string][]string{}, 0
	for rows.Next() {
		var g, id string
		require.NoError(s.t, rows.Scan(&g, &id))
		want[g] = append(want[g], id)
		n++
	}
	require.NoError(s.t, rows.Err())
	got := sent(s.t, s.queue)
	for g := range want {
		if !assert.Equal(s.t, want[g], got[g], "group %s", g) {
			break
		}
	}
	assert.Len(s.t, got, len(want))
	assert.Len(s.t, s.queue.Messages(), n)
	s.t.Logf("%d events committed and in the queue once each, in the order of the commits of %d groups; %d transactions rolled back, %d ended by the server; "+
		"%d relays killed, %d of them the leader; SQS recognised %d resends; %d late messages were held and resolved",
		n, len(want), s.rollbacks.Load(), s.repeated.Load(), s.kills, s.leaders, len(s.queue.Suppressed()), s.lateRows)
}

func (s *storm) run(srv *pgserver.Server, stops int) {
	begin := time.Now()
	for i := range s.relays {
		s.startRelay(i)
	}
	defer func() {
		for _, cmd := range s.relays {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	}()
	var writers sync.WaitGroup
	for w := range stormWriters {
		rng := rand.New(rand.NewPCG(s.rng.Uint64(), 1))
		writers.Go(func() { assert.NoError(s.t, s.write(w, rng)) })
	}
	s.disturb(srv, stops)
	writers.Wait()
	s.resolve()
	s.check()
	s.t.Logf("%d immediate stops of the server; %v", stops, time.Since(begin).Round(time.Second))
	assert.Equal(s.t, *stormKills, s.kills)
	if !testing.Short() {
		assert.NotEmpty(s.t, s.queue.Suppressed(), "nothing was ever sent again")
	}
}

func TestStormPostgreSQL(t *testing.T) {
	srv := pgserver.New(t)
	newStorm(t, database{outbox.PostgreSQL, srv.Source()}).run(srv, *stormStops)
}

func TestStormSQLite(t *testing.T) {
	newStorm(t, newSQLite(t)).run(nil, 0)
}
