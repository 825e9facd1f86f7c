package provenance

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// home identifies this module in run events, and is the namespace of its own names.
const home = "https://github.com/kansas-frontier-matrix/sqsfifo"

// RunEvents returns the OpenLineage run events of a record (version 2-0-2): START, and then
// COMPLETE for a stored event or a duplicate, FAIL for an event that is not stored or was
// altered, or OTHER for an event in doubt. The parameter `queue` names the queue, for example
// by its ARN.
//
//   - The job is the event source, in the namespace of its organization.
//   - The facet sqsfifo_record of the run has the whole record.
//   - The input is the dataset, in the namespace of the organization too, with the standard
//     facet version and the facet sqsfifo_dataset. An event without a dataset has no input.
//   - The output is the queue, in the namespace "sqs", for a stored event.
func RunEvents(r sqsfifo.ProvenanceRecord, queue string) []map[string]any {
	organization, _, _ := strings.Cut(r.EventSource, ".")
	if organization == "" {
		organization = "sqsfifo"
	}
	dataset := func(namespace, name string, facets map[string]any) map[string]any {
		return map[string]any{"namespace": namespace, "name": name, "facets": facets}
	}
	inputs, outputs := []any{}, []any{}
	if r.DatasetID != "" {
		inputs = append(inputs, dataset(organization, r.DatasetID, map[string]any{
			"version": map[string]any{
				"_producer": home, "_schemaURL": "https://openlineage.io/spec/facets/1-0-1/DatasetVersionDatasetFacet.json#/$defs/DatasetVersionDatasetFacet", "datasetVersion": r.Version,
			},
			"sqsfifo_dataset": facet("dataset", map[string]any{"idempotency_key": r.IdempotencyKey, "artifact_checksum": r.ArtifactChecksum, "care_label": r.CARELabel}),
		}))
	}
	if r.Outcome == sqsfifo.ProvenanceStored {
		outputs = append(outputs, dataset("sqs", queue, map[string]any{
			"sqsfifo_message": facet("message", map[string]any{"message_id": r.MessageID, "sequence_number": r.SequenceNumber, "body_hash": r.BodyHash}),
		}))
	}
	event := map[string]any{
		"eventTime": r.Time.UTC().Format(time.RFC3339Nano), "producer": home, "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
		"run": map[string]any{"runId": runID(r).String(), "facets": map[string]any{"sqsfifo_record": facet("record", fieldsOf(r))}},
		"job": map[string]any{"namespace": organization, "name": jobOf(r)}, "inputs": inputs, "outputs": outputs,
	}
	start, end := maps.Clone(event), event
	start["eventType"], end["eventType"] = "START", map[sqsfifo.ProvenanceOutcome]string{
		sqsfifo.ProvenanceStored: "COMPLETE", sqsfifo.ProvenanceDuplicate: "COMPLETE", sqsfifo.ProvenanceInDoubt: "OTHER",
		sqsfifo.ProvenanceNotStored: "FAIL", sqsfifo.ProvenanceAltered: "FAIL",
	}[r.Outcome]
	return []map[string]any{start, end}
}

func facet(name string, fields map[string]any) map[string]any {
	maps.DeleteFunc(fields, func(_ string, v any) bool { return v == "" })
	fields["_producer"], fields["_schemaURL"] = home, home+"/blob/main/docs/kfm/telemetry/message-provenance-events.md#"+name
	return fields
}

// fieldsOf returns the members of a record's JSON form.
func fieldsOf(r sqsfifo.ProvenanceRecord) (fields map[string]any) {
	text, err := json.Marshal(r)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		panic(err) // a record has only strings, numbers, booleans and a time, which Time.UTC can write
	}
	return fields
}

// runID returns the ID of the run. Sends of one event have different times, and so different
// runs.
func runID(r sqsfifo.ProvenanceRecord) uuid.UUID {
	return sqsfifo.DeriveEventID(r.EventSource, fmt.Sprintf("run|%s|%s|%s", r.EventID, r.Outcome, r.Time.UTC().Format(time.RFC3339Nano)), r.Time)
}

// jobOf returns the event source, or "unknown" for an event that has none.
func jobOf(r sqsfifo.ProvenanceRecord) string {
	if r.EventSource == "" {
		return "unknown"
	}
	return r.EventSource
}

// OpenLineage returns a sink that writes [RunEvents] as lines of JSON, those of a record with
// one call of w.Write. Several producers may share one sink.
func OpenLineage(w io.Writer, queue string) sqsfifo.ProvenanceSink {
	return sink(w, func(r sqsfifo.ProvenanceRecord) []any {
		events := RunEvents(r, queue)
		return []any{events[0], events[1]}
	})
}

// PROV returns a sink that writes a PROV-JSON document for each record, as one line of JSON
// with one call of w.Write. Several producers may share one sink. [Document] joins the
// documents of several records.
func PROV(w io.Writer, queue string) sqsfifo.ProvenanceSink {
	return sink(w, func(r sqsfifo.ProvenanceRecord) []any {
		d := Document{}
		d.Add(r, queue)
		return []any{d}
	})
}

func sink(w io.Writer, linesOf func(sqsfifo.ProvenanceRecord) []any) sqsfifo.ProvenanceSink {
	var mu sync.Mutex
	return func(r sqsfifo.ProvenanceRecord) error {
		var out []byte
		for _, v := range linesOf(r) {
			line, err := json.Marshal(v)
			if err != nil {
				return fmt.Errorf("provenance: %w", err)
			}
			out = append(append(out, line...), '\n')
		}
		mu.Lock()
		defer mu.Unlock()
		_, err := w.Write(out)
		return err
	}
}
