package compliance

import (
	"context"
	"errors"
	"time"
)

// Failures runs the suite inside a bubble and returns the failure of each case, nil for
// a case that passed or was not judged.
func Failures[T any](ctx context.Context, s Suite[T]) (map[string]error, error) {
	e, err := s.gather(ctx, time.Sleep)
	if err != nil {
		return nil, err
	}
	out := map[string]error{}
	for _, c := range complianceCases {
		err := c.run(e)
		var masked *notJudgedError
		if errors.As(err, &masked) {
			err = nil
		}
		out[c.name] = err
	}
	return out, nil
}

// RetryStorm runs the suite and returns counts of the case Retry Storm: the events, the
// duplicate attempts, and the duplicate attempts that the queue stored.
func RetryStorm[T any](ctx context.Context, s Suite[T]) (events, duplicates, accepted int, err error) {
	e, err := s.gather(ctx, time.Sleep)
	if err != nil {
		return 0, 0, 0, err
	}
	return e.storm.events, e.storm.duplicates, e.storm.accepted, nil
}
