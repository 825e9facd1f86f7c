package lint

// sourceRules are the rules that are checked only on Go source. Package fifovet checks all
// of them except SF020. "sqsfifo vet" checks SF020, because SF020 needs a package with its
// tests.
var sourceRules = []Rule{
	{
		ID: nondeterministicID, Name: "nondeterministic-dedup-id", Severity: Error,
		Title: "a clock or a random source reaches the deduplication ID",
		Wording: "A deduplication ID, or a dedupe key, depends on the event alone. An ID from a clock, a random source, a counter, a receipt " +
			"handle, a deadline or the address of a pointer is new for each attempt: SQS stores each retry as another message. A value of the process, " +
			"such as its process ID, is the same for all events: SQS drops all but one. An ID that is minted once and carried in the body is a warning: a " +
			"retry of the caller still mints another ID. A fresh ID of a received message that is sent again, of a form, in code for dead letters, or " +
			"in an exported function whose caller gives the queue, the body and the group, is a warning too, because a second delivery may be meant.",
		Source: "F-011 to F-019; KFM v11.2.3, section 4",
		Fix:    "derive the ID from the identity of the event, or leave the ID to the queue's hash of a canonical body",
		Passes: OnSource, Since: "0.1.0",
		Bad:  `MessageDeduplicationId: aws.String(uuid.NewString())`,
		Good: `MessageDeduplicationId: aws.String(order.ID)`,
	},
	{
		ID: constantID, Name: "constant-dedup-id", Severity: Error,
		Title:   "the deduplication ID is a constant",
		Wording: "A constant deduplication ID makes all messages one: SQS stores the first and drops all others for five minutes, with success.",
		Source:  "F-011 to F-019",
		Fix:     "derive the ID from the identity of the event",
		Passes:  OnSource, Since: "0.1.0",
		Bad:  `MessageDeduplicationId: aws.String("refresh")`,
		Good: `MessageDeduplicationId: aws.String("refresh|" + dataset.ID + "|" + dataset.Version)`,
	},
	{
		ID: constantBody, Name: "constant-body", Severity: Warning,
		Title: "the body is a constant and there is no deduplication ID",
		Wording: "With content-based deduplication SQS stores a constant body once in five minutes, for any attributes. A deduplication ID must " +
			"be set on every path of the code.",
		Source: "F-011",
		Fix:    "put the identity of the event into the body",
		Passes: OnSource, Since: "0.1.0",
		Bad:  `&sqs.SendMessageInput{MessageBody: aws.String("{}"), MessageGroupId: &tile}`,
		Good: "&sqs.SendMessageInput{MessageBody: canonicalJSON(scene), MessageGroupId: &tile}",
	},
	{
		ID: entityKey, Name: "entity-key", Severity: Info,
		Title: "the deduplication ID is the group ID",
		Wording: "The group ID names an entity with ordered events; the deduplication ID names one event. If both are the same expression, SQS " +
			"drops the second event of the entity within five minutes. This may be a deliberate debounce.",
		Source: "F-011, F-018",
		Fix:    "add a part that distinguishes the events of the entity, such as a version",
		Passes: OnSource, Since: "0.1.0",
		Bad:  `MessageGroupId: &account.ID, MessageDeduplicationId: &account.ID`,
		Good: `MessageGroupId: &account.ID, MessageDeduplicationId: &transfer.ID`,
	},
	{
		ID: remintedOnRetry, Name: "reminted-on-retry", Severity: Error,
		Title: "an ID is minted inside the loop that retries the send",
		Wording: "A retry has the bytes of the first attempt. A new ID or clock reading for each attempt, or the number of the attempt, makes each attempt a new message: in " +
			"the loop, in a function called by the loop, in a retried function, or in a recursive function.",
		Source: "F-019, F-023",
		Fix:    "derive the ID from the event",
		Passes: OnSource, Since: "0.1.0",
		Bad: `for err := errFirst; err != nil; {
	id := uuid.NewString()
	err = send(ctx, id, body)
}`,
		Good: `id := order.ID
for err := errFirst; err != nil; {
	err = send(ctx, id, body)
}`,
	},
	{
		ID: randomGroupID, Name: "random-group-id", Severity: Warning,
		Title: "a clock or a random source reaches the group ID",
		Wording: "SQS delivers the messages of one group in order. A separate group for each message has no order, and a retry lands in another " +
			"group. Groups for sessions, or from a fixed set, are fine.",
		Source: "F-018, F-030, F-091",
		Fix:    "use the entity with ordered events: an account, a tile, a dataset",
		Passes: OnSource, Since: "0.1.0",
		Bad:  `MessageGroupId: aws.String(uuid.NewString())`,
		Good: `MessageGroupId: &scene.PathRow`,
	},
	{
		ID: rawSendBypass, Name: "raw-send-bypass", Severity: Warning,
		Title: "a raw send to a FIFO queue in a module that has a producer",
		Wording: "A module that imports sqsfifo sends to FIFO queues through a producer. A raw SendMessage skips the envelope, the checks and " +
			"the memory for duplicates and collisions.",
		Source: "KFM v11.2.3, section 3",
		Fix:    "send through the producer, or give the reason in a directive",
		Passes: OnSource, Since: "0.1.0",
		Bad:  `client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: fifoURL, MessageGroupId: &g, MessageBody: &b})`,
		Good: `producer.Send(ctx, scene)`,
	},
	{
		ID: volatileBody, Name: "volatile-body", Severity: Warning,
		Title: "a value that changes with each attempt, or has no fixed form, reaches the body",
		Wording: "With content-based deduplication a retry has the bytes of the first attempt. A clock reading or a fresh ID in the payload, " +
			"the order of a map, or a time in the zone of the machine (at.Local()) changes the bytes. The rule follows values through JSON, gob, templates, setters, and the MarshalJSON and " +
			"String methods of the package; a map in gob and a pointer printed by fmt are different each time.",
		Source: "F-011, F-024; KFM v11.2.3, sections 4 and 7",
		Fix:    "take times and IDs from the event, and build the body as canonical JSON",
		Passes: OnSource, Since: "0.1.0",
		Bad:  `Payload{Scene: id, SentAt: time.Now()}`,
		Good: `Payload{Scene: id, AcquiredAt: scene.Acquired}`,
	},
	{
		ID: attrCopiesKey, Name: "attr-copies-key", Severity: Info,
		Title: "an attribute repeats the key from another expression",
		Wording: "The body has the key, and an attribute of the same name is computed separately. After a change of one of the two, consumers " +
			"that route by the attribute disagree with consumers of the body.",
		Source: "KFM v11.2.3, section 3",
		Fix:    "take both from one variable",
		Passes: OnSource, Since: "0.1.0",
		Bad:  `attributes["dedupe_key"] = scene.Path + scene.Row + scene.Date // the body has scene.ID`,
		Good: `attributes["dedupe_key"] = key // as the body`,
	},
	{
		ID: sharedConstantKey, Name: "const-key-distinct-events", Severity: Warning,
		Title: "one constant dedupe key for several types of events",
		Wording: "Two types of events with one dedupe key are one event to the producer, which refuses the second, and to every consumer that " +
			"deduplicates by the key.",
		Source: "KFM v10.3.1, key specification; KFM v11.2.3, section 4",
		Fix:    "make the type a part of the key",
		Passes: OnSource, Since: "0.1.0",
		Bad:  `key, _ := sqsfifo.JoinKey("refresh") // for scenes and for storms`,
		Good: `key, err := sqsfifo.JoinKey("landsat-refresh", scene.ID)`,
	},
	{
		ID: unreadFailures, Name: "unread-batch-failures", Severity: Error,
		Title:   "the failed entries of a batch are not read",
		Wording: "SendMessageBatch, PublishBatch and DeleteMessageBatch return a nil error although entries failed; the output lists these entries in Failed. Code that discards the output, or reads only the stored entries, takes lost events for sent ones. The rule holds for standard queues, too. A comparison with the number of stored entries counts as reading.",
		Source:  "F-058, F-060",
		Fix:     "read Failed, and send the listed entries again with the same IDs and bodies",
		Passes:  OnSource, Since: "0.1.0",
		Bad:  `_, err := client.SendMessageBatch(ctx, batch)`,
		Good: `out, err := client.SendMessageBatch(ctx, batch) // and then: for _, failed := range out.Failed`,
	},
	{
		ID: oneIDTwoBodies, Name: "one-id-two-bodies", Severity: Error,
		Title:   "two bodies are sent with one deduplication ID",
		Wording: "SQS compares deduplication IDs and not bodies: the second of two messages with one ID is dropped within five minutes, with an answer that says success. Two events of one order need two IDs, in one batch too. In a loop the ID of each message is another one, unless the loop repeats one message until it is sent. If the group is another one in each round, the finding is a warning, because a queue may compare the IDs of one group only.",
		Source:  "F-007, F-013, F-019",
		Fix:     "add the type of the event to the ID",
		Passes:  OnSource, Since: "0.1.0",
		Bad:  `send(ctx, order.ID, created); send(ctx, order.ID, paid)`,
		Good: `send(ctx, order.ID+"-created", created); send(ctx, order.ID+"-paid", paid)`,
	},
	{
		ID: unflushedProducer, Name: "unflushed-producer", Severity: Error,
		Title: "a producer sends asynchronously and is never flushed or closed",
		Wording: "SendAsync, SendMessageAsync and TrySend return before the event is sent. A program that ends without Flush or Close loses " +
			"the events that wait, and no callback runs for them. The rule reports a producer that its package makes, uses and neither flushes nor closes.",
		Source: "sqsfifo.Producer.Close",
		Fix:    "defer Close with a context that is not cancelled, and read its error",
		Passes: OnSource, Since: "0.1.0",
		Bad: `producer, err := sqsfifo.NewProducer(client, config)
producer.SendAsync(ctx, scene, nil) // and main returns`,
		Good: `producer, err := sqsfifo.NewProducer(client, config)
defer producer.Close(context.WithoutCancel(ctx))
producer.SendAsync(ctx, scene, nil)`,
	},
	{
		ID: noComplianceTest, Name: "no-compliance-test", Severity: Error,
		Title: "a package makes a producer and no test of it runs the compliance suite",
		Wording: "The KFM contract requires each producer to prove Hash Behavior, Attribute Ignorance and Replay Window Collision in CI. A " +
			"package that calls sqsfifo.NewProducer or NewProducerOn has a test that calls compliance.TestProducer and is not always " +
			"skipped. A producer for the fake queue of package sqstest is exempt: it sends nothing to SQS.",
		Source: "KFM v11.2.3, required tests",
		Fix:    "run \"sqsfifo vet --write\", which adds the test, and add your own events",
		Passes: OnSource, Since: "0.1.0",
		Bad:  `// the package has no *_test.go that calls compliance.TestProducer`,
		Good: `func TestCompliance(t *testing.T) { compliance.TestProducer(t, suite) }`,
	},
}
