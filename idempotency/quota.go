package idempotency

// leastQuota is the smallest default quota.
const leastQuota = 64

// DefaultQuota returns the quota of a store without a configured quota: a sixth of the
// capacity, and at least 64.
//
// A quota limits the unfinished operations of one scope. An operation counts while its
// status is [StatusRunning], however long this takes. Without a quota, one tenant with failing
// requests could fill the store for all tenants.
func DefaultQuota(capacity int64) int64 { return max(leastQuota, capacity/6) }
