package sqstest_test

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kansas-frontier-matrix/sqsfifo/sqstest"
)

var (
	explicitIDs = sqstest.Config{DisableContentBasedDeduplication: true}
	groupScope  = sqstest.Config{DeduplicationScope: sqstest.ScopeMessageGroup}
)

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func md5hex(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// requireOriginal compares the answers to two sends. It asserts that the second send was
// suppressed as a duplicate of the first: both answers have the same message ID and the same
// sequence number.
func (d testQueue) requireOriginal(want, got *sqs.SendMessageOutput) {
	d.Helper()
	assert.Equal(d, *want.MessageId, *got.MessageId)
	assert.Equal(d, *want.SequenceNumber, *got.SequenceNumber)
}

func (d testQueue) fresh(before, got *sqs.SendMessageOutput) {
	d.Helper()
	assert.NotEqual(d, *before.MessageId, *got.MessageId)
	assert.Greater(d, *got.SequenceNumber, *before.SequenceNumber)
}

func TestDeduplication(t *testing.T) {
	hold(t, []fact{
		{"F-001 a duplicate is answered with the original's identity", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			time.Sleep(time.Minute)
			d.requireOriginal(first, d.send(msg{body: "a", group: "g"}))
			assert.Equal(d, []string{"a"}, d.stored())
		}},
		{"F-002 digests are of the current request", explicitIDs, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g", id: "1", attributes: map[string]string{"k": "x"}})
			again := d.send(msg{body: "b", group: "g", id: "1"})
			d.requireOriginal(first, again)
			assert.Equal(d, md5hex("b"), *again.MD5OfMessageBody)
			assert.Nil(d, again.MD5OfMessageAttributes)
		}},
		{"F-003 duplicates in a batch are successful, in request order", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "old", group: "g"})
			out := d.batch(msg{body: "new", group: "g"}.entry("1"), msg{body: "old", group: "g"}.entry("2"), msg{body: "new", group: "g"}.entry("3"))
			require.Len(d, out.Successful, 3)
			assert.Nil(d, out.Failed)
			assert.Equal(d, *first.MessageId, *out.Successful[1].MessageId)
			assert.Equal(d, *out.Successful[0].MessageId, *out.Successful[2].MessageId)
			for i, id := range []string{"1", "2", "3"} {
				assert.Equal(d, id, *out.Successful[i].Id)
			}
		}},
		{"F-004 a suppressed send uses up no sequence number", sqstest.Config{}, func(d testQueue) {
			out := d.batch(msg{body: "a", group: "g"}.entry("1"), msg{body: "a", group: "g"}.entry("2"), msg{body: "b", group: "g"}.entry("3"))
			assert.Equal(d, *out.Successful[0].SequenceNumber, *out.Successful[1].SequenceNumber)
			assert.EqualValues(d, 1, distance(out.Successful[1].SequenceNumber, out.Successful[2].SequenceNumber))
		}},
		{"F-005 F-021 receive and delete do not free the id", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			d.delete(d.receive(1)...)
			d.requireOriginal(first, d.send(msg{body: "a", group: "g"}))
			assert.Empty(d, d.receive(1))
		}},
		{"F-006 queue scope: another group is suppressed too", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			d.requireOriginal(first, d.send(msg{body: "a", group: "h"}))
			assert.Equal(d, "g", d.queue.Messages()[0].GroupID)
		}},
		{"F-007 the first body and attributes stay", explicitIDs, func(d testQueue) {
			d.send(msg{body: "first", group: "g", id: "1", attributes: map[string]string{"k": "first"}})
			d.send(msg{body: "second", group: "g", id: "1", attributes: map[string]string{"k": "second"}})
			got := d.receiveWith(sqs.ReceiveMessageInput{MaxNumberOfMessages: 10, MessageAttributeNames: []string{"All"}})
			require.Equal(d, []string{"first"}, bodies(got))
			assert.Equal(d, "first", *got[0].MessageAttributes["k"].StringValue)
		}},
		{"F-011 the id is the lower-case hex SHA-256 of the body", sqstest.Config{}, func(d testQueue) {
			d.send(msg{body: "hello", group: "g"})
			got := d.receiveWith(sqs.ReceiveMessageInput{MessageSystemAttributeNames: []types.MessageSystemAttributeName{"All"}})
			assert.Equal(d, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", got[0].Attributes["MessageDeduplicationId"])
		}},
		{"F-012 attributes take no part", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g", attributes: map[string]string{"k": "x"}})
			again := d.send(msg{body: "a", group: "g", attributes: map[string]string{"tag": "one"}})
			d.requireOriginal(first, again)
			assert.Equal(d, "0c5a8880fe44ffd58b3f7117d182b347", *again.MD5OfMessageAttributes)
		}},
		{"F-013 an explicit id overrides the hash", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g", id: "1"})
			d.fresh(first, d.send(msg{body: "a", group: "g", id: "2"}))
			d.requireOriginal(first, d.send(msg{body: "b", group: "g", id: "1"}))
		}},
		{"F-014 the hash as explicit id is the same id", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			d.requireOriginal(first, d.send(msg{body: "other", group: "g", id: sha("a")}))
			second := d.send(msg{body: "explicit first", group: "g", id: sha("b")})
			d.requireOriginal(second, d.send(msg{body: "b", group: "g"}))
		}},
		{"F-015 content-based inside one batch", sqstest.Config{}, func(d testQueue) {
			out := d.batch(msg{body: "a", group: "g"}.entry("1"), msg{body: "a", group: "g"}.entry("2"))
			assert.Equal(d, *out.Successful[0].MessageId, *out.Successful[1].MessageId)
			assert.Equal(d, []string{"a"}, d.stored())
		}},
		{"F-016 neither id nor content-based", explicitIDs, func(d testQueue) {
			_, err := d.trySend(msg{body: "a", group: "g"})
			d.refused(err, "InvalidParameterValue", "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
		}},
		{"F-019 the interval is five minutes", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			time.Sleep(interval - 1)
			d.requireOriginal(first, d.send(msg{body: "a", group: "g"}))
			time.Sleep(time.Nanosecond)
			d.fresh(first, d.send(msg{body: "a", group: "h"}))
			assert.Equal(d, []string{"a", "a"}, bodies(d.receive(10)))
		}},
		{"F-020 a duplicate does not restart the interval", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			time.Sleep(interval - time.Second)
			d.requireOriginal(first, d.send(msg{body: "a", group: "g"}))
			time.Sleep(time.Second)
			d.fresh(first, d.send(msg{body: "a", group: "g"}))
		}},
		{"F-020 the option: a duplicate restarts the interval", sqstest.Config{DuplicateRestartsInterval: true}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			for range 3 {
				time.Sleep(interval - 1)
				d.requireOriginal(first, d.send(msg{body: "a", group: "g"}))
			}
			require.Len(d, d.queue.Suppressed(), 3)
			assert.True(d, d.queue.Suppressed()[2].Until.Equal(time.Now().Add(interval)))
			time.Sleep(interval)
			d.fresh(first, d.send(msg{body: "a", group: "g"}))
		}},
		{"F-022 a purge frees the ids", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			require.NoError(d, d.purge())
			d.fresh(first, d.send(msg{body: "a", group: "g"}))
		}},
		{"F-022 the option: a purge keeps the ids", sqstest.Config{PurgeKeepsIDs: true}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			require.NoError(d, d.purge())
			d.requireOriginal(first, d.send(msg{body: "a", group: "g"}))
			assert.Empty(d, d.receive(1))
		}},
		{"F-025 content-based deduplication can be switched", explicitIDs, func(d testQueue) {
			_, err := d.trySend(msg{body: "a", group: "g"})
			require.Error(d, err)
			require.NoError(d, d.set("ContentBasedDeduplication", "true"))
			first := d.send(msg{body: "a", group: "g"})
			d.requireOriginal(first, d.send(msg{body: "a", group: "g"}))
			require.NoError(d, d.set("ContentBasedDeduplication", "false"))
			_, err = d.trySend(msg{body: "b", group: "g"})
			d.refused(err, "InvalidParameterValue", "The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly")
		}},
		{"F-031 group scope without FifoThroughputLimit, also for content-based ids", groupScope, func(d testQueue) {
			assert.Equal(d, "perQueue", d.attribute("FifoThroughputLimit"))
			d.send(msg{body: "a", group: "g"})
			d.send(msg{body: "a", group: "h"})
			assert.Equal(d, []string{"a", "a"}, d.stored())
		}},
		{"F-033 a changed scope shows at once and acts after 60 s", sqstest.Config{}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			require.NoError(d, d.set("DeduplicationScope", "messageGroup", "FifoThroughputLimit", "perMessageGroupId"))
			assert.Equal(d, "messageGroup", d.attribute("DeduplicationScope"))
			time.Sleep(time.Minute - 1)
			d.requireOriginal(first, d.send(msg{body: "a", group: "h"}))
			time.Sleep(time.Nanosecond)
			d.fresh(first, d.send(msg{body: "a", group: "h"}))
			require.NoError(d, d.set("DeduplicationScope", "queue", "FifoThroughputLimit", "perQueue"))
			second := d.send(msg{body: "b", group: "g"})
			d.fresh(second, d.send(msg{body: "b", group: "h"}))
			assert.Equal(d, "queue", d.attribute("DeduplicationScope"))
		}},
		{"F-033 the option: a changed scope acts at once", sqstest.Config{ScopePropagation: -1}, func(d testQueue) {
			first := d.send(msg{body: "a", group: "g"})
			require.NoError(d, d.set("DeduplicationScope", "messageGroup"))
			d.fresh(first, d.send(msg{body: "a", group: "h"}))
		}},
		{"F-034 perMessageGroupId needs the scope messageGroup", sqstest.Config{}, func(d testQueue) {
			err := d.set("FifoThroughputLimit", "perMessageGroupId")
			var modelled *types.InvalidAttributeValue
			require.ErrorAs(d, err, &modelled)
			assert.Equal(d, "perQueue", d.attribute("FifoThroughputLimit"))
			require.NoError(d, d.set("FifoThroughputLimit", "perMessageGroupId", "DeduplicationScope", "messageGroup"))
			require.Error(d, d.set("DeduplicationScope", "queue"))
			d.refused(d.set("DeduplicationScope", "group"), "InvalidAttributeValue", "Invalid value for the parameter DeduplicationScope.")
		}},
		{"F-023 a refused send claims nothing", sqstest.Config{MaximumMessageSize: 1024}, func(d testQueue) {
			_, err := d.trySend(msg{body: "small", group: "g", id: "1", attributes: map[string]string{"k": strings.Repeat("x", 1024)}})
			require.Error(d, err)
			_, err = d.tryBatch(msg{body: "a", group: "g", id: "1"}.entry("1"), msg{body: "b"}.entry("2"))
			require.Error(d, err)
			out := d.batch(msg{body: strings.Repeat("x", 1025), group: "g", id: "1"}.entry("1"))
			require.Len(d, out.Failed, 1)
			d.send(msg{body: "small", group: "g", id: "1"})
			assert.Equal(d, []string{"small"}, d.stored())
			assert.Empty(d, d.queue.Suppressed())
		}},
		{"F-024 ids are compared byte by byte", sqstest.Config{}, func(d testQueue) {
			d.sendAll("g", `{"a":1}`, `{"a": 1}`, "\u00e9", "e\u0301", "A", "a")
			assert.Len(d, d.stored(), 6)
		}},
		{"F-030 group scope: the same id in two groups is two messages", groupScope, func(d testQueue) {
			a := d.send(msg{body: "a", group: "g"})
			b := d.send(msg{body: "a", group: "h"})
			d.fresh(a, b)
			d.requireOriginal(a, d.send(msg{body: "a", group: "g"}))
			d.requireOriginal(b, d.send(msg{body: "a", group: "h"}))
		}},
		{"F-032 group and id do not run together", groupScope, func(d testQueue) {
			d.send(msg{body: "1", group: "a", id: "b|c"})
			d.send(msg{body: "2", group: "a|b", id: "c"})
			d.send(msg{body: "3", group: "a:b", id: "c"})
			d.send(msg{body: "4", group: "a", id: "b:c"})
			assert.Len(d, d.stored(), 4)
		}},
	})
}

// distance returns the second sequence number minus the first.
func distance(from, to *string) int64 {
	a, _ := new(big.Int).SetString(*from, 10)
	b, _ := new(big.Int).SetString(*to, 10)
	return b.Sub(b, a).Int64()
}

func TestSequenceNumbersAndIDs(t *testing.T) {
	hold(t, []fact{
		{"F-008 2^64 + SentTimestamp * 256000 + n", sqstest.Config{}, func(d testQueue) {
			time.Sleep(1234567 * time.Microsecond)
			out := d.batch(msg{body: "a", group: "g"}.entry("1"), msg{body: "b", group: "h"}.entry("2"))
			want := new(big.Int).Lsh(big.NewInt(1), 64)
			want.Add(want, big.NewInt(time.Now().UnixMilli()*256_000))
			assert.Equal(d, want.String(), *out.Successful[0].SequenceNumber)
			assert.EqualValues(d, 1, distance(out.Successful[0].SequenceNumber, out.Successful[1].SequenceNumber))
			assert.Len(d, *out.Successful[0].SequenceNumber, 20)
		}},
		{"F-040 F-041 strictly increasing, across groups", sqstest.Config{}, func(d testQueue) {
			last := d.send(msg{body: "0", group: "g"})
			for _, b := range []string{"1", "2", "3", "4"} {
				next := d.send(msg{body: b, group: "g" + b})
				d.fresh(last, next)
				last = next
				time.Sleep(700 * time.Microsecond)
			}
		}},
		{"F-042 the same on every receive", sqstest.Config{}, func(d testQueue) {
			sent := d.send(msg{body: "a", group: "g"})
			for range 2 {
				got := d.receiveWith(sqs.ReceiveMessageInput{MessageSystemAttributeNames: []types.MessageSystemAttributeName{"SequenceNumber"}, VisibilityTimeout: 1})
				assert.Equal(d, map[string]string{"SequenceNumber": *sent.SequenceNumber}, got[0].Attributes)
				time.Sleep(time.Second)
			}
		}},
		{"F-043 entries of a batch are consecutive in one millisecond", sqstest.Config{}, func(d testQueue) {
			out := d.batch(msg{body: "a", group: "g"}.entry("1"), msg{body: "b", group: "g"}.entry("2"), msg{body: "c", group: "h"}.entry("3"))
			for i := range 2 {
				assert.EqualValues(d, 1, distance(out.Successful[i].SequenceNumber, out.Successful[i+1].SequenceNumber))
			}
			stored := d.queue.Messages()
			assert.Equal(d, stored[0].AcceptedAt, stored[2].AcceptedAt)
		}},
		{"F-044 message ids are UUID v4, handles long and new each time", sqstest.Config{}, func(d testQueue) {
			sent := d.send(msg{body: "a", group: "g"})
			id, err := uuid.Parse(*sent.MessageId)
			require.NoError(d, err)
			assert.EqualValues(d, 4, id.Version())
			assert.Equal(d, id.String(), *sent.MessageId)
			first := d.receiveWith(sqs.ReceiveMessageInput{VisibilityTimeout: 1})
			time.Sleep(time.Second)
			second := d.receive(1)
			assert.NotEqual(d, *first[0].ReceiptHandle, *second[0].ReceiptHandle)
			assert.Regexp(d, `^AQEB[A-Za-z0-9+/=]{340,408}$`, *second[0].ReceiptHandle)
		}},
	})
}

func TestSuppressedSaysWhy(t *testing.T) {
	bothAPIs(t, groupScope, func(d testQueue) {
		first := d.send(msg{body: "a", group: "g", attributes: map[string]string{"k": "first"}})
		accepted := time.Now()
		time.Sleep(2 * time.Minute)
		d.send(msg{body: "a", group: "g", attributes: map[string]string{"k": "lost"}})
		d.send(msg{body: "b", group: "g", id: sha("a")})

		got := d.queue.Suppressed()
		require.Len(d, got, 2)
		assert.Equal(d, *first.MessageId, got[0].Original.MessageID)
		assert.Equal(d, *first.SequenceNumber, got[0].Original.SequenceNumber)
		assert.Equal(d, sha("a"), got[0].DeduplicationID)
		assert.True(d, got[0].ContentBased)
		assert.Equal(d, "lost", *got[0].Attributes["k"].StringValue)
		assert.Equal(d, sqstest.ScopeMessageGroup, got[0].Scope)
		assert.True(d, got[0].Until.Equal(accepted.Add(interval)))
		assert.True(d, got[0].At.Equal(accepted.Add(2*time.Minute)))
		assert.Equal(d, "suppressed as a duplicate of message "+*first.MessageId+": the SHA-256 of the body, "+sha("a")+
			`, was accepted in group "g" 2m0s before; accepted again in 3m0s`, got[0].String())

		assert.False(d, got[1].ContentBased)
		assert.Equal(d, "b", got[1].Body)

		got[0].Attributes["k"] = stringAttribute("changed by the caller")
		got[0].Original.Attributes["k"] = stringAttribute("changed by the caller")
		assert.Equal(d, "lost", *d.queue.Suppressed()[0].Attributes["k"].StringValue)
		assert.Equal(d, "first", *d.queue.Messages()[0].Attributes["k"].StringValue)
	})
}
