package outboxtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// listen calls the function `wake` for each notification of a PostgreSQL channel until ctx
// ends or the connection fails. Then it closes the returned Go channel.
func listen(t *testing.T, ctx context.Context, d database, channel string, wake func()) <-chan struct{} {
	t.Helper()
	conn, err := pgx.Connect(ctx, d.source)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "LISTEN "+channel)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer conn.Close(context.Background())
		for {
			if _, err := conn.WaitForNotification(ctx); err != nil {
				return
			}
			wake()
		}
	}()
	return ended
}
