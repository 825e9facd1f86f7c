// Package outbox stores messages in the transaction that makes their events true,
// and sends them later, in the order of the commits.
//
// # Problem
//
// A program that writes to its database and then sends a message can die between the
// two. Storing the message in the same transaction closes that gap, and opens
// others: numbers that a table gives to its rows are not in the order in which the
// transactions commit, so that a later event of a group is sent first; a relay that
// dies after a send and before it has noted it sends again; and two relays that both
// believe to be the only one do so all the time.
//
// # Guarantee
//
//   - A message is in the outbox if and only if the transaction of [Outbox.Add]
//     committed, byte for byte as Build returned it.
//   - The order of a message group is the order of the commits. Add draws the
//     position from a counter row of the group, which stays locked until the
//     transaction ends: positions have no gaps, and a position that can be read
//     has none before it that is still to come.
//   - Any number of processes may run a [Relay]; one of them works. A row of the
//     database says which, with a fence that grows with each takeover; every write
//     of a relay is conditioned on it.
//   - A row is marked, durably, before its first attempt. After a crash, of a relay or
//     of the database, the first row of a group that has no confirmation is sent
//     again before any later one, with equal bytes, so that SQS recognises it: each
//     message is in the queue exactly once.
//   - A row whose first attempt is so long ago that SQS may have forgotten it is
//     late. [Config].Late says what becomes of it; by default it is held and
//     named, with the rest of its group behind it.
//   - A message that fails stops its group and no other.
//
// # Limits
//
// Exactly-once ends where a process or packet is stopped for more than five minutes
// between its last check of the lease and SQS. Transactions that write to one group
// wait for each other from Add until they end, so call Add late in the transaction.
// One Add takes its groups in a fixed order and does not deadlock with another; two
// Adds in one transaction with different groups can (PostgreSQL: 40P01, retry the
// transaction). At isolation levels above READ COMMITTED, Add fails with a
// serialization error (40001) where it would otherwise wait.
//
// Ages are measured by the clock of the database, for SQLite that of the machine. It
// must not be set back while rows wait for a confirmation.
//
// The counter of a group is kept for good, about 100 bytes with its index for each
// group that ever was: a position is never used twice.
//
// # Operation
//
// PostgreSQL: the rows of the table outbox are inserted and deleted, never updated; what
// the relay writes for each attempt is one row for each group. A transaction that
// stays open anywhere in the database keeps the remains of deleted rows from being
// vacuumed, and the relay has to read over them: bound transactions with
// idle_in_transaction_session_timeout.
//
// [Schema] sets two storage parameters; the program bench of the nested module
// outboxtest repeats the measurements, here with 8 writers and 200 groups. A
// fillfactor of 50 for the counters and marks: while another transaction was open, 53 %
// of the updates of marks needed no new entry in the index, without it 1 %; with none
// open 99 % in both cases, and 25 was not better. Autovacuum of the table outbox after
// 10,000 deleted rows, whatever its size: without any vacuum the table was 2 to 4 times as
// large after 15 s, and it is the backlog of a bad day that makes the default wait.
// Differences in speed were within the noise.
//
// [Outbox.Stats] and [Outbox.Groups] show the lag, and which groups are stuck;
// [Outbox.Late] the messages that may have been stored and are too old to resend;
// [Outbox.Settle] lets a group go on. None of them needs a relay.
//
// SQLite: there is one writer at a time. Begin transactions with IMMEDIATE
// (modernc.org/sqlite: _txlock=immediate) and set a busy timeout.
//
// # Other databases
//
// MySQL and MariaDB are not supported. The relay renews its lease, takes over and marks
// with UPDATE ... RETURNING and INSERT ... ON CONFLICT, which neither has, so that
// each of its statements would have to be written and proven a third time. What gives
// the order works there, too: a table with a counter for each group, and in the
// transaction of the event
//
//	INSERT INTO counters VALUES (?, LAST_INSERT_ID(1))
//	  ON DUPLICATE KEY UPDATE last_position = LAST_INSERT_ID(last_position + 1)
//
// then the message, as the JSON of what Build returned, under LAST_INSERT_ID(). The row
// of the counter stays locked until the commit, so that positions are in the order of the
// commits and other groups do not wait. A replay.Source over that table then lets
// package replay send the messages in order, with a durable mark before each; rows
// that a plan has sent are deleted when its report is complete, and before that no
// other plan is made.
package outbox
