package sqsfifo

import (
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/clock"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/memory"
	"github.com/kansas-frontier-matrix/sqsfifo/internal/sourceuri"
)

// NormalizeDataset returns d with normalized key components.
func NormalizeDataset(d Dataset) (Dataset, error) {
	var err error
	if d.ID, err = normalizeDatasetID(d.ID); err != nil {
		return d, err
	}
	if d.Version, err = normalizeVersion(d.Version); err != nil {
		return d, err
	}
	uri, rule := sourceuri.Normalize(d.SourceURI, d.QueryParameters)
	if rule != "" {
		return d, invalid("source_uri", rule)
	}
	d.SourceURI = uri
	return d, nil
}

// EncodeEnvelope returns the body of e.
func EncodeEnvelope[T any](e Envelope[T]) (string, error) { return e.encode() }

// PayloadOf returns the payload cut out of a body.
func PayloadOf(body string) string { return payloadOf(body) }

// NewProducerAt is like NewProducer and takes the clock of the producer.
func NewProducerAt[T any](client Client, config Config[T], c *clock.Clock) (*Producer[T], error) {
	q, err := newQueue(client, config.queue(), memory.Options{Clock: c})
	if err != nil {
		return nil, err
	}
	return newProducer(q, config, ""), nil
}

// Leftovers describes what a closed producer still has in memory. It returns "" if there is
// nothing.
func Leftovers[T any](p *Producer[T]) string {
	s := p.Stats()
	if s.Events+s.Bytes+s.Requests == 0 {
		return ""
	}
	return fmt.Sprintf("%d events, %d bytes, %d requests", s.Events, s.Bytes, s.Requests)
}
