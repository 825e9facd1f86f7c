package lint

// messageRules are the rules that Check checks on one message. Package fifovet checks some
// of them on Go source too.
var messageRules = []Rule{
	{
		ID: attrOnlyIdentity, Name: "attr-only-identity", Severity: Error,
		Title: "the identity of the event is in an attribute and not in the body",
		Wording: "An attribute with the name of an identity (unique_key, event_id, a UUID) repeats a value of the body: a string, a number or a " +
			"boolean at any depth, or a component of dedupe_key. So does an attribute with the name of a delivery: id, ce-id (CloudEvents), " +
			"X-GitHub-Delivery, X-Shopify-Webhook-Id, webhook-id. SQS hashes only the body: two messages with equal bodies and different " +
			"attributes become one, and SQS drops the second with success. If an explicit deduplication ID other than the hash of the body " +
			"keeps the two apart, the finding is an info: a consumer still cannot check the identity against the body. The identity of a " +
			"request or an attempt (correlation_id, X-Request-Id) is not the identity of an event. On Go source, other variable attributes " +
			"are warnings if the body has no ID, and the finding is an info unless the queue is certainly FIFO: standard queues take a " +
			"group ID as well.",
		Source: "KFM v11.2.3, sections 3 to 5 (RC-2.4.1); F-011 to F-014",
		Fix:    "put the value into the body, as dedupe_key or a component of it, and keep the attribute only as a copy",
		Passes: OnMessage | OnSource, Since: "0.1.0",
		Bad:  "&sqs.SendMessageInput{\n\tMessageBody:       aws.String(`{\"tile\":\"p32r29\"}`),\n\tMessageAttributes: map[string]types.MessageAttributeValue{\"event_id\": stringValue(scene.ID)},\n}",
		Good: `producer.Send(ctx, scene) // Config.Identify puts scene.ID into dedupe_key, inside the body`,
	},
	{
		ID: missingGroupID, Name: "missing-group-id", Severity: Error,
		Title:   "the message has no group ID",
		Wording: "A message for a FIFO queue has a MessageGroupId. SQS refuses a message without one, and its whole batch. Every queue refuses a MessageDeduplicationId without a group.",
		Source:  "F-050, F-070",
		Fix:     "set MessageGroupId to the entity with ordered events: an account, a tile, a dataset",
		Passes:  OnMessage | OnSource, Since: "0.1.0",
		Bad:  `&sqs.SendMessageInput{QueueUrl: aws.String(".../scenes.fifo"), MessageBody: body}`,
		Good: `&sqs.SendMessageInput{QueueUrl: aws.String(".../scenes.fifo"), MessageBody: body, MessageGroupId: &scene.PathRow}`,
	},
	{
		ID: invalidID, Name: "invalid-id", Severity: Error,
		Title: "a group ID or deduplication ID that SQS refuses",
		Wording: "MessageGroupId and an explicit MessageDeduplicationId have 1 to 128 characters: ASCII letters, digits and punctuation. SQS " +
			"refuses blanks, control characters and characters beyond ASCII.",
		Source: "F-017, F-018",
		Fix:    "use a short ASCII identifier without blanks, or the lower-case hex SHA-256 of the longer one",
		Passes: OnMessage | OnSource, Since: "0.1.0",
		Bad:  `MessageGroupId: aws.String("path 32, row 29")`,
		Good: `MessageGroupId: aws.String("p32r29")`,
	},
	{
		ID: fifoDelay, Name: "fifo-delay", Severity: Error,
		Title: "a per-message delay on a FIFO message",
		Wording: "DelaySeconds of a message for a FIFO queue is 0. A FIFO queue has one delay for all messages; SQS refuses a message with its " +
			"own delay, and its whole batch.",
		Source: "F-052, F-074 to F-076",
		Fix:    "leave DelaySeconds at 0 and set it on the queue",
		Passes: OnMessage | OnSource, Since: "0.1.0",
		Bad:  `&sqs.SendMessageInput{QueueUrl: aws.String(".../scenes.fifo"), MessageGroupId: group, DelaySeconds: 30, MessageBody: body}`,
		Good: `&sqs.SendMessageInput{QueueUrl: aws.String(".../scenes.fifo"), MessageGroupId: group, MessageBody: body} // the queue has the delay`,
	},
	{
		ID: invalidJSON, Name: "invalid-json", Severity: Error,
		Title: "the body has no canonical JSON form",
		Wording: "The body is exactly one JSON text in UTF-8, without a byte order mark, lone surrogates or numbers beyond the range of a " +
			"double. Parsers repair faulty texts in different ways, and SQS hashes the unrepaired bytes.",
		Source: "KFM v11.2.3, section 4; RFC 8259; RFC 8785, section 3.1",
		Fix:    "build the body with canonicaljson, never by joining strings",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"dedupe_key":"landsat|1","payload":{"cloud_cover":NaN}}`,
		Good: `{"dedupe_key":"landsat|1","payload":{"cloud_cover":null}}`,
	},
	{
		ID: duplicateName, Name: "duplicate-name", Severity: Error,
		Title: "an object of the body has a member twice",
		Wording: "The members of each object in the body have different names. Readers choose different duplicates, so a consumer may read " +
			"another event than the hashed one.",
		Source: "RFC 8785, section 3.1; RFC 7493, section 2.3",
		Fix:    "write each member once",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"id":1,"id":2}`,
		Good: `{"id":2}`,
	},
	{
		ID: inexactInteger, Name: "inexact-integer", Severity: Error,
		Title: "an integer of the body that a double does not hold",
		Wording: "An integer of the body keeps its value as an IEEE 754 double. RFC 8785 rounds other integers and gives two of them the same " +
			"bytes: two events could share one body, and SQS would drop the second.",
		Source: "RFC 8785, appendix D; RFC 7493, section 2.2",
		Fix:    "write the integer as a JSON string",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"granule":9007199254740993}`,
		Good: `{"granule":"9007199254740993"}`,
	},
	{
		ID: notCanonical, Name: "not-canonical", Severity: Error,
		Title: "the body is not in canonical form",
		Wording: "The body equals its RFC 8785 form byte for byte: sorted members, no blanks, one spelling for each string and number. SQS " +
			"compares hashes of bytes: the same event in another spelling is another message, and SQS stores a retry twice.",
		Source: "KFM v11.2.3, section 4; RFC 8785, section 3.2; F-024",
		Fix:    "pass the body through canonicaljson.CanonicalizeStrict before it is stored or sent",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"tile": "p32r29", "cloud_cover": 1.0}`,
		Good: `{"cloud_cover":1,"tile":"p32r29"}`,
	},
	{
		ID: envelopeMembers, Name: "envelope-members", Severity: Error,
		Title: "the body is not the envelope with exactly its five members",
		Wording: "The body is a JSON object with exactly the members dedupe_key, event_id, event_source, event_time and payload. Another member " +
			"would be part of the hash, but not of the contract.",
		Source: "KFM v11.2.3, section 4",
		Fix:    "build the body as an envelope and put everything else into payload",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"event_id":"019ae7b0-8c00-7abc-9def-0123456789ab","tile":"p32r29"}`,
		Good: `{"dedupe_key":"landsat|1","event_id":"019ae7b0-8c00-7abc-9def-0123456789ab","event_source":"kfm.remote-sensing.landsat-refresh","event_time":"2025-12-04T17:03:21.5Z","payload":{"tile":"p32r29"}}`,
	},
	{
		ID: oldEnvelope, Name: "old-envelope", Severity: Error,
		Title: "the body is an envelope of KFM v10.3.1",
		Wording: "The body follows the contract of v11.2.3. The envelope of v10.3.1, with event_type, dataset_id, version, source_uri and " +
			"idempotency_key at top level, is obsolete.",
		Source: "KFM v10.3.1, key specification; KFM v11.2.3, section 4",
		Fix:    "move idempotency_key into dedupe_key and the other members into payload",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"dataset_id":"noaa_storm_events","event_type":"refresh","idempotency_key":"sha256:7fd3","version":"v10.3.1"}`,
		Good: `{"dedupe_key":"sha256:7fd3","event_id":"...","event_source":"...","event_time":"...","payload":{"dataset_id":"noaa_storm_events","version":"v10.3.1"}}`,
	},
	{
		ID: invalidEventID, Name: "event-id", Severity: Error,
		Title: "event_id is not a lowercase UUIDv7",
		Wording: "event_id is a UUID of version 7 and of the RFC 9562 variant, in lower case with hyphens. event_id is part of the hashed body: " +
			"a second spelling, or a new ID for each attempt, makes a retry a new message.",
		Source: "KFM v11.2.3, section 4; RFC 9562, sections 4.1 and 5.7",
		Fix:    "derive event_id from the event, or store the UUIDv7 with the event and send the stored one",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"event_id":"019AE7B0-8C00-7ABC-9DEF-0123456789AB"}`,
		Good: `{"event_id":"019ae7b0-8c00-7abc-9def-0123456789ab"}`,
	},
	{
		ID: invalidEventSource, Name: "event-source", Severity: Error,
		Title: "event_source is not <organization>.<domain>.<pipeline>",
		Wording: "event_source has exactly three labels joined by dots. The first label is the organization; a producer accepts only kfm, unless its configuration names another one. A " +
			"label has one or more lower-case ASCII letters, digits and inner hyphens.",
		Source: "KFM v11.2.3, section 4",
		Fix:    "use a source such as kfm.remote-sensing.landsat-refresh",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"event_source":"landsat-refresh"}`,
		Good: `{"event_source":"kfm.remote-sensing.landsat-refresh"}`,
	},
	{
		ID: invalidEventTime, Name: "event-time", Severity: Error,
		Title: "event_time is not RFC 3339 in UTC with the shortest fraction",
		Wording: "event_time is the instant of the event in RFC 3339, with an upper-case T and Z, and at most nine digits of a second's " +
			"fraction without trailing zeros. One instant has one spelling; otherwise a retry would have another hash. " +
			"0001-01-01T00:00:00Z, the zero value of an unset clock, is refused.",
		Source: "KFM v11.2.3, section 4; RFC 3339, section 5.6",
		Fix:    "format the event's own time, never the clock's, with time.RFC3339Nano in UTC",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"event_time":"2025-12-04T11:03:21.500-06:00"}`,
		Good: `{"event_time":"2025-12-04T17:03:21.5Z"}`,
	},
	{
		ID: invalidDedupeKey, Name: "dedupe-key", Severity: Error,
		Title: "dedupe_key is empty, too long or not plain text",
		Wording: "dedupe_key is a string of 1 to 1,024 bytes of valid UTF-8 without control characters. The key distinguishes two events, and " +
			"people search logs for it.",
		Source: "KFM v11.2.3, section 4",
		Fix:    "join the identifiers of the event into a short key, or use their SHA-256",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"dedupe_key":""}`,
		Good: `{"dedupe_key":"landsat|LC09_L2SP_028033_20251204"}`,
	},
	{
		ID: invalidPayload, Name: "payload", Severity: Error,
		Title:   "payload is not a JSON object",
		Wording: "payload is a JSON object, possibly empty. A bare string, number or array leaves no room for a second field.",
		Source:  "KFM v11.2.3, section 4",
		Fix:     "send an object: wrap a bare value in one, and pass no nil event",
		Passes:  OnMessage, Since: "0.1.0",
		Bad:  `{"payload":"p32r29"}`,
		Good: `{"payload":{"tile":"p32r29"}}`,
	},
	{
		ID: unknownDataset, Name: "unknown-dataset", Severity: Error,
		Title: "the catalogue has no such dataset",
		Wording: "dataset_id is the identifier of the dataset's STAC or DCAT record. The rule needs a catalogue: Config.Catalog of a producer, or " +
			"--catalog of the command. It looks at Identity.Dataset and at the member dataset_id of the payload or the body.",
		Source: "KFM key specification v10.3.1, normalization rules",
		Fix:    "use the id of the record (package catalog, sqsfifo key --stac), or add the record to the catalogue first",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"payload":{"dataset_id":"noaa_storm_event"}}`,
		Good: `{"payload":{"dataset_id":"noaa_storm_events_1950_2025"}}`,
	},
	{
		ID: tooLarge, Name: "too-large", Severity: Error,
		Title: "the message is larger than the queue takes",
		Wording: "The body and the name, data type and value of each attribute have at most as many bytes as the queue's MaximumMessageSize, " +
			"and at most 1,048,576. System attributes do not count.",
		Source: "F-073",
		Fix:    "store the payload elsewhere and send its address and checksum",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"payload":{"raster":"... 2 MiB of base64 ..."}}`,
		Good: `{"payload":{"checksum":"sha256:88be","href":"s3://kfm/raster.tif"}}`,
	},
	{
		ID: refusedCharacter, Name: "refused-character", Severity: Error,
		Title: "the body has a character that SQS refuses",
		Wording: "The body has only U+0009, U+000A, U+000D, U+0020 to U+D7FF, U+E000 to U+FFFD and U+10000 to U+10FFFF. Canonical JSON escapes " +
			"control characters, so only U+FFFE and U+FFFF can break this rule there.",
		Source: "F-072",
		Fix:    "remove the character from the event, or carry the text in base64",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"payload":{"note":"\uffff"}} // as the character itself`,
		Good: `{"payload":{"note":"77+/"}} // base64`,
	},
	{
		ID: tooManyAttributes, Name: "too-many-attributes", Severity: Error,
		Title:   "more than ten message attributes",
		Wording: "A message has at most 10 attributes, trace context included.",
		Source:  "F-079",
		Fix:     "keep routing hints only, and move the other attributes into payload",
		Passes:  OnMessage, Since: "0.1.0",
		Bad:  `attributes := map[string]string{"a": "", "b": "", /* nine more */ }`,
		Good: `attributes := map[string]string{"sensor": "OLI_TIRS"}`,
	},
	{
		ID: invalidAttribute, Name: "invalid-attribute", Severity: Error,
		Title: "an attribute that SQS refuses",
		Wording: "An attribute's name has 1 to 256 letters, digits, underscores, hyphens and dots, without a dot at either end and without the " +
			"prefix AWS. or Amazon. in any case. Its data type is String, Number or Binary, optionally with a suffix after a dot, of at " +
			"most 256 characters. Its value is not empty and is in the field of its type; a text has only the characters of a body.",
		Source: "F-072, F-077, F-078",
		Fix:    "correct the attribute, or leave it out",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `attributes := map[string]string{"aws.route": "north", "sensor": ""}`,
		Good: `attributes := map[string]string{"route": "north"}`,
	},
}
