// Package replay sends stored messages again, or for the first time, without what a
// loop over a table does to a FIFO queue.
//
// # Problem
//
// A pipeline lost a day, or a consumer did, and the messages are still there: in the
// archive of an outbox, in an idempotency store, in a file. A loop that sends them
// delivers again what was delivered, sends the later events of a group when an earlier one
// failed, cannot say after a crash where it was, and does not know that SQS swallows
// whatever it saw in the last five minutes, and nothing that is older.
//
// # Guarantee
//
//   - What is sent are the stored bytes to the stored group. Their SHA-256 is compared
//     with the recorded one before; what differs has drifted and is not sent.
//   - The order of a message group is that of the source: the next item is sent when
//     SQS has acknowledged the one before. A group stops at its first item that was
//     not sent, suppressed or skipped, and the other groups go on.
//   - A plan ([NewPlan]) says for each item what becomes of it and why: whether it is
//     inside the deduplication window, so that SQS will suppress it, at its edge,
//     or outside, so that it will be delivered again ([Label]). A dry run makes no
//     request. The run follows the plan: it sends the same items in the same order of
//     each group. The labels are computed again at the send, and both are reported.
//   - An item is marked in the [Journal], durably, before it is sent, and when it has
//     an outcome. A run that was killed goes on with the same plan and journal: what
//     has no answer is sent again as long as SQS surely recognises it ([ResendFor]),
//     and is reported as indeterminate after that. No item of a plan is stored twice.
//   - What the source recorded as delivered is skipped, unless [Options].Redeliver is
//     set.
//   - One run at a time has a source ([OpenJournal]); the error of another one names
//     the owner.
//   - The report adds up: planned = sent + suppressed + skipped + conflict + drift +
//     indeterminate + failed + remaining, where nothing remains after a run that was
//     not interrupted. A report that does not is refused ([ReportError]).
//
// A message names the run in the attribute [sqsfifo.ReplayAttribute], never in its
// body, unless there is no room for an attribute. Spans and provenance records of the
// producer then have replay_triggered.
//
// # Limits
//
// There is no order between a replay and live traffic to the same groups. Stop the
// one, or replay to groups that get no other messages.
//
// "Stored twice" is about the attempts of this plan. What Options.Redeliver sends
// outside the window is delivered again, which is its purpose; consumers recognise it
// by its dedupe key. The label of an item is as good as the source's record of when it
// was sent, and the clocks of both machines: [Margin] is for the rest. A run whose
// process or packet is stopped for longer than that between its last look at the
// clock and SQS may deliver an item twice.
//
// A file of messages without more says nothing of when they were sent, so that a plan
// with the default policy skips them all: see [JSONLines.Assume].
//
// A receipt says that SQS suppressed a message if this process saw the original, or if
// the source recorded its message ID. Otherwise what SQS suppressed counts as sent.
//
// A plan is held in memory, without bodies: a few hundred bytes an item. The lock of a
// [FileJournal] is for runs on one machine that use one directory; a [Journal] in a
// database can do more. Where the operating system has no flock, a crash leaves the
// lock to be removed by hand.
//
// The messages of [Archive] are sent in the order of their positions. Those of a
// [Store] are in the order of their claims; those of [Provenance] in the order of
// their first outcomes, which is that of the sends for each group of one producer.
package replay
