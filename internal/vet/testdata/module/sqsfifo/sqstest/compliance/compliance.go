// Package compliance has the names of the real one, and little behind them.
package compliance

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

type Suite[T any] struct {
	Send   func(ctx context.Context, client *sqs.Client, queueURL string, event T) error
	Events []T
}

func TestProducer[T any](t *testing.T, s Suite[T]) {
	if err := CheckProducer(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func CheckProducer[T any](_ context.Context, s Suite[T]) error {
	if s.Send == nil || len(s.Events) < 2 {
		return errors.New("Suite needs Send and at least two Events")
	}
	return nil
}
