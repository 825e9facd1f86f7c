// Package replay sends stored messages again, or for the first time, under the rules of a
// FIFO queue.
//
// # Problem
//
// A pipeline or a consumer lost a day, but the messages still exist: in an outbox archive,
// an idempotency store or a file. A simple loop over them delivers some messages twice,
// sends later events of a group after an earlier event failed, forgets its position in a
// crash, and ignores that SQS suppresses messages of the last five minutes but delivers
// older messages.
//
// # Guarantee
//
//   - A run sends the stored bytes to the stored group. First it compares the SHA-256 of
//     each body with the recorded hash; if they differ, the message is not sent (drift).
//   - The source defines the order of each message group: a run sends the next item after
//     SQS has acknowledged the previous one. A group continues after an item that was
//     sent, suppressed as a duplicate or skipped, and stops at any other item. The other
//     groups continue.
//   - A plan ([NewPlan]) has an action and a reason for each item, and a [Label]: inside
//     the deduplication window (SQS suppresses the item), at the edge, or outside (SQS
//     delivers the item again). A dry run makes no request. A run sends the planned items
//     in the planned order of each group. At the send it computes the label again. The
//     report has both labels: the label of the plan and the label at the send.
//   - An [idempotency.Store] records each item durably before the send, and again with its
//     outcome. After a killed run, another run with the same plan and store continues.
//     If a send got no answer, the item is sent again while SQS certainly suppresses a
//     duplicate ([ResendFor]). Later the item is unresolved. No item of a plan is stored
//     twice.
//   - Items recorded as delivered are skipped, unless [Options].Redeliver is set.
//   - An operator resolves an unresolved item in the store ([idempotency.Resolve]), and
//     gives up any other item that stopped its group ([Config].GiveUp).
//   - Only one run at a time of a store uses a source. A second run gets a
//     [*LockedError] with the ID of the first run.
//   - The report adds up: planned = sent + suppressed + skipped + conflict + drift +
//     unresolved + failed + remaining, with remaining = 0 after an uninterrupted run.
//     [Run] refuses any other report ([ReportError]).
//
// An attribute of each message names the run ([sqsfifo.ReplayAttribute]), if the message
// has room for an attribute. Bodies stay unchanged. Spans and provenance records of the
// producer then have replay_triggered.
//
// [RunQueue] sends the messages of a parking queue or a dead-letter queue, without a
// plan, and deletes each one after SQS has acknowledged its copy. The store is that of the
// producer.
//
// # Limits
//
// A replay and live traffic to the same groups have no common order. Stop the live
// traffic, or replay to groups without other messages.
//
// "Stored twice" refers to the attempts of one plan. Items sent outside the window under
// Options.Redeliver are deliberately delivered again; consumers recognise them by their
// dedupe keys. A label depends on the time of the send that the source recorded, and on
// the clocks of both machines; [Margin] covers small differences. If a process or packet
// is delayed longer than Margin between the last clock reading and SQS, an item may be
// delivered twice.
//
// A file of plain messages does not record when they were sent. A plan with the default
// policy skips all of them: see [NewJSONLines].
//
// A receipt reports a suppressed message only if this process saw the original or the
// source recorded its message ID. Other suppressed messages count as sent.
//
// A plan stays in memory without bodies: a few hundred bytes per item. The lock of a source
// keeps out a second run only if both runs use the same store.
//
// Messages of [NewArchive] are sent in the order of positions, messages of [NewStore] in
// the order of claims, and messages of [NewProvenance] in the order of first outcomes. For
// each group of one producer, this is the order of the sends.
package replay
