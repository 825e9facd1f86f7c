package idempotency

// usualQuota is the default quota of a store that is large enough for it: it covers what a
// producer with the default configuration has under way at a time (100 events in 10
// requests, and 128 claimed in advance).
const usualQuota = 256

// DefaultQuota returns the quota of a store without a configured quota: a sixth of the
// capacity, but at least 256 or, if this is less, half of the capacity, rounded up. The
// unfinished operations of one scope therefore never fill a store with room for two.
//
// A quota limits the unfinished operations of one scope. An operation counts while its
// status is [StatusRunning], however long this takes. Without a quota, one tenant with failing
// requests could fill the store for all tenants.
func DefaultQuota(capacity int64) int64 {
	return max(capacity/6, min(usualQuota, (capacity+1)/2))
}
