package lint

import (
	"fmt"
	"regexp"
	"strconv"
)

// Observation is one observed behaviour of SQS, with the number used by comments and tests.
type Observation struct {
	ID   string // such as "F-011"
	Text string // one sentence, without a full stop
}

var factRange = regexp.MustCompile(`F-(\d{3})(?: to F-(\d{3}))?`)

// Observations returns the facts about SQS whose numbers occur in r.Source, in the order of their
// numbers. The caller owns the slice.
func (r Rule) Observations() []Observation {
	var found []Observation
	for _, m := range factRange.FindAllStringSubmatch(r.Source, -1) {
		first, _ := strconv.Atoi(m[1])
		last := first
		if m[2] != "" {
			last, _ = strconv.Atoi(m[2])
		}
		for n := first; n <= last; n++ {
			id := fmt.Sprintf("F-%03d", n)
			if text, ok := facts[id]; ok {
				found = append(found, Observation{id, text})
			}
		}
	}
	return found
}

// facts has a text for each fact named by a rule.
var facts = map[string]string{
	"F-006": "with the scope of a queue, the same deduplication ID in another group is a duplicate",
	"F-007": "the stored message keeps the first body and the first attributes; a duplicate changes nothing",
	"F-011": "the content-based deduplication ID is the SHA-256 of the body",
	"F-012": "attributes take no part in the content-based deduplication ID",
	"F-013": "an explicit deduplication ID replaces the hash of the body",
	"F-014": "an explicit ID with the value of the hash is the same ID",
	"F-015": "content-based deduplication works between the entries of one batch",
	"F-016": "SQS refuses a message that has neither an explicit ID nor content-based deduplication",
	"F-017": "a deduplication ID has 1 to 128 ASCII letters, digits and punctuation marks; SQS refuses an empty one",
	"F-018": "a group ID has 1 to 128 ASCII letters, digits and punctuation marks",
	"F-019": "SQS forgets a deduplication ID after five minutes",
	"F-023": "a refused send claims no deduplication ID",
	"F-024": "SQS compares deduplication IDs byte by byte",
	"F-030": "with the scope of a message group, the same ID in two groups is two messages",
	"F-044": "each receive gives a message a new receipt handle",
	"F-050": "SQS refuses a whole batch if one entry has no group",
	"F-052": "SQS refuses a whole batch if one entry has a delay",
	"F-058": "one entry of a batch may fail alone: the answer lists it in Failed, and the call returns no error",
	"F-060": "an answer without failed entries has no Failed",
	"F-070": "SQS refuses a message to a FIFO queue without a group",
	"F-071": "SQS refuses an empty body",
	"F-072": "a body has only the characters that XML 1.0 allows",
	"F-073": "body and attributes together have at most 1,048,576 bytes, or the queue's own limit",
	"F-074": "SQS refuses a delay of a message to a FIFO queue",
	"F-075": "a delay of zero does not replace the delay of the queue",
	"F-076": "the delay of a FIFO queue works for each message",
	"F-077": "SQS refuses empty attribute values",
	"F-078": "SQS checks names, types and characters of attributes",
	"F-079": "a message has at most ten attributes",
	"F-091": "a message in flight blocks the later messages of its group",
}
