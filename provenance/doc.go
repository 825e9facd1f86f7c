// Package provenance writes provenance records in two published forms: OpenLineage run
// events and W3C PROV in JSON (PROV-JSON).
//
// Problem: the KFM contract wants telemetry to join the provenance ledger, and ledgers do
// not read the lines of sqsfifo.ProvenanceWriter.
//
// Guarantee: each record becomes one run, the send of one event by one producer. The run
// uses the event's dataset and, if SQS has stored the event, generates its message. A
// duplicate generates nothing. Every field of the record is in the output, so duplicates and
// replays are marked, and nothing is lost. The same record gives the same bytes.
//
// Limits: a record has no payload, and neither has the output. An event in doubt has a run
// without an end.
package provenance
