package sqlstoretest

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/consumer"
	"github.com/kansas-frontier-matrix/sqsfifo/idempotency/sqlstore"
	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

// The database refuses the commit of a message because of a deferred constraint. After the
// last attempt the message is parked. A handler that ends its transaction has its effect
// once, and its message is parked at once. The other messages are handled.
func TestRefusedCommit(t *testing.T) {
	each(t, func(t *testing.T, d database) {
		if d.dialect == sqlstore.SQLite {
			d.source += "&_pragma=foreign_keys(1)"
		}
		db := d.open(t)
		store := d.store(t, sqlstore.Config{DB: db})
		for _, statement := range []string{
			`CREATE TABLE parents (id INTEGER PRIMARY KEY)`,
			`CREATE TABLE children (n INTEGER, parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)`,
		} {
			_, err := db.Exec(statement)
			require.NoError(t, err)
		}
		queue, err := sqstest.NewQueue(sqstest.Config{Name: "jobs.fifo"})
		require.NoError(t, err)
		parking, err := sqstest.NewQueue(sqstest.Config{Name: "parking.fifo"})
		require.NoError(t, err)
		for n := range 5 {
			_, err := queue.SendMessage(t.Context(), &sqs.SendMessageInput{
				QueueUrl: aws.String(queue.URL()), MessageBody: aws.String(fmt.Sprintf(`{"Group":"g","N":%d}`, n)), MessageGroupId: aws.String("g"),
			})
			require.NoError(t, err)
		}
		calls := map[int]int{}
		c, err := consumer.New(sqstest.NewServer(queue, parking), consumer.Config[job]{
			QueueURL: queue.URL(), DB: db, Store: store, Decode: consumer.JSON(func(j job) string { return fmt.Sprint(j.N) }),
			HandleTx: func(ctx context.Context, tx *sql.Tx, m consumer.Message[job]) error {
				n := m.Payload.N
				calls[n]++
				parent := sql.NullInt64{Int64: 7, Valid: n == 1}
				if _, err := tx.ExecContext(ctx, `INSERT INTO children (n, parent) VALUES ($1, $2)`, n, parent); err != nil {
					return err
				}
				if n == 3 {
					return tx.Commit()
				}
				return nil
			},
			Failure: consumer.Failure{Action: consumer.ActionPark, ParkingQueue: parking.URL(), Attempts: 3, FirstBackoff: time.Millisecond},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			assert.NoError(t, c.WaitIdle(ctx, time.Second))
			cancel()
		}()
		require.NoError(t, c.Run(ctx))
		assert.Equal(t, map[int]int{0: 1, 1: 3, 2: 1, 3: 1, 4: 1}, calls)
		assert.Len(t, parking.Messages(), 2)
		var effects int
		require.NoError(t, db.QueryRow(`SELECT count(*) FROM children`).Scan(&effects))
		assert.Equal(t, 4, effects)
	})
}
