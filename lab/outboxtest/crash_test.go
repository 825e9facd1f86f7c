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
	crashEvents = flag.Int("crash.events", 3000, "events written by the crash tests")
	crashKills  = flag.Int("crash.kills", 4, "relays killed in each crash test")
	crashStops  = flag.Int("crash.stops", 2, "immediate stops of PostgreSQL in its crash test")
	crashSeed   = flag.Uint64("crash.seed", 0, "seed of the crash tests; 0 draws a seed")
)

const (
	crashGroups    = 200
	crashWriters   = 8
	crashResendFor = 4 * time.Second
	crashLease     = time.Second

	childDialect  = "OUTBOX_TEST_DIALECT"
	childSource   = "OUTBOX_TEST_SOURCE"
	childEndpoint = "OUTBOX_TEST_ENDPOINT"
	childQueue    = "OUTBOX_TEST_QUEUE"
	childHolder   = "OUTBOX_TEST_HOLDER"
)

// With -short the tests of this folder send fewer events, because `make test` runs them
// together with all other tests.
func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		*crashEvents, *crashKills, *crashStops = min(*crashEvents, 1000), min(*crashKills, 2), min(*crashStops, 1)
		*faultRounds, *throughputEvents = min(*faultRounds, 1), min(*throughputEvents, 1000)
	}
	os.Exit(m.Run())
}

func crashConfig(db *sql.DB, d outbox.Dialect) outbox.Config {
	return outbox.Config{DB: db, Dialect: d, ResendFor: crashResendFor}
}

// A child process of the tests below executes this test: it runs a relay until the parent
// kills it.
func TestRelayForTheParentProcess(t *testing.T) {
	if os.Getenv(childSource) == "" {
		t.Skip("runs as a child of a crash test")
	}
	dialect, _ := strconv.Atoi(os.Getenv(childDialect))
	d := database{outbox.Dialect(dialect), os.Getenv(childSource)}
	db, err := d.connect()
	require.NoError(t, err)
	var box *outbox.Outbox
	eventually(t, "the database answers", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		box, err = outbox.Open(ctx, crashConfig(db, d.dialect))
		return err == nil
	})
	client := sqsfifo.NewClient(aws.Config{
		BaseEndpoint: aws.String(os.Getenv(childEndpoint)), Region: sqstest.Region,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
	r, err := outbox.NewRelay(box, outbox.RelayConfig{
		Sender: newProducer(t, client, os.Getenv(childQueue)),
		Holder: os.Getenv(childHolder), Lease: crashLease, Poll: 20 * time.Millisecond,
	})
	require.NoError(t, err)
	require.NoError(t, r.Run(context.Background()))
}

// crashTest is a test that kills relays and stops the database while writers add events.
// The queue runs in the test's own process and survives.
type crashTest struct {
	database
	t        *testing.T
	rng      *rand.Rand
	db       *sql.DB
	box      *outbox.Outbox
	queue    *sqstest.Queue
	endpoint string

	written     atomic.Int64 // number of committed or possibly committed events
	allowed     atomic.Int64 // the writers wait after this number of events
	rollbacks   atomic.Int64
	interrupted atomic.Int64 // number of failed transactions and unconfirmed commits

	relays   [2]*exec.Cmd
	started  int
	kills    int // killed relays; leaders counts the leaders among them
	leaders  int
	lateRows int
}

func newCrashTest(t *testing.T, d database) *crashTest {
	s := &crashTest{database: d, t: t}
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	s.rng = rand.New(rand.NewPCG(seed, 0))
	s.db = d.open(t)
	require.NoError(t, outbox.Migrate(t.Context(), s.db, d.dialect))
	var err error
	s.box, err = outbox.Open(t.Context(), crashConfig(s.db, d.dialect))
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

// write commits transactions of random length until all events are written.
func (s *crashTest) write(writer int, rng *rand.Rand) error {
	total := int64(*crashEvents)
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
			e := Event{fmt.Sprintf("%d-%d-%d", writer, n, i), fmt.Sprintf("group-%03d", rng.IntN(crashGroups))}
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
				// Do not repeat the transaction, because it may have committed. The final
				// check compares the queue with table "facts".
				s.interrupted.Add(1)
				s.written.Add(int64(size))
			case try > 2000:
				return err
			default:
				s.interrupted.Add(1)
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

func (s *crashTest) commit(msgs []*sqsfifo.Message, byGroup map[string][]string, pause time.Duration, fails bool) error {
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
	if s.dialect == outbox.PostgreSQL { // SQLite has one writer at a time, so a pause would block all others
		time.Sleep(pause)
	}
	if err := s.recordOrder(ctx, tx, byGroup); err != nil {
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

// recordOrder writes the events of the transaction into the table "facts". Within a group,
// the events get increasing version numbers. Add has locked the groups until the commit, so
// the version numbers follow the order of the commits.
func (s *crashTest) recordOrder(ctx context.Context, tx *sql.Tx, byGroup map[string][]string) error {
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
func (s *crashTest) startRelay(i int) {
	s.started++
	cmd := exec.Command(os.Args[0], "-test.run", "^TestRelayForTheParentProcess$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childDialect, s.dialect), childSource+"="+s.source,
		childEndpoint+"="+s.endpoint, childQueue+"="+s.queue.URL(), fmt.Sprintf("%s=relay-%d", childHolder, i))
	require.NoError(s.t, cmd.Start())
	s.relays[i] = cmd
}

// killRelay kills a relay, usually the leader.
func (s *crashTest) killRelay() {
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

// disturb kills a relay *crashKills times and stops the database server serverStops times,
// in random order, while the writers add events. If srv is nil, serverStops must be 0.
func (s *crashTest) disturb(srv *pgserver.Server, serverStops int) {
	var plan []bool // true for a stop of the server, false for a kill of a relay
	for i := range *crashKills + serverStops {
		plan = append(plan, i < serverStops)
	}
	s.rng.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	for i, stop := range plan {
		share := int64(*crashEvents) * int64(i+1) / int64(len(plan)+1)
		s.allowed.Store(share)
		// The fault comes at a random time around the end of this share of the events.
		eventually(s.t, "events are written", func() bool { return s.written.Load() >= share-int64(s.rng.IntN(500)) })
		time.Sleep(time.Duration(s.rng.IntN(700)) * time.Millisecond)
		if stop {
			srv.Stop(syscall.SIGQUIT)
			srv.Start(s.t)
		} else {
			s.killRelay()
		}
	}
	s.allowed.Store(int64(*crashEvents))
}

// resolve waits until the outbox is empty, and fails if it makes no progress for a
// minute. It resolves each late message: ResolutionTookEffect if the queue has the
// message, otherwise ResolutionNoEffect.
func (s *crashTest) resolve() {
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
			if row.Group == group { // only the first message of a group can be resolved
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

func (s *crashTest) has(body string) bool {
	return slices.ContainsFunc(s.queue.Messages(), func(m sqstest.Message) bool { return m.Body == body })
}

// check compares the messages in the queue with the rows of table "facts".
func (s *crashTest) check() {
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
		n, len(want), s.rollbacks.Load(), s.interrupted.Load(), s.kills, s.leaders, len(s.queue.Suppressed()), s.lateRows)
}

func (s *crashTest) run(srv *pgserver.Server, stops int) {
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
	for w := range crashWriters {
		rng := rand.New(rand.NewPCG(s.rng.Uint64(), 1))
		writers.Go(func() { assert.NoError(s.t, s.write(w, rng)) })
	}
	s.disturb(srv, stops)
	writers.Wait()
	s.resolve()
	s.check()
	s.t.Logf("%d immediate stops of the server; %v", stops, time.Since(begin).Round(time.Second))
	assert.Equal(s.t, *crashKills, s.kills)
	if !testing.Short() {
		assert.NotEmpty(s.t, s.queue.Suppressed(), "nothing was ever sent again")
	}
}

func TestCrashesPostgreSQL(t *testing.T) {
	srv := pgserver.New(t)
	newCrashTest(t, database{outbox.PostgreSQL, srv.Source()}).run(srv, *crashStops)
}

func TestCrashesSQLite(t *testing.T) {
	newCrashTest(t, newSQLite(t)).run(nil, 0)
}
