package outbox

// statements has the SQL texts of the relay, and of these methods of Outbox: Late, Resolve,
// Stats, Groups, Purge, Archived and ArchivedAt.
type statements struct {
	peekLeader, takeOver, renew, resign string
	lockLeader, setClock, makeLate      string

	pick, waiting                                  string
	mark, unmarkAfter, archive, remove, unmarkFrom string

	late, resolving, stats, groups, leader, purge string

	archivedAfter, archivedAt string
}

// heads finds up to ?3 message groups after group ?1, in order. The query jumps from
// group to group in the index, so its cost does not depend on the number of rows.
const heads = `WITH RECURSIVE heads (message_group, n) AS (
  SELECT (SELECT min(o.message_group) FROM outbox AS o WHERE o.message_group > ?1), 1
  UNION ALL
  SELECT (SELECT min(o.message_group) FROM outbox AS o WHERE o.message_group > h.message_group), h.n + 1
  FROM heads AS h WHERE h.message_group IS NOT NULL AND h.n < ?3
)`

// availableGroups finds up to ?4 message groups with rows to send, and the position of the
// first row of each. It omits the groups in the JSON array ?2, for example groups with a
// message in flight.
const availableGroups = heads + `, available AS (
  SELECT h.message_group, (SELECT min(o.position) FROM outbox AS o WHERE o.message_group = h.message_group) AS head
  FROM heads AS h
  WHERE h.message_group IS NOT NULL AND h.message_group NOT IN ({list ?2})
  ORDER BY h.message_group LIMIT ?4
)`

// spans lists the first and last position of each group. Positions have no gaps, so a
// group has last - first + 1 rows.
const spans = heads + `, spans AS (
  SELECT h.message_group,
    (SELECT min(o.position) FROM outbox AS o WHERE o.message_group = h.message_group) AS head,
    (SELECT max(o.position) FROM outbox AS o WHERE o.message_group = h.message_group) AS tail
  FROM heads AS h WHERE h.message_group IS NOT NULL
)
`

// customPlans makes PostgreSQL plan each execution of a statement, until the transaction
// ends. Drivers keep prepared statements: a plan made for a small table would later scan
// the large table.
const customPlans = `set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true)`

func newStatements(d Dialect) statements {
	sql := d.Render
	s := statements{
		peekLeader: sql(`SELECT lease_until - {now}, token, seen_at - {now} FROM outbox_leader WHERE id = 1`),

		// If a takeover succeeded but its answer was lost, a repetition succeeds, too: the
		// row has the relay's token.
		takeOver: sql(`UPDATE outbox_leader SET fence = fence + 1, token = ?1, holder = ?2, lease_until = {now} + ?3
			WHERE id = 1 AND (lease_until <= {now} OR token = ?1) RETURNING fence`),

		resign: sql(`UPDATE outbox_leader SET lease_until = 0, token = '' WHERE id = 1 AND fence = ?1 AND token = ?2`),

		lockLeader: sql(`UPDATE outbox_leader SET fence = fence WHERE id = 1 RETURNING {now}, seen_at, lease_until`),

		setClock: sql(`UPDATE outbox_leader SET seen_at = ?1, lease_until = ?2 WHERE id = 1`),

		// ?1 is the clock's step in microseconds, ?2 is now minus ResendFor. All possibly
		// sent messages become late.
		makeLate: sql(`UPDATE outbox_attempts SET first_attempt = CASE WHEN first_attempt - ?1 < ?2 THEN first_attempt - ?1 ELSE ?2 END
			WHERE to_position >= from_position`),

		// Read at most ?5 rows of each available group. The row that brings the total
		// size to ?6 bytes or more is the last.
		pick: sql(availableGroups + `, candidates AS (
			SELECT o.message_group, o.position, o.message, o.body_hash,
				sum(length(o.message)) OVER (ORDER BY o.message_group, o.position) - length(o.message) AS bytes_before
			FROM available AS f JOIN outbox AS o ON o.message_group = f.message_group AND o.position >= f.head AND o.position < f.head + ?5
		)
		SELECT c.message_group, c.position, c.message, c.body_hash, coalesce(a.from_position, 0), coalesce(a.to_position, 0), coalesce(a.first_attempt, 0)
		FROM candidates AS c LEFT JOIN outbox_attempts AS a ON a.message_group = c.message_group
		WHERE c.bytes_before < ?6
		ORDER BY c.message_group, c.position`),

		waiting: sql(availableGroups + ` SELECT count(*) FROM available`),

		mark: sql(`INSERT INTO outbox_attempts (message_group, from_position, to_position, first_attempt)
			SELECT x.g, x.f, x.t, CAST(?2 AS bigint) FROM {records ?1: g text, f bigint, t bigint} WHERE true
			ON CONFLICT (message_group) DO UPDATE SET from_position = excluded.from_position, to_position = excluded.to_position, first_attempt = excluded.first_attempt`),

		unmarkAfter: sql(`UPDATE outbox_attempts SET to_position = x.t FROM {records ?1: g text, t bigint}
			WHERE outbox_attempts.message_group = x.g AND outbox_attempts.to_position > x.t`),

		archive: sql(`INSERT INTO outbox_archive (message_group, position, message, body_hash, added_at, outcome, message_id, sequence_number, left_at)
			SELECT o.message_group, o.position, o.message, o.body_hash, o.added_at, x.o, x.m, x.s, {now}
			FROM {records ?1: g text, p bigint, o text, m text, s text} JOIN outbox AS o ON o.message_group = x.g AND o.position = x.p WHERE true`),

		remove: sql(`DELETE FROM outbox WHERE (message_group, position) IN (SELECT x.g, x.p FROM {records ?1: g text, p bigint})`),

		late: sql(`SELECT o.message_group, o.position, o.message, a.first_attempt, o.added_at FROM outbox_attempts AS a
			JOIN outbox AS o ON o.message_group = a.message_group AND o.position >= a.from_position AND o.position <= a.to_position
			WHERE a.first_attempt <= {now} - ?1 ORDER BY o.message_group, o.position`),

		resolving: sql(`SELECT (SELECT coalesce(min(o.position), 0) FROM outbox AS o WHERE o.message_group = ?1),
			coalesce((SELECT a.first_attempt - ({now} - ?3) FROM outbox_attempts AS a WHERE a.message_group = ?1 AND ?2 >= a.from_position AND ?2 <= a.to_position), 0)`),

		unmarkFrom: sql(`UPDATE outbox_attempts SET to_position = ?2 - 1 WHERE message_group = ?1 AND to_position >= ?2`),

		stats: sql(spans + `SELECT count(*), coalesce(CAST(sum(g.tail - g.head + 1) AS bigint), 0), coalesce({now} - min(o.added_at), 0),
			coalesce(CAST(sum(CASE WHEN a.first_attempt <= {now} - ?2 THEN (CASE WHEN a.to_position < g.tail THEN a.to_position ELSE g.tail END) - g.head + 1 ELSE 0 END) AS bigint), 0)
		FROM spans AS g JOIN outbox AS o ON o.message_group = g.message_group AND o.position = g.head
		LEFT JOIN outbox_attempts AS a ON a.message_group = g.message_group AND g.head >= a.from_position AND g.head <= a.to_position`),

		groups: sql(spans + `SELECT g.message_group, g.head, g.tail, o.message, {now} - o.added_at, coalesce(a.first_attempt, 0), coalesce(a.first_attempt + ?2 - {now}, 0)
		FROM spans AS g JOIN outbox AS o ON o.message_group = g.message_group AND o.position = g.head
		LEFT JOIN outbox_attempts AS a ON a.message_group = g.message_group AND g.head >= a.from_position AND g.head <= a.to_position
		ORDER BY g.message_group`),

		leader: sql(`SELECT CASE WHEN lease_until > {now} THEN holder ELSE '' END, fence FROM outbox_leader WHERE id = 1`),

		purge: sql(`DELETE FROM outbox_archive WHERE (message_group, position) IN
			(SELECT r.message_group, r.position FROM outbox_archive AS r WHERE r.left_at <= {now} - ?1 ORDER BY r.left_at LIMIT ?2)`),
	}
	const archived = `SELECT r.message_group, r.position, r.message, r.body_hash, r.outcome, r.message_id, r.sequence_number, r.added_at, r.left_at FROM outbox_archive AS r `
	s.archivedAfter = sql(archived + `WHERE (r.message_group, r.position) > (?1, ?2) ORDER BY r.message_group, r.position LIMIT ?3`)
	s.archivedAt = sql(archived + `JOIN {records ?1: g text, p bigint} ON r.message_group = x.g AND r.position = x.p`)
	renewed := `, '', ''`
	if d == PostgreSQL {
		renewed = `, ` + customPlans
	}
	s.renew = sql(`UPDATE outbox_leader SET lease_until = {now} + ?3, seen_at = CASE WHEN seen_at > {now} THEN seen_at ELSE {now} END
		WHERE id = 1 AND fence = ?1 AND token = ?2 RETURNING {now}, seen_at, ` + schema.Oldest() + renewed)
	return s
}
