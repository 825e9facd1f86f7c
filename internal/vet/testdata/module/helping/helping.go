// Package helping is for the tests of others.
package helping

import (
	"testing"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

type Order struct{ ID string }

func Producer(t testing.TB, client any) *sqsfifo.Producer[Order] {
	t.Helper()
	p, err := sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func For(client any) func(*testing.T) {
	return func(t *testing.T) { _ = Producer(t, client) }
}

func Direct(t *testing.T, client any) (*sqsfifo.Producer[Order], error) {
	t.Helper()
	return sqsfifo.NewProducer(client, sqsfifo.Config[Order]{})
}
