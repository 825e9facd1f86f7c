package sqsfifo

import (
	"fmt"

	"github.com/kansas-frontier-matrix/sqsfifo/internal/sourceuri"
)

// NormalizeDataset returns d with the components that take part in its key.
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
		return d, &KeyError{Field: "source_uri", Rule: rule}
	}
	d.SourceURI = uri
	return d, nil
}

// EncodeEnvelope returns the body of e.
func EncodeEnvelope[T any](e Envelope[T]) (string, error) { return e.encode() }

// PayloadOf returns the payload as the producer cuts it out of a body.
func PayloadOf(body string) string { return payloadOf(body) }

// Leftovers says what a closed producer still holds, "" if nothing.
func Leftovers[T any](p *Producer[T]) string {
	s := p.Stats()
	if s.Events+s.Bytes+s.Requests == 0 {
		return ""
	}
	return fmt.Sprintf("%d events, %d bytes, %d requests", s.Events, s.Bytes, s.Requests)
}
