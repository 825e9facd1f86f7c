package lint

// streamRules are the rules on a message and the earlier messages of the same queue.
var streamRules = []Rule{
	{
		ID: bodyWithOtherAttr, Name: "body-with-other-attributes", Severity: Error,
		Title: "a body that was sent with other attributes",
		Wording: "Within the deduplication interval one body has one set of attributes, except for trace context and similar attributes. SQS " +
			"hashes only the body: it drops the second message and delivers the first with its own attributes. If the two messages are two " +
			"events, one is lost. If only attributes with the name of a request or an attempt differ (attempt, retry_count, request_id, sent_at), " +
			"the two are one event, and the finding is an info.",
		Source: "KFM v11.2.3, sections 3 to 5 (RC-2.4.1); F-007, F-011",
		Fix:    "put the difference into the body, as dedupe_key or a part of dedupe_key",
		Passes: OnStream, Since: "0.1.0",
		Bad:  `send(body, map[string]string{"route": "north"}); send(body, map[string]string{"route": "south"})`,
		Good: `send(bodyOf(north), nil); send(bodyOf(south), nil)`,
	},
	{
		ID: keyReused, Name: "key-reused", Severity: Error,
		Title: "a dedupe key that was sent with another body",
		Wording: "Within the deduplication interval one dedupe key has one body. SQS delivers both messages as unrelated. If the payload " +
			"differs, the key belongs to two events; otherwise the event was built again from an unstable source.",
		Source: "KFM v11.2.3, section 4; F-011",
		Fix:    "give each event its own key, and resend the stored bytes of an event",
		Passes: OnStream, Since: "0.1.0",
		Bad:  `{"dedupe_key":"landsat|1","payload":{"cloud_cover":1}} and {"dedupe_key":"landsat|1","payload":{"cloud_cover":2}}`,
		Good: `{"dedupe_key":"landsat|1|v1", ...} and {"dedupe_key":"landsat|1|v2", ...}`,
	},
	{
		ID: eventIDReused, Name: "event-id-reused", Severity: Error,
		Title:   "an event_id that was sent with another dedupe key",
		Wording: "An event_id belongs to one dedupe key. Consumers that identify events by ID would take two events for one.",
		Source:  "KFM v11.2.3, section 4",
		Fix:     "derive event_id from the event, see sqsfifo.DeriveEventID",
		Passes:  OnStream, Since: "0.1.0",
		Bad:  `two messages with one event_id and the keys "landsat|1" and "landsat|2"`,
		Good: `DeriveEventID(source, key, time) for each`,
	},
	{
		ID: bodyInOtherGroup, Name: "body-in-other-group", Severity: Error,
		Title: "a body that was sent to another message group",
		Wording: "Within the deduplication interval one body goes to one message group. With the deduplication scope messageGroup SQS delivers " +
			"the body in both groups; with the scope queue it drops the second message, and the order of the second group has a gap.",
		Source: "F-006, F-030",
		Fix:    "derive the group from values that do not change",
		Passes: OnStream, Since: "0.1.0",
		Bad:  `send(body, "north"); send(body, "south")`,
		Good: `send(body, group(event))`,
	},
	{
		ID: dedupIDReused, Name: "dedup-id-reused", Severity: Error,
		Title: "an explicit deduplication ID that was sent with another body",
		Wording: "Within the deduplication interval one deduplication ID has one body. SQS compares only the ID: it drops the second message " +
			"with any body, and reports success.",
		Source: "F-007, F-011 to F-014",
		Fix:    "derive the ID from everything that distinguishes two events, or send no ID and let SQS hash the body",
		Passes: OnStream, Since: "0.1.0",
		Bad:  `send(created, "order-17"); send(paid, "order-17")`,
		Good: `send(created, "order-17|created"); send(paid, "order-17|paid")`,
	},
}
