package sqlstore

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/kansas-frontier-matrix/sqsfifo/idempotency"
)

// maxGroup is the largest number of claims and transitions in one transaction, so that
// the first ones of many need not wait for the last ones. A batch is never divided.
const maxGroup = 1024

// maxGroupBytes is the largest number of bytes in the bodies and responses of a group
// of several items: statements hold all of them.
const maxGroupBytes = 4 << 20

// item is one call that waits for a commit.
type item struct {
	claims   []claimOf // of a claim or batch
	outcomes []idempotency.Outcome
	indexes  []int // of the claims in their call
	held     []int // claims that were not renewed because somebody else was writing the record
	granted  bool  // a claim was granted and committed

	settle *settleOf // of a transition
	busy   bool      // the transition was not made: somebody else is writing the record

	bytes int  // of bodies and responses
	taken bool // with Store.mu: by a committer
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

func newSettle(ref idempotency.Ref, t idempotency.Transition) *item {
	result, _ := t.Result()
	return &item{settle: &settleOf{ref: ref, id: ref.Key.ID(), t: t}, bytes: len(result.Response), done: make(chan struct{})}
}

// ids yields the keys of the item.
func (it *item) ids(yield func(idempotency.KeyID) bool) {
	if it.settle != nil {
		yield(it.settle.id)
		return
	}
	for _, c := range it.claims {
		if !yield(c.id) {
			return
		}
	}
}

func (it *item) size() int { return max(len(it.claims), 1) }

// submit has a committer make the call, and returns when it is made or ctx has
// ended.
func (s *Store) submit(ctx context.Context, it *item) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return idempotency.ErrClosed
	}
	s.queue = append(s.queue, it)
	s.start()
	s.mu.Unlock()

	select {
	case <-it.done:
		return it.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	if !it.taken {
		s.queue = slices.DeleteFunc(s.queue, func(o *item) bool { return o == it })
		s.mu.Unlock()
		return fmt.Errorf("sqlstore: nothing was changed: %w", ctx.Err())
	}
	s.mu.Unlock()
	select {
	case <-it.done: // both were ready
		return it.err
	default:
		return fmt.Errorf("sqlstore: %w: %w", idempotency.ErrAmbiguous, ctx.Err())
	}
}

// start starts a committer if one may help. The caller holds s.mu.
func (s *Store) start() {
	if s.running < s.committers && len(s.queue) > 0 {
		s.running++
		go s.commit()
	}
}

// commit writes groups until none can be formed.
func (s *Store) commit() {
	conn := connection{db: s.config.DB}
	if most := conn.db.Stats().MaxOpenConnections; most == 0 || most > s.committers {
		conn.keep = true // there are others for those that read
	}
	for {
		// Others that are about to submit come first: no timer, and nobody waits alone.
		runtime.Gosched()
		s.mu.Lock()
		group := s.take()
		if len(group) == 0 {
			conn.free() // before Close returns
			s.running--
			s.idle.Broadcast()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()

		left := s.write(group, &conn)

		s.mu.Lock()
		for _, it := range group {
			for id := range it.ids {
				delete(s.inFlight, id)
			}
		}
		s.start() // what waited for these keys may fill more than one group
		s.mu.Unlock()
		for _, it := range left {
			close(it.done)
		}
	}
}

// take takes the next group out of the queue: as many items as fit, in their order,
// without keys that the group of another committer holds, and with at most one transition
// of each key. An item that must wait keeps its place before later ones with its keys,
// so that a batch is not overtaken for ever. The caller holds s.mu.
func (s *Store) take() (group []*item) {
	size, bytes := 0, 0
	settling := map[idempotency.KeyID]bool{}
	waiting := map[idempotency.KeyID]bool{}
	var rest []*item
	for i, it := range s.queue {
		if size > 0 && (size+it.size() > maxGroup || bytes+it.bytes > maxGroupBytes) {
			rest = append(rest, s.queue[i:]...)
			break
		}
		held := it.settle != nil && settling[it.settle.id]
		for id := range it.ids {
			held = held || s.inFlight[id] || waiting[id]
		}
		if held {
			for id := range it.ids {
				waiting[id] = true
			}
			rest = append(rest, it)
			continue
		}
		if it.settle != nil {
			settling[it.settle.id] = true
		}
		it.taken = true
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

// finding is what is known of a key.
type finding struct {
	record idempotency.Record
	exists bool // there is a row
	// refused is the decision of a claim that the record would allow: InProgress if
	// the row is being written, Full, or Undecided if nothing stands against it.
	refused idempotency.Decision
}

// write makes the calls of a group, gives each its outcome or error, and returns those
// whose callers do not know it yet.
func (s *Store) write(group []*item, conn *connection) (left []*item) {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.GroupTimeout)
	defer cancel()
	known, err := s.readFirst(ctx, group)
	if err != nil {
		for _, it := range group {
			it.err = err
		}
		return group
	}
	var settles []*item
	for _, it := range group {
		if it.settle != nil {
			settles = append(settles, it)
		}
	}
	left = group
	// One transaction, and one more each time that the first of several claims of a key
	// does not decide the next.
	for first := true; ; first = false {
		firsts := openClaims(group, known)
		if first { // what needs no write does not wait for one
			left = slices.DeleteFunc(slices.Clone(group), func(it *item) bool {
				answered := it.settle == nil && !slices.ContainsFunc(it.outcomes, isOpen)
				if answered {
					close(it.done)
				}
				return answered
			})
		} else {
			settles = nil
		}
		if len(firsts) == 0 && len(settles) == 0 {
			return left
		}
		if err := s.transaction(ctx, conn, settles, firsts, known); err != nil {
			for _, it := range left {
				switch {
				case it.settle == nil && it.granted:
					it.err = fmt.Errorf("%w: %w", idempotency.ErrAmbiguous, err)
				case it.settle != nil && first || slices.ContainsFunc(it.outcomes, isOpen):
					it.err = err
				}
			}
			return left
		}
	}
}

func isOpen(o idempotency.Outcome) bool { return o.Decision == idempotency.Undecided }

// readFirst reads the records of the keys that are claimed, but for those that a lookup has
// just not found.
func (s *Store) readFirst(ctx context.Context, group []*item) (map[idempotency.KeyID]*finding, error) {
	var ids []idempotency.KeyID
	known := map[idempotency.KeyID]*finding{}
	for _, it := range group {
		for _, c := range it.claims {
			if known[c.id] == nil {
				known[c.id] = &finding{}
				if !s.unseen.take(c.id) {
					ids = append(ids, c.id)
				}
			}
		}
	}
	for page := range pages(ids, idempotency.MaxBatch) {
		s.stats.reads.Add(1)
		records, err := s.engine.read(ctx, s.config.DB, page)
		if err != nil {
			return nil, err
		}
		for id, r := range records {
			*known[id] = finding{record: r, exists: true}
		}
	}
	return known, nil
}

// openClaim is the i-th claim of an item.
type openClaim struct {
	*item
	i int
}

// openClaims gives the claims their outcomes as far as they follow from what is
// known, and returns, for each key, the first claim that needs a write.
func openClaims(group []*item, known map[idempotency.KeyID]*finding) (firsts []openClaim) {
	seen := map[idempotency.KeyID]bool{}
	for _, it := range group {
		for i, c := range it.claims {
			if !isOpen(it.outcomes[i]) || seen[c.id] {
				continue
			}
			f := known[c.id]
			d := idempotency.Decide(f.record, c.Claim, f.record.ReadAt)
			switch {
			case !d.Granted():
				it.outcomes[i] = idempotency.NewOutcome(d, owned(f.record), c.Claim)
			case f.refused == idempotency.Full:
				it.outcomes[i] = idempotency.Outcome{Decision: idempotency.Full}
			case f.refused == idempotency.InProgress:
				if d == idempotency.Renewed {
					it.held = append(it.held, i)
				}
				it.outcomes[i] = idempotency.NewOutcome(idempotency.InProgress, owned(f.record), c.Claim)
			default:
				seen[c.id] = true
				firsts = append(firsts, openClaim{it, i})
			}
		}
	}
	return firsts
}

// owned returns a record that shares no memory with r.
func owned(r idempotency.Record) idempotency.Record {
	r.Body, r.Result.Response = slices.Clone(r.Body), slices.Clone(r.Result.Response)
	return r
}
