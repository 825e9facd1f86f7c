package kfm

// requirement is one requirement of the contract or of the key specification, in our words.
type requirement struct {
	id    string // such as "4.2": section 4 of the contract, number 2 in this list
	level string // "MUST" or "MUST NOT" as in the contract; "rule" if the contract says neither
	text  string
	tests []testRef
	unmet unmet // only for a requirement without a test
}

// unmet is the reason why a requirement has no test: the module lacks a feature. The field
// `exports` is a regular expression for the exported names that the feature would have. If
// the module exports a matching name, the reason is out of date.
type unmet struct{ reason, exports string }

// testRef refers to a test function of the package in the folder. For a table-driven test,
// row may be a string in the source code of one row.
type testRef struct{ folder, function, row string }

// contract lists the requirements of the KFM (Kansas Frontier Matrix) contract v11.2.3 on
// the deduplication of FIFO messages. Each requirement has a test.
var contract = []requirement{
	{id: "2.1", level: "rule", text: "The documents on contracts, tests and telemetry exist, under the contract's names.", tests: []testRef{
		{"docs/kfm", "TestLayout", ""},
		{"docs/kfm", "TestDocuments", ""},
	}},
	{id: "3.1", level: "MUST", text: "What makes an event unique is part of the serialized body. Message attributes may repeat it and route by it, but are never its only carrier.", tests: []testRef{
		{"lint", "TestForbiddenExampleOfTheContract", ""},
		{"lint", "TestCheckByRule", "SF001"},
		{"internal/producertest/doubt", "TestSameBodyWithOtherAttributesIsRefused", ""},
	}},
	{id: "4.1", level: "MUST", text: "Each producer puts the canonical JSON envelope into the body: dedupe_key, event_id, event_source, event_time and payload.", tests: []testRef{
		{"internal/producertest/message", "TestBuildGoldenBody", ""},
		{"internal/producertest/message", "TestSameBodyInEveryProcess", ""},
		{"lint", "TestCheckByRule", "SF040"},
		{"lab/schemas", "TestEnvelopes", ""},
	}},
	{id: "4.2", level: "MUST", text: "dedupe_key tells an event apart from every other one within the deduplication interval of five minutes.", tests: []testRef{
		{"internal/producertest/doubt", "TestKeyReuseIsRefused", ""},
		{"internal/producertest/message", "TestJoinKeyIsUnambiguous", ""},
		{"lint", "TestStream", "SF061"},
	}},
	{id: "4.3", level: "rule", text: "event_id identifies the event for provenance: a UUIDv7, the same for each attempt. It does not decide deduplication by itself.", tests: []testRef{
		{"internal/producertest/message", "TestDeriveEventID", ""},
		{"internal/producertest/message", "TestEventIDOfTheCaller", ""},
		{"lint", "TestCheckByRule", "SF042"},
	}},
	{id: "4.4", level: "rule", text: "event_source is kfm.<domain>.<pipeline>.", tests: []testRef{
		{"lint", "TestCheckByRule", "SF043"},
		{"internal/producertest/telemetry", "TestNewProducerNamesEveryFault", ""},
	}},
	{id: "4.5", level: "rule", text: "event_time is the RFC 3339 time at which the event occurred.", tests: []testRef{
		{"internal/producertest/message", "TestEventTimeHasOneSpelling", ""},
		{"lint", "TestCheckByRule", "SF044"},
	}},
	{id: "4.6", level: "rule", text: "payload holds what is specific to the domain.", tests: []testRef{
		{"internal/producertest/message", "TestBuildRefusesPayloads", ""},
		{"lint", "TestCheckByRule", "SF046"},
	}},
	{id: "4.7", level: "MUST NOT", text: "Values that uniqueness depends on (identifiers, dataset versions, keys of an area of interest) do not stand in attributes alone.", tests: []testRef{
		{"lint", "TestIdentityIsSoughtInBodiesThatBreakOtherRules", ""},
		{"lint/fifovet", "TestCode", ""},
		{"sqstest/compliance", "TestBrokenProducersFailTheirCase", "Attribute Ignorance"},
	}},
	{id: "5.1", level: "MUST NOT", text: "The forbidden pattern: a body that several events share, with the unique key in an attribute (RC-2.4.1).", tests: []testRef{
		{"lint", "TestForbiddenExampleOfTheContract", ""},
		{".", "Example_collapse", ""},
	}},
	{id: "6.1", level: "rule", text: "The approved pattern: the key is a member of the body, so the hash covers it; distinct events have distinct keys.", tests: []testRef{
		{"lint", "TestApprovedExampleOfTheContract", ""},
		{"internal/producertest/doubt", "TestDistinctEventsNeverCollapse", ""},
	}},
	{id: "7.1", level: "MUST", text: "A pipeline that may replay decides explicitly: a replay of one event within five minutes has the same dedupe_key and is suppressed.", tests: []testRef{
		{"internal/producertest/doubt", "TestReplayIsADuplicateUntilTheIntervalEnds", ""},
		{"sqstest", "TestDeduplication", ""},
		{"sqstest/compliance", "TestCompliantProducerPasses", ""},
	}},
	{id: "7.2", level: "MUST", text: "A new event, however similar, has a new dedupe_key and is delivered.", tests: []testRef{
		{"internal/producertest/doubt", "TestDistinctEventsNeverCollapse", ""},
		{"sqstest/compliance", "TestBrokenProducersFailTheirCase", "Distinct Events Never Collapse"},
	}},
	{id: "7.3", level: "MUST", text: "Backfill and catch-up pipelines derive dedupe_key deterministically, so that a second run gives the same bodies.", tests: []testRef{
		{"internal/producertest/message", "TestSameBodyInEveryProcess", ""},
		{"sqstest/compliance", "TestBrokenProducersFailTheirCase", "Determinism Over Time"},
		{"lint/fifovet", "TestCode", ""},
	}},
	{id: "7.4", level: "MUST", text: "They do not use a dedupe_key again for another event.", tests: []testRef{
		{"internal/producertest/doubt", "TestKeyReuseIsRefused", ""},
		{"sqstest/compliance", "TestBrokenProducersFailTheirCase", "Payload Mismatch"},
	}},
	{id: "8.1", level: "MUST", text: "Each new producer of FIFO messages is covered by the tests, which run in CI.", tests: []testRef{
		{"internal/vet", "TestCompliance", ""},
		{"internal/vet", "TestSkeleton", ""},
		{"examples/landsat", "TestCompliance", ""},
	}},
	{id: "8.2", level: "MUST", text: "Hash Behavior: changing dedupe_key changes the body, and so the hash.", tests: []testRef{
		{"sqstest/compliance", "TestCompliantProducerPasses", ""},
		{"sqstest/compliance", "TestBrokenProducersFailTheirCase", "Hash Behavior"},
		{"docs/kfm", "TestDocuments", ""},
	}},
	{id: "8.3", level: "MUST", text: "Attribute Ignorance: attributes alone do not change the hash.", tests: []testRef{
		{"sqstest/compliance", "TestBrokenProducersFailTheirCase", "Attribute Ignorance"},
		{"sqstest", "TestDeduplication", "F-012"},
	}},
	{id: "8.4", level: "MUST", text: "Replay Window Collision: within five minutes the same dedupe_key is suppressed, another one is delivered.", tests: []testRef{
		{"sqstest/compliance", "TestBrokenProducersFailTheirCase", "Replay Window Collision"},
		{"docs/kfm", "TestDocuments", ""},
	}},
	{id: "8.5", level: "MUST", text: "CI runs the tests for each producer that is new or changed.", tests: []testRef{
		{"internal/vet", "TestCompliance", ""},
		{"examples/compliance", "TestCompliance", ""},
	}},
	{id: "8.6", level: "MUST", text: "A change whose tests are missing or fail is not merged: the check exits with an error.", tests: []testRef{
		{"cmd/sqsfifo", "TestVet", ""},
	}},
	{id: "9.1", level: "MUST", text: "sqs_fifo.dedupe.collisions_detected is recorded.", tests: []testRef{
		{"internal/producertest/telemetry", "TestInstrumentsCountWhatHappened", "sqs_fifo.dedupe.collisions_detected"},
	}},
	{id: "9.2", level: "MUST", text: "sqs_fifo.producer.violations is recorded.", tests: []testRef{
		{"internal/producertest/telemetry", "TestInstrumentsCountWhatHappened", "sqs_fifo.producer.violations"},
	}},
	{id: "9.3", level: "MUST", text: "sqs_fifo.body_hash.length_bytes is recorded, as a distribution of body sizes.", tests: []testRef{
		{"internal/producertest/telemetry", "TestInstrumentsCountWhatHappened", "sqs_fifo.body_hash.length_bytes"},
	}},
	{id: "9.4", level: "MUST", text: "sqs_fifo.dedupe_window_hits is recorded.", tests: []testRef{
		{"internal/producertest/telemetry", "TestInstrumentsCountWhatHappened", "sqs_fifo.dedupe_window_hits"},
	}},
	{id: "9.5", level: "rule", text: "Telemetry is emitted as OpenTelemetry spans and metrics.", tests: []testRef{
		{"internal/producertest/telemetry", "TestOneSpanForEachEventAndRequest", ""},
		{"internal/observe", "TestInstruments", ""},
	}},
	{id: "9.6", level: "rule", text: "Metrics and events are documented under the contract's names.", tests: []testRef{
		{"docs/kfm", "TestDocuments", ""},
	}},
	{id: "9.7", level: "rule", text: "Telemetry records can be joined to a provenance ledger.", tests: []testRef{
		{"internal/producertest/telemetry", "TestProvenanceRecordsSayWhatBecameOfEachEvent", ""},
		{"lab/schemas", "TestProvenanceRecords", ""},
		{"cmd/sqsfifo", "TestSimulateProvenance", ""},
	}},
}

// keySpecification is the part of the KFM idempotency key specification v10.3.1 that
// concerns a producer.
var keySpecification = []requirement{
	{id: "1", level: "MUST", text: "The key is the SHA-256 of dataset_id, version and source_uri, joined with a vertical bar.", tests: []testRef{
		{".", "ExampleDataset_IdempotencyKey", ""},
		{"internal/producertest/message", "TestVerify", ""},
	}},
	{id: "2", level: "MUST", text: "The components are normalised before they are hashed.", tests: []testRef{
		{"internal/producertest/message", "TestIdempotencyKeyGroupsSpellings", ""},
		{"internal/sourceuri", "TestNormalForms", ""},
	}},
	{id: "3", level: "MUST NOT", text: "The key does not depend on time, chance or mutable state.", tests: []testRef{
		{"internal/producertest/message", "FuzzIdempotencyKey", ""},
		{"internal/producertest/message", "TestSameBodyInEveryProcess", ""},
	}},
	{id: "4", level: "MUST", text: "dataset_id is the identifier of the STAC or DCAT record.", tests: []testRef{
		{"catalog", "TestRead", ""},
		{"catalog", "TestStatic", ""},
		{"internal/producertest/message", "TestUnknownDataset", ""},
		{"lint", "TestCheckByRule", "SF047"},
	}},
	{id: "5", level: "MUST", text: "version is semantic and stable for a release.", tests: []testRef{
		{"internal/producertest/message", "TestVersionForms", ""},
	}},
	{id: "6", level: "MUST", text: "source_uri is absolute and in normal form, without noise in its query.", tests: []testRef{
		{"internal/sourceuri", "TestRefusals", ""},
		{"internal/sourceuri", "TestNormalForms", ""},
	}},
	{id: "7", level: "MUST", text: "Another component gives another key.", tests: []testRef{
		{"internal/producertest/message", "TestIdempotencyKeyGroupsSpellings", ""},
	}},
	{id: "8", level: "MUST", text: "Keys are stored as sha256: and 64 hexadecimal digits.", tests: []testRef{
		{"internal/producertest/message", "TestVerify", ""},
	}},
	{id: "9", level: "MUST", text: "Keys are kept in a durable, append-only store, with the fields of the specification.", tests: []testRef{
		{"lab/sqlstoretest", "TestLedgerIsAppendOnly", ""},
		{"lab/sqlstoretest", "TestLedgerEvents", "ArtifactChecksum"},
		{"idempotency/dynamostore", "TestKeyRecord", ""},
		{"idempotency/dynamostore", "TestKeyRecordsUnderFaults", ""},
		{"internal/producertest/store", "TestStoreRemembers", ""},
	}},
	{id: "10", level: "MUST", text: "Each event envelope carries the computed key.", tests: []testRef{
		{"internal/producertest/message", "TestDatasetGivesTheDefaultKey", ""},
	}},
	{id: "11", level: "MUST", text: "A validator recomputes the key and compares it with the one supplied.", tests: []testRef{
		{"internal/producertest/message", "TestVerify", ""},
	}},
	{id: "12", level: "MUST", text: "Governance ledgers record the keys that were used, with their CARE labels.", tests: []testRef{
		{"internal/producertest/telemetry", "TestProvenanceRecordsSayWhatBecameOfEachEvent", ""},
		{"lab/sqlstoretest", "TestLedgerEvents", "CARELabel"},
	}},
	{id: "13", level: "MUST", text: "Governance ledgers record whether masking was applied under a key.", tests: []testRef{
		{"lab/sqlstoretest", "TestLedgerEvents", "ledger.EventMasked"},
		{"idempotency/ledger", "TestAnnotations", ""},
	}},
	{id: "14", level: "MUST", text: "Telemetry has idempotency_key, duplicate_detected, replay_triggered, artifact_checksum, care_label, dataset_id and version.", tests: []testRef{
		{"docs/kfm", "TestTelemetryOfTheKeySpecification", ""},
		{"internal/producertest/telemetry", "TestOneSpanForEachEventAndRequest", "idempotency_key"},
		{"internal/producertest/telemetry", "TestProvenanceRecordsSayWhatBecameOfEachEvent", ""},
	}},
	{id: "15", level: "MUST NOT", text: "A key does not leave out source_uri.", tests: []testRef{
		{"internal/producertest/message", "TestIdempotencyKeyRefuses", "source_uri"},
	}},
	{id: "16", level: "MUST NOT", text: "Keys do not change between attempts and do not come from job IDs or message offsets.", tests: []testRef{
		{"lint/fifovet", "TestCode", ""},
		{"internal/producertest/message", "TestSameBodyInEveryProcess", ""},
	}},
}
