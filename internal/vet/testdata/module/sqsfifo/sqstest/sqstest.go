// Package sqstest has the names of the real one, and nothing behind them.
package sqstest

type Config struct{ Interval int }

type Queue struct{}

func NewQueue(c Config) (*Queue, error) { return &Queue{}, nil }

func Must[T any](v T, err error) T { return v }
