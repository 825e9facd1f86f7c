package lint

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The expression says in one line what identityName looks for. It is too slow
// for each attribute of each send.
var identityExpression = regexp.MustCompile(
	`(?i)(event|message|msg|dedup(e|lication)?|unique(ness)?|idempotency|correlation|request|txn|transaction|job|command)[_.-]?(id|key|uuid|name)$|uuid$`)

func TestIdentityNameIsTheExpression(t *testing.T) {
	prefixes := []string{"", "x", "original_", "Kfm", "_watermill_"}
	stems := []string{
		"event", "Message", "msg", "DEDUP", "dedupe", "Deduplication", "unique", "Uniqueness", "idempotency", "Correlation", "request",
		"txn", "transaction", "job", "command", "aggregate", "order", "test", "shard", "group", "trace", "uniquely", "",
	}
	separators := []string{"", "_", "-", ".", "__", " ", "/"}
	nouns := []string{"id", "Id", "ID", "key", "Key", "uuid", "UUID", "name", "ids", "token", "hash", ""}
	matches := 0
	for _, prefix := range prefixes {
		for _, stem := range stems {
			for _, separator := range separators {
				for _, noun := range nouns {
					name := prefix + stem + separator + noun
					want := identityExpression.MatchString(name)
					if want {
						matches++
					}
					assert.Equal(t, want, identityName(name), "%q", name)
				}
			}
		}
	}
	assert.Greater(t, matches, 1000, "the lists have to make names of both kinds")

	for _, name := range []string{"test-key", "aggregate_id", "id", "key", "name", "tag", "MessageGroupId", "trace_id", "user_id"} {
		assert.False(t, identityName(name), name)
	}
}
