package sqlstoretest

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

const (
	childEndpoint = "SQLSTORE_TEST_ENDPOINT"
	childQueue    = "SQLSTORE_TEST_QUEUE"
)

type job struct {
	Group string
	N     int
}

func clientAt(endpoint string) *sqs.Client {
	return sqs.New(sqs.Options{BaseEndpoint: &endpoint, Region: sqstest.Region, Credentials: credentials.NewStaticCredentialsProvider("id", "secret", "")})
}

// The child of TestKilledConsumers consumes until it is killed, or until the queue is idle.
func TestConsumeForTheParentProcess(t *testing.T) {
	if os.Getenv(childEndpoint) == "" {
		t.Skip("runs as a child of TestKilledConsumers")
	}
	dialect, _ := strconv.Atoi(os.Getenv(childDialect))
	d := database{dialect: sqlstore.Dialect(dialect), driver: "pgx", source: os.Getenv(childSource)}
	if d.dialect == sqlstore.SQLite {
		d.driver, d.source = "sqlite", d.source+"&_txlock=immediate"
	}
	db := d.open(t)
	c, err := consumer.New(clientAt(os.Getenv(childEndpoint)), consumer.Config[job]{
		QueueURL: os.Getenv(childQueue), Visibility: 6 * time.Second, Groups: 8,
		Decode: consumer.JSON(func(j job) string { return fmt.Sprint(j.Group, "/", j.N) }),
		DB:     db, Store: d.store(t, sqlstore.Config{DB: db}),
		HandleTx: func(ctx context.Context, tx *sql.Tx, m consumer.Message[job]) error {
			_, err := tx.ExecContext(ctx, `INSERT INTO effects (message_group, n, receives) VALUES ($1, $2, $3)`, m.Payload.Group, m.Payload.N, m.Receives)
			return err
		},
		// Each kill uses up a delivery of the messages that are being handled. Without
		// limits, no message fails because of kills.
		Failure: consumer.Failure{Action: consumer.ActionBlock, Attempts: math.MaxInt},
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_ = c.WaitIdle(ctx, 2*time.Second)
		cancel()
	}()
	require.NoError(t, c.Run(ctx))
}

// Consumer processes with HandleTx are killed fifty times at any moment. The effect of
// each message happens once, in the order of its group.
func TestKilledConsumers(t *testing.T) {
	kills := 50
	if testing.Short() {
		kills = 4
	}
	each(t, func(t *testing.T, d database) {
		const groups, length = 20, 60
		id := "BIGSERIAL PRIMARY KEY"
		if d.dialect == sqlstore.SQLite {
			id = "INTEGER PRIMARY KEY AUTOINCREMENT"
		}
		db := d.open(t)
		d.store(t, sqlstore.Config{DB: db})
		_, err := db.Exec(`CREATE TABLE effects (id ` + id + `, message_group TEXT NOT NULL, n INTEGER NOT NULL, receives INTEGER NOT NULL)`)
		require.NoError(t, err)
		q, err := sqstest.NewQueue(sqstest.Config{Name: "jobs.fifo"})
		require.NoError(t, err)
		server := httptest.NewServer(sqstest.NewServer(q))
		t.Cleanup(server.Close)
		url := server.URL + "/" + sqstest.Account + "/" + q.Name()
		for n := range length {
			for g := range groups {
				body := fmt.Sprintf(`{"Group":"g%d","N":%d}`, g, n)
				_, err := q.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(q.URL()), MessageBody: &body, MessageGroupId: aws.String(fmt.Sprintf("g%d", g))})
				require.NoError(t, err)
			}
		}
		left := func() (n int) {
			for _, m := range q.Messages() {
				if !m.Deleted {
					n++
				}
			}
			return n
		}
		start := func() (*exec.Cmd, *strings.Builder) {
			self, err := os.Executable()
			require.NoError(t, err)
			child := exec.CommandContext(t.Context(), self, "-test.run=^TestConsumeForTheParentProcess$") // #nosec G204 -- this test
			child.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childDialect, d.dialect), childSource+"="+d.source, childEndpoint+"="+server.URL, childQueue+"="+url)
			out := new(strings.Builder)
			child.Stdout, child.Stderr = out, out
			require.NoError(t, child.Start())
			return child, out
		}
		effects := func() (n int) {
			require.NoError(t, db.QueryRow(`SELECT count(*) FROM effects`).Scan(&n))
			return n
		}
		killed, inWork := 0, 0
		for ; killed < kills && left() > groups; killed++ {
			before := effects()
			child, _ := start()
			for wait := time.Now(); effects() == before && time.Since(wait) < 20*time.Second; {
				time.Sleep(5 * time.Millisecond)
			}
			time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
			require.NoError(t, child.Process.Kill())
			require.Error(t, child.Wait())
			if effects() > before {
				inWork++
			}
			q.Advance(7 * time.Second) // the visibility timeouts of the dead process are over
		}
		child, out := start()
		require.NoError(t, child.Wait(), out.String())
		require.Zero(t, left())

		receives := map[string]int{}
		for _, m := range q.Messages() {
			receives[m.Body] = m.Receives
		}
		rows, err := db.Query(`SELECT message_group, n, receives FROM effects ORDER BY id`)
		require.NoError(t, err)
		defer rows.Close()
		next, again := map[string]int{}, 0
		for rows.Next() {
			var j job
			var at int
			require.NoError(t, rows.Scan(&j.Group, &j.N, &at))
			assert.Equal(t, next[j.Group], j.N, "group %s", j.Group)
			next[j.Group] = j.N + 1
			if receives[fmt.Sprintf(`{"Group":%q,"N":%d}`, j.Group, j.N)] > at {
				again++
			}
		}
		require.NoError(t, rows.Err())
		assert.Equal(t, groups*length, effects())
		assert.Equal(t, kills, killed, "kills")
		t.Logf("%d kills, %d after effects of that process; %d of %d messages were delivered again after their effect", killed, inWork, again, groups*length)
		assert.Positive(t, inWork)
		if !testing.Short() {
			assert.Positive(t, again)
		}
	})
}
