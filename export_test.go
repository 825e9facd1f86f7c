package sqsfifo

import "time"

// NormalizeDataset returns d with the components that take part in its key.
func NormalizeDataset(d Dataset) (Dataset, error) {
	var err error
	if d.ID, err = normalizeDatasetID(d.ID); err != nil {
		return d, err
	}
	if d.Version, err = normalizeVersion(d.Version); err != nil {
		return d, err
	}
	d.SourceURI, err = normalizeURI(d.SourceURI, d.QueryParameters)
	return d, err
}

// EncodeEnvelope returns the body of e.
func EncodeEnvelope[T any](e Envelope[T]) (string, error) { return e.encode() }

// PayloadOf returns the payload as the producer cuts it out of a body.
func PayloadOf(body string) string { return payloadOf(body) }

// SequenceIsAfter compares sequence numbers as the producer does.
func SequenceIsAfter(a, b string) bool { return parseSequence(a).isAfter(parseSequence(b)) }

// AcceptedBefore reads the accept time of a sequence number.
func AcceptedBefore(number string, from, now time.Time) bool {
	return parseSequence(number).acceptedBefore(from, now)
}
