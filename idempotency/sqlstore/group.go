package sqlstore

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// maxGroup limits the number of claims and endings (calls of Finish or Extend) of one
// transaction, because each caller waits for the whole transaction. The claims of one
// call are never divided.
//
// On PostgreSQL each key takes an entry of the server's lock table, which all connections
// share, so the limit is smaller.
const (
	maxGroup         = 1024
	maxGroupPostgres = 128
)

// maxGroupBytes limits the total of the bodies and responses of one transaction, in
// bytes, because its statements contain all of them. A single item may exceed the limit.
const maxGroupBytes = 4 << 20

// item is a queued call before its transaction: a batch of claims, or one ending (a call
// of Finish or Extend).
type item struct {
	claims   []claimOf // nil for a call of Finish or Extend
	outcomes []idempotency.Outcome

	// indexes[i] is the index of claims[i] in the caller's batch. The method `renew`
	// repeats only some claims.
	indexes []int

	// renewals has the indexes of claims that the method `renew` must repeat, because
	// another transaction had locked their keys.
	renewals []int

	granted bool // a claim was granted and committed

	ending *endingOf // call of Finish or Extend; nil for claims
	busy   bool      // Finish or Extend did nothing, because another transaction was writing the record

	clock bool // no call: the transaction watches the clock, for a transaction of a caller

	bytes int  // total of bodies and responses
	taken bool // no longer in the queue; guarded by Store.mu
	done  chan struct{}
	err   error
}

func newClaims(claims []idempotency.Claim) *item {
	it := &item{outcomes: make([]idempotency.Outcome, len(claims)), done: make(chan struct{})}
	for i, c := range claims {
		it.indexes = append(it.indexes, i)
		it.claims = append(it.claims, claimOf{Claim: c, id: c.Key.ID()})
		it.bytes += len(c.Body)
	}
	return it
}

func newEnding(ref idempotency.Ref, t idempotency.Ending) *item {
	result, _ := t.Result()
	return &item{ending: &endingOf{ref: ref, id: ref.Key.ID(), t: t}, bytes: len(result.Response), done: make(chan struct{})}
}

func (it *item) ids(yield func(idempotency.KeyID) bool) {
	if it.ending != nil {
		yield(it.ending.id)
		return
	}
	for _, c := range it.claims {
		if !yield(c.id) {
			return
		}
	}
}

func (it *item) size() int { return max(len(it.claims), 1) }

// submit queues a call for the next transaction. It returns when the call is done or ctx
// ends.
func (s *Store) submit(ctx context.Context, it *item) error {
	if err := s.enqueue(ctx, it); err != nil {
		return err
	}
	return s.await(ctx, it)
}

// enqueue adds calls to the queue. The next transaction includes these calls if they fit.
func (s *Store) enqueue(ctx context.Context, items ...*item) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return idempotency.ErrClosed
	}
	s.queue = append(s.queue, items...)
	s.start()
	return nil
}

// await returns when a queued call is done or ctx ends.
func (s *Store) await(ctx context.Context, it *item) error {
	select {
	case <-it.done:
		return refusal(it.err)
	case <-ctx.Done():
	}
	s.mu.Lock()
	if !it.taken {
		s.queue = slices.DeleteFunc(s.queue, func(o *item) bool { return o == it })
		defer s.mu.Unlock()
		return fmt.Errorf("sqlstore: nothing was changed: %w", s.withLastErr(ctx.Err()))
	}
	defer s.mu.Unlock()
	select {
	case <-it.done: // the call ended at the same time as ctx
		return refusal(it.err)
	default:
		return fmt.Errorf("sqlstore: %w: %w", idempotency.ErrAmbiguous, s.withLastErr(ctx.Err()))
	}
}

// withLastErr adds the error of the last write to err, to explain a delay, for example
// "database is locked". If the last write succeeded, it returns err. The caller holds s.mu.
func (s *Store) withLastErr(err error) error {
	if s.lastErr == nil {
		return err
	}
	return fmt.Errorf("%w; the last write failed: %w", err, s.lastErr)
}

// start starts another goroutine of commit, unless the queue is empty or s.committers
// such goroutines run already. The caller holds s.mu.
func (s *Store) start() {
	if s.running < s.committers && len(s.queue) > 0 {
		s.running++
		go s.commit()
	}
}

// commit writes the queued items, one transaction after another, until takeGroup()
// returns no item.
func (s *Store) commit() {
	conn := connection{db: s.config.DB}
	if most := conn.db.Stats().MaxOpenConnections; most == 0 || most > s.committers {
		// Keep the connection for the next transaction. Reads use other connections of
		// the pool.
		conn.reuse = true
	}
	for {
		// Yield once, so that goroutines about to submit an item join this group. A timer
		// would make a lone caller wait.
		runtime.Gosched()
		s.mu.Lock()
		group := s.takeGroup()
		if len(group) == 0 {
			conn.free() // free the connection before Close returns
			s.running--
			s.idle.Broadcast()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()

		waiting, err := s.write(group, &conn)

		s.mu.Lock()
		s.lastErr = err
		for _, it := range group {
			for id := range it.ids {
				delete(s.inFlight, id)
			}
		}
		// Items in the queue may have waited for these keys. This goroutine takes only as
		// many items as fit into one transaction, so start another goroutine, if
		// permitted, for the rest.
		s.start()
		s.mu.Unlock()
		for _, it := range waiting {
			close(it.done)
		}
	}
}

// takeGroup takes the items of the next transaction from the queue. Items with a key in
// use by another goroutine must wait, and the calls of each key stay in order. The caller
// holds s.mu.
func (s *Store) takeGroup() (group []*item) {
	size, bytes := 0, 0
	endingKeys := map[idempotency.KeyID]bool{}
	waitingKeys := map[idempotency.KeyID]bool{}
	var rest []*item
	for i, it := range s.queue {
		if size > 0 && (size+it.size() > s.maxGroup || bytes+it.bytes > maxGroupBytes) {
			rest = append(rest, s.queue[i:]...)
			break
		}
		// A transaction executes only one ending (call of Finish or Extend) of each key, so
		// a second ending must wait.
		mustWait := it.ending != nil && endingKeys[it.ending.id]
		for id := range it.ids {
			mustWait = mustWait || s.inFlight[id] || waitingKeys[id]
		}
		if mustWait {
			for id := range it.ids {
				waitingKeys[id] = true
			}
			rest = append(rest, it)
			continue
		}
		if it.ending != nil {
			endingKeys[it.ending.id] = true
		}
		it.taken = true
		if it.clock {
			s.clockQueued = false
		}
		size += it.size()
		bytes += it.bytes
		group = append(group, it)
	}
	for _, it := range group {
		for id := range it.ids {
			s.inFlight[id] = true
		}
	}
	s.queue = rest
	return group
}

// keyState is the state of one key, as known to the goroutine that writes its claims.
type keyState struct {
	record idempotency.Record
	exists bool // the key has a row

	// refusal is the answer to claims that are refused although the record permits them:
	// DecisionFull, DecisionOverQuota, or DecisionInProgress, usually because another
	// transaction is writing the row. If no claims are refused, it is DecisionNone.
	refusal idempotency.Decision
}

// write executes the calls of a group and sets their outcomes or errors. The caller must
// close the channel `done` of the returned items. All other items are already answered.
func (s *Store) write(group []*item, conn *connection) (waiting []*item, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.GroupTimeout)
	defer cancel()
	known, err := s.readFirst(ctx, group)
	if err != nil {
		for _, it := range group {
			it.err = err
		}
		return group, err
	}
	var endings []*item
	watch := false
	for _, it := range group {
		watch = watch || it.clock
		if it.ending != nil {
			endings = append(endings, it)
		}
	}
	waiting = group
	// A transaction executes at most one claim of each key. Usually one transaction is
	// enough.
	for first := true; ; first = false {
		firsts := decideClaims(group, known, s.config.Quota)
		// Some claims need no write. Answer them now, before the transaction.
		if first {
			waiting = slices.DeleteFunc(slices.Clone(group), func(it *item) bool {
				answered := it.ending == nil && !slices.ContainsFunc(it.outcomes, isUndecided)
				if answered {
					close(it.done)
				}
				return answered
			})
		} else {
			endings, watch = nil, false
		}
		if len(firsts) == 0 && len(endings) == 0 && !watch {
			return waiting, nil
		}
		if err := s.transaction(ctx, conn, endings, firsts, known); err != nil {
			for _, it := range waiting {
				switch {
				case it.ending == nil && it.granted:
					it.err = fmt.Errorf("%w: %w", idempotency.ErrAmbiguous, err)
				case it.ending != nil && first || slices.ContainsFunc(it.outcomes, isUndecided):
					it.err = err
				}
			}
			return waiting, err
		}
	}
}

func isUndecided(o idempotency.Outcome) bool { return o.Decision == idempotency.DecisionNone }

// readFirst reads the records of the claimed keys, because many claims need no write. It
// skips keys that a recent Lookup did not find, because they are probably new.
func (s *Store) readFirst(ctx context.Context, group []*item) (map[idempotency.KeyID]*keyState, error) {
	var ids []idempotency.KeyID
	known := map[idempotency.KeyID]*keyState{}
	for _, it := range group {
		for _, c := range it.claims {
			if known[c.id] == nil {
				known[c.id] = &keyState{}
				if !s.missing.remove(c.id) {
					ids = append(ids, c.id)
				}
			}
		}
	}
	for page := range slices.Chunk(ids, idempotency.MaxBatch) {
		s.stats.reads.Add(1)
		records, err := s.engine.read(ctx, s.config.DB, page)
		if err != nil {
			return nil, err
		}
		for id, r := range records {
			s.seen.Raise(r.ReadAt.UnixMicro())
			*known[id] = keyState{record: r, exists: true}
		}
	}
	return known, nil
}

// undecidedClaim is a claim without an outcome so far: claims[i] of the item.
type undecidedClaim struct {
	*item
	i int
}

// decideClaims answers claims that need no write: the key's record does not permit the
// claim, or all claims of the key are refused (keyState.refusal). Of the other claims it
// returns the first of each key, because a transaction executes one claim of a key.
func decideClaims(group []*item, known map[idempotency.KeyID]*keyState, quota int64) (firsts []undecidedClaim) {
	seen := map[idempotency.KeyID]bool{}
	for _, it := range group {
		for i, c := range it.claims {
			if !isUndecided(it.outcomes[i]) || seen[c.id] {
				continue
			}
			f := known[c.id]
			d := idempotency.Decide(f.record, c.Claim, f.record.ReadAt)
			switch {
			case !d.Granted():
				it.outcomes[i] = idempotency.NewOutcome(d, owned(f.record), c.Claim)
			case f.refusal == idempotency.DecisionFull:
				it.outcomes[i] = idempotency.Outcome{Decision: idempotency.DecisionFull}
			case f.refusal == idempotency.DecisionOverQuota:
				it.outcomes[i] = idempotency.Outcome{Decision: idempotency.DecisionOverQuota, Quota: quota}
			case f.refusal == idempotency.DecisionInProgress:
				if d == idempotency.DecisionRenewed {
					it.renewals = append(it.renewals, i)
				}
				it.outcomes[i] = idempotency.NewOutcome(idempotency.DecisionInProgress, owned(f.record), c.Claim)
			default:
				seen[c.id] = true
				firsts = append(firsts, undecidedClaim{it, i})
			}
		}
	}
	return firsts
}

// owned returns a copy of r that shares no memory with r.
func owned(r idempotency.Record) idempotency.Record {
	r.Body, r.Result.Response = slices.Clone(r.Body), slices.Clone(r.Result.Response)
	return r
}
