package lint

// messageRules are decided on one message, some of them on source, too.
var messageRules = []Rule{
	{
		ID: attrOnlyIdentity, Name: "attr-only-identity", Severity: Error,
		Title: "what identifies the event stands in an attribute and not in the body",
		Wording: "An attribute whose name says that it identifies the event (unique_key, event_id, a UUID) repeats a value of the body: " +
			"a string, a number or a boolean at any depth, or a component of dedupe_key. SQS deduplicates on the body alone, so two " +
			"messages that differ only in an attribute become one and the second is dropped with an answer that says success. " +
			"Where an explicit deduplication ID other than the hash of the body keeps the two apart, the finding is an info: " +
			"a consumer still cannot check the identity against the body. What identifies a request or an attempt (correlation_id, " +
			"X-Request-Id) is not the identity of an event. On Go source, other variable attributes are warnings where the body has " +
			"no ID of its own, and the finding is a warning as long as it is not certain that the queue is FIFO: " +
			"standard queues take a group ID, too.",
		Source: "KFM v11.2.3, sections 3 to 5 (RC-2.4.1); F-011 to F-014",
		Fix:    "put the value into the body, as dedupe_key or a component of it, and keep the attribute only as a copy",
		Passes: OnMessage | OnSource, Since: "0.1.0",
		Bad:  "&sqs.SendMessageInput{\n\tMessageBody:       aws.String(`{\"tile\":\"p32r29\"}`),\n\tMessageAttributes: map[string]types.MessageAttributeValue{\"event_id\": stringValue(scene.ID)},\n}",
		Good: `producer.Send(ctx, scene) // Config.Identify puts scene.ID into dedupe_key, inside the body`,
	},
	{
		ID: missingGroupID, Name: "missing-group-id", Severity: Error,
		Title:   "the message has no group ID",
		Wording: "A message for a FIFO queue has a MessageGroupId. SQS refuses it otherwise, and with it the whole batch that it came in.",
		Source:  "F-050, F-070",
		Fix:     "set MessageGroupId to what has to stay in order: an account, a tile, a dataset",
		Passes:  OnMessage | OnSource, Since: "0.1.0",
		Bad:  `&sqs.SendMessageInput{QueueUrl: aws.String(".../scenes.fifo"), MessageBody: body}`,
		Good: `&sqs.SendMessageInput{QueueUrl: aws.String(".../scenes.fifo"), MessageBody: body, MessageGroupId: &scene.PathRow}`,
	},
	{
		ID: invalidID, Name: "invalid-id", Severity: Error,
		Title: "a group ID or deduplication ID that SQS refuses",
		Wording: "MessageGroupId and an explicit MessageDeduplicationId have 1 to 128 characters, each an ASCII letter, digit or punctuation mark. " +
			"Blanks, control characters and anything beyond ASCII are refused.",
		Source: "F-017, F-018",
		Fix:    "use a short ASCII identifier without blanks, or the lower-case hex SHA-256 of the longer one",
		Passes: OnMessage | OnSource, Since: "0.1.0",
		Bad:  `MessageGroupId: aws.String("path 32, row 29")`,
		Good: `MessageGroupId: aws.String("p32r29")`,
	},
	{
		ID: fifoDelay, Name: "fifo-delay", Severity: Error,
		Title: "a per-message delay on a FIFO message",
		Wording: "DelaySeconds of a message for a FIFO queue is 0. SQS knows a delay there for the queue as a whole only; " +
			"it refuses the message, and with it the whole batch that it came in.",
		Source: "F-052, F-074 to F-076",
		Fix:    "leave DelaySeconds at 0 and set it on the queue",
		Passes: OnMessage | OnSource, Since: "0.1.0",
		Bad:  `&sqs.SendMessageInput{QueueUrl: aws.String(".../scenes.fifo"), MessageGroupId: group, DelaySeconds: 30, MessageBody: body}`,
		Good: `&sqs.SendMessageInput{QueueUrl: aws.String(".../scenes.fifo"), MessageGroupId: group, MessageBody: body} // the queue has the delay`,
	},
	{
		ID: invalidJSON, Name: "invalid-json", Severity: Error,
		Title: "the body has no canonical JSON form",
		Wording: "The body is one JSON text in UTF-8 without a byte order mark, lone surrogates, numbers beyond the range of a double, " +
			"or anything after it. What one parser repairs another repairs differently, and SQS hashes the bytes as they are.",
		Source: "KFM v11.2.3, section 4; RFC 8259; RFC 8785, section 3.1",
		Fix:    "build the body with canonicaljson, never by joining strings",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"dedupe_key":"landsat|1","payload":{"cloud_cover":NaN}}`,
		Good: `{"dedupe_key":"landsat|1","payload":{"cloud_cover":null}}`,
	},
	{
		ID: duplicateName, Name: "duplicate-name", Severity: Error,
		Title: "an object of the body has a member twice",
		Wording: "No object of the body has two members of one name. Readers differ on which of them counts, so the event that was hashed " +
			"need not be the event that is read.",
		Source: "RFC 8785, section 3.1; RFC 7493, section 2.3",
		Fix:    "write each member once",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"id":1,"id":2}`,
		Good: `{"id":2}`,
	},
	{
		ID: inexactInteger, Name: "inexact-integer", Severity: Error,
		Title: "an integer of the body that a double does not hold",
		Wording: "An integer of the body keeps its value as an IEEE 754 double. RFC 8785 would round it, which gives two different integers the " +
			"same bytes: two events could share one body, and SQS would drop the second.",
		Source: "RFC 8785, appendix D; RFC 7493, section 2.2",
		Fix:    "write the integer as a JSON string",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"granule":9007199254740993}`,
		Good: `{"granule":"9007199254740993"}`,
	},
	{
		ID: notCanonical, Name: "not-canonical", Severity: Error,
		Title: "the body is not in canonical form",
		Wording: "The body is its own RFC 8785 form, byte for byte: members sorted, no blanks, one spelling for each string and number. " +
			"SQS compares hashes of bytes; the same event written in another way is another message to it, and a retry is stored twice.",
		Source: "KFM v11.2.3, section 4; RFC 8785, section 3.2; F-024",
		Fix:    "pass the body through canonicaljson.CanonicalizeStrict before it is stored or sent",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"tile": "p32r29", "cloud_cover": 1.0}`,
		Good: `{"cloud_cover":1,"tile":"p32r29"}`,
	},
	{
		ID: envelopeMembers, Name: "envelope-members", Severity: Error,
		Title: "the body is not the envelope with exactly its five members",
		Wording: "The body is a JSON object with the members dedupe_key, event_id, event_source, event_time and payload, and no other. " +
			"A member beside them would be part of the hash without being part of the contract.",
		Source: "KFM v11.2.3, section 4",
		Fix:    "build the body as an envelope and put everything else into payload",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"event_id":"019ae7b0-8c00-7abc-9def-0123456789ab","tile":"p32r29"}`,
		Good: `{"dedupe_key":"landsat|1","event_id":"019ae7b0-8c00-7abc-9def-0123456789ab","event_source":"kfm.remote-sensing.landsat-refresh","event_time":"2025-12-04T17:03:21.5Z","payload":{"tile":"p32r29"}}`,
	},
	{
		ID: oldEnvelope, Name: "old-envelope", Severity: Error,
		Title: "the body is an envelope of KFM v10.3.1",
		Wording: "The body follows the contract of v11.2.3. The envelope of v10.3.1, with event_type, dataset_id, version, source_uri " +
			"and idempotency_key at top level, is no longer one.",
		Source: "KFM v10.3.1, key specification; KFM v11.2.3, section 4",
		Fix:    "move idempotency_key into dedupe_key and the other members into payload",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"dataset_id":"noaa_storm_events","event_type":"refresh","idempotency_key":"sha256:7fd3","version":"v10.3.1"}`,
		Good: `{"dedupe_key":"sha256:7fd3","event_id":"...","event_source":"...","event_time":"...","payload":{"dataset_id":"noaa_storm_events","version":"v10.3.1"}}`,
	},
	{
		ID: invalidEventID, Name: "event-id", Severity: Error,
		Title: "event_id is not a lowercase UUIDv7",
		Wording: "event_id is a UUID of version 7 and of the RFC 9562 variant, in lower case with hyphens. It is part of the hashed body: " +
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
		Wording: "event_source has exactly three labels joined by dots, the first of which is the organization: kfm unless another one is set. A label is made of lower-case ASCII letters, digits " +
			"and hyphens, is not empty, and neither begins nor ends with a hyphen.",
		Source: "KFM v11.2.3, section 4",
		Fix:    "use a source such as kfm.remote-sensing.landsat-refresh",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"event_source":"landsat-refresh"}`,
		Good: `{"event_source":"kfm.remote-sensing.landsat-refresh"}`,
	},
	{
		ID: invalidEventTime, Name: "event-time", Severity: Error,
		Title: "event_time is not RFC 3339 in UTC with the shortest fraction",
		Wording: "event_time is the instant at which the event occurred, in RFC 3339 with an upper-case T and Z, with at most nine digits of a second's " +
			"fraction and no trailing zero among them. One instant has one spelling, or the retry of an event would have another hash. " +
			"0001-01-01T00:00:00Z, the zero value of a clock that was never set, is not the instant of an event.",
		Source: "KFM v11.2.3, section 4; RFC 3339, section 5.6",
		Fix:    "format the event's own time, never the clock's, with time.RFC3339Nano in UTC",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"event_time":"2025-12-04T11:03:21.500-06:00"}`,
		Good: `{"event_time":"2025-12-04T17:03:21.5Z"}`,
	},
	{
		ID: invalidDedupeKey, Name: "dedupe-key", Severity: Error,
		Title: "dedupe_key is empty, too long or not plain text",
		Wording: "dedupe_key is a string of 1 to 1,024 bytes of valid UTF-8 without control characters. It is what tells two events apart, " +
			"and people search logs for it.",
		Source: "KFM v11.2.3, section 4",
		Fix:    "join the identifiers of the event into a short key, or use their SHA-256",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"dedupe_key":""}`,
		Good: `{"dedupe_key":"landsat|LC09_L2SP_028033_20251204"}`,
	},
	{
		ID: invalidPayload, Name: "payload", Severity: Error,
		Title:   "payload is not a JSON object",
		Wording: "payload is a JSON object, which may be empty. A bare string, number or array leaves no room for a second field.",
		Source:  "KFM v11.2.3, section 4",
		Fix:     "wrap the value in an object",
		Passes:  OnMessage, Since: "0.1.0",
		Bad:  `{"payload":"p32r29"}`,
		Good: `{"payload":{"tile":"p32r29"}}`,
	},
	{
		ID: tooLarge, Name: "too-large", Severity: Error,
		Title: "the message is larger than the queue takes",
		Wording: "The bytes of the body and of each attribute's name, data type and value together do not exceed the queue's MaximumMessageSize, " +
			"1,048,576 bytes at most. System attributes do not count.",
		Source: "F-073",
		Fix:    "store the payload elsewhere and send its address and checksum",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `{"payload":{"raster":"... 2 MiB of base64 ..."}}`,
		Good: `{"payload":{"checksum":"sha256:88be","href":"s3://kfm/raster.tif"}}`,
	},
	{
		ID: refusedCharacter, Name: "refused-character", Severity: Error,
		Title: "the body has a character that SQS refuses",
		Wording: "The body holds only U+0009, U+000A, U+000D, U+0020 to U+D7FF, U+E000 to U+FFFD and U+10000 to U+10FFFF. " +
			"In canonical JSON that leaves U+FFFE and U+FFFF to be refused: control characters are escaped there, these two are not.",
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
		Fix:     "move what is not a routing hint into payload",
		Passes:  OnMessage, Since: "0.1.0",
		Bad:  `attributes := map[string]string{"a": "", "b": "", /* nine more */ }`,
		Good: `attributes := map[string]string{"sensor": "OLI_TIRS"}`,
	},
	{
		ID: invalidAttribute, Name: "invalid-attribute", Severity: Error,
		Title: "an attribute that SQS refuses",
		Wording: "An attribute's name has 1 to 256 letters, digits, underscores, hyphens and dots, does not begin or end with a dot and does not begin " +
			"with AWS. or Amazon. in any case. Its data type is String, Number or Binary, alone or with a suffix after a dot, at most 256 characters. " +
			"Its value is not empty, stands in the one field that belongs to the type, and is held to the characters of the body where it is text.",
		Source: "F-072, F-077, F-078",
		Fix:    "correct the attribute, or leave it out",
		Passes: OnMessage, Since: "0.1.0",
		Bad:  `attributes := map[string]string{"aws.route": "north", "sensor": ""}`,
		Good: `attributes := map[string]string{"route": "north"}`,
	},
}
