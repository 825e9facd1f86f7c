package provenance

import (
	"strings"
	"time"

	"github.com/kansas-frontier-matrix/sqsfifo"
)

// Document is a PROV-JSON document (W3C member submission of 2013). Its JSON form is the
// document. Make one with Document{}.
type Document map[string]map[string]any

// Add adds a record. The parameter `queue` names the queue, for example by its ARN.
//
//   - The agent is the event source, a prov:SoftwareAgent; the activity is the run, and was
//     associated with the agent.
//   - The event is an entity, and so is its dataset, which the activity used.
//   - The message is an entity that a stored event's activity generated; it was derived from
//     the event. The activity of a duplicate used the original message.
//   - The activity has the record's fields, with the prefix sqsfifo.
func (d Document) Add(r sqsfifo.ProvenanceRecord, queue string) {
	put := func(kind, id string, attributes map[string]any) string {
		if d[kind] == nil {
			d[kind] = map[string]any{}
		}
		d[kind][id] = attributes
		return id
	}
	d["prefix"] = map[string]any{
		"sqsfifo": home + "/ns#", "run": "urn:uuid:", "event": home + "/event/", "message": home + "/message/", "dataset": home + "/dataset/", "source": home + "/source/",
	}
	at := r.Time.UTC().Format(time.RFC3339Nano)
	run := runID(r).String()
	attributes := map[string]any{"prov:type": name("sqsfifo:Send"), "sqsfifo:queue": queue}
	for field, v := range fieldsOf(r) {
		attributes["sqsfifo:"+field] = v
	}
	if r.Outcome != sqsfifo.ProvenanceInDoubt {
		attributes["prov:endTime"] = at
	}
	activity := put("activity", "run:"+run, attributes)
	agent := put("agent", "source:"+jobOf(r), map[string]any{"prov:type": name("prov:SoftwareAgent")})
	put("wasAssociatedWith", "_:a"+run, map[string]any{"prov:activity": activity, "prov:agent": agent})
	if r.EventID == "" {
		return
	}
	used := func(mark, entity string) {
		put("used", "_:"+mark+run, map[string]any{"prov:activity": activity, "prov:entity": entity})
	}
	event := put("entity", "event:"+r.EventID, map[string]any{"prov:type": name("sqsfifo:Event")})
	used("e", event)
	if key, ok := strings.CutPrefix(r.IdempotencyKey, "sha256:"); ok {
		used("d", put("entity", "dataset:"+key, map[string]any{
			"prov:type": name("sqsfifo:Dataset"), "sqsfifo:dataset_id": r.DatasetID, "sqsfifo:version": r.Version, "sqsfifo:idempotency_key": r.IdempotencyKey,
		}))
	}
	message := "message:" + r.MessageID
	switch r.Outcome {
	case sqsfifo.ProvenanceStored:
		put("entity", message, map[string]any{"prov:type": name("sqsfifo:Message"), "sqsfifo:sequence_number": r.SequenceNumber, "sqsfifo:body_hash": r.BodyHash})
		put("wasGeneratedBy", "_:g"+run, map[string]any{"prov:entity": message, "prov:activity": activity, "prov:time": at})
		put("wasDerivedFrom", "_:f"+run, map[string]any{"prov:generatedEntity": message, "prov:usedEntity": event})
	case sqsfifo.ProvenanceDuplicate:
		if r.MessageID != "" {
			if _, generated := d["entity"][message]; !generated {
				put("entity", message, map[string]any{"prov:type": name("sqsfifo:Message")})
			}
			used("m", message)
		}
	case sqsfifo.ProvenanceNotStored, sqsfifo.ProvenanceInDoubt, sqsfifo.ProvenanceAltered:
	}
}

// name returns a qualified name as a value of PROV-JSON.
func name(qualified string) map[string]any {
	return map[string]any{"$": qualified, "type": "prov:QUALIFIED_NAME"}
}
