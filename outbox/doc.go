// Package outbox stores messages in the same transaction as their events, and sends them
// later in commit order.
//
// # Problem
//
// A program that writes to its database and then sends a message can die between both
// steps. Storing the message in the same transaction closes this gap but opens others.
// Row numbers do not follow the order of commits, so a later event of a group can be sent
// first. A relay that dies between a send and the record of the send repeats the send. If
// two relays each believe that no other relay is running, they send every message twice.
//
// # Guarantee
//
//   - The outbox contains a message, byte for byte as returned by Build, if and only if
//     the transaction of [Outbox.Add] committed.
//   - Messages of a group are ordered by commit. Add draws positions from the group's
//     counter row and locks the row until the transaction ends. Positions therefore have
//     no gaps, and after a position is visible, no smaller position of the group can
//     appear.
//   - Any number of processes may run a [Relay]; one of them leads. A database row names
//     the leader and has a fence that grows with each takeover. Every write of a leader
//     checks the fence.
//   - Before its first attempt, a row is durably marked as possibly sent. After a crash
//     of a relay or of the database, the first unconfirmed row of a group is sent again
//     before any later row, with equal bytes, so SQS recognises the duplicate: each
//     message is in the queue exactly once.
//   - A row is late if its first attempt is so old that SQS may not recognise a
//     duplicate. By default the relay holds the row and the rest of its group, and
//     reports the row: see [Config].Late.
//   - A failing message stops its own group and no other group.
//
// # Limits
//
// Exactly-once ends if a process or packet is delayed for more than five minutes between
// the last check of the lease and SQS. Leases and resend times include suspensions of the
// relay's machine.
//
// Transactions that add to one group wait for each other from Add until they end, so call
// Add late in the transaction. One Add locks its groups in a fixed order, so single calls
// cannot deadlock with each other; two Adds with different groups in one transaction can
// (PostgreSQL: 40P01, retry the transaction). At isolation levels above READ COMMITTED,
// Add waits too, but fails with a serialization error (40001) if another transaction that
// added to the group has committed since the snapshot of Add's transaction.
//
// Ages come from the database's clock; for SQLite, from the machine's clock. If this clock
// is set back by more than five seconds, all possibly sent messages become late, because
// the time since their first attempts is unknown. To detect this, relays compare the clock
// with the latest time in any relay's commits; the leader commits soon after each third of
// the lease, or more often. If no relay was running for a time, the clock may still be later
// than the last commit, or at most five seconds earlier. Relays then cannot detect that
// the clock was set back, and a resent message may be delivered twice.
//
// Group counters are never deleted, because positions must stay unique. Each counter
// takes about 100 bytes including its index entry.
//
// # Operation
//
// PostgreSQL: rows of the table outbox are inserted and deleted, never updated. The table
// outbox_attempts has at most one row per group, which marks messages as possibly sent.
// The relay writes this row before it sends new messages of the group. A transaction left
// open anywhere in the database prevents vacuuming of deleted rows, and the relay must
// then read past these rows. To limit the duration of such transactions, set
// idle_in_transaction_session_timeout.
//
// [Schema] sets two storage parameters, measured in November 2026 with 8 writers and 200
// groups. First, outbox_groups, outbox_attempts and outbox_leader have a fillfactor of 50:
// while another transaction was open, 53 % of the updates of outbox_attempts needed no new
// index entry, compared with 1 % without the setting. Without an open transaction the
// share was 99 % in both cases; a fillfactor of 25 was no better. Second, autovacuum runs
// on the table outbox after 10,000 deleted rows, at any table size: without any vacuum the
// table was 2 to 4 times as large after 15 s. The default threshold of autovacuum grows
// with the table, so a backlog would delay the vacuum. Differences in speed were within
// the noise.
//
// [Outbox.Stats] and [Outbox.Groups] show the lag and the stuck groups. [Outbox.Late]
// lists messages that may have been stored and are too old to resend. [Outbox.Resolve]
// lets a group continue. These methods need no relay.
//
// SQLite: only one writer is active at a time. Begin transactions with IMMEDIATE
// (modernc.org/sqlite: _txlock=immediate) and set a busy timeout.
//
// # Other databases
//
// MySQL and MariaDB are unsupported. The relay renews its lease, takes over and marks
// rows with UPDATE ... RETURNING and INSERT ... ON CONFLICT; both databases lack these
// forms, so each statement would need a third version and a third proof of correctness.
// An outbox in these databases can still keep the order of a group. It needs a table with
// one counter for each group. The event's transaction first executes
//
//	INSERT INTO counters VALUES (?, LAST_INSERT_ID(1))
//	  ON DUPLICATE KEY UPDATE last_position = LAST_INSERT_ID(last_position + 1)
//
// and then inserts the message, as the JSON of Build's result, with the position
// LAST_INSERT_ID(). The counter row stays locked until the commit, so positions follow
// commit order and other groups do not wait. With a replay.Source over this table,
// package replay sends the messages in order, and durably marks each message before its
// send. When replay.Report.Complete returns true, delete the sent rows. Make the next plan
// only after this deletion.
package outbox
