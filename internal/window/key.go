package window

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// Key is a deduplication ID in its scope, as [Window.Key] makes it. It is of use
// with that window alone.
//
// It is a fingerprint: a window that kept the texts would need twice the memory
// and have the garbage collector look at each. Two IDs with one fingerprint
// would be one event lost, so it is not a fast hash but the first 128 bits of
// SHA-256: among the 21 million IDs of the busiest queue the chance of any two
// meeting is 1 in 10^24. The secret in front keeps a sender who chooses IDs from
// aiming them at one place of the index.
type Key struct {
	high, low uint64
}

type secret [16]byte

func newSecret() (s secret) {
	rand.Read(s[:])
	return s
}

// Key returns the key of a deduplication ID. Group is empty where the scope is
// the queue; with the scope messageGroup every pair has a separate window
// (F-032): the length of the group is part of the key, so that no two pairs run
// together. Unlike the other methods it may be called concurrently, so that
// owners can hash before they lock.
func (w *Window[V]) Key(group, id string) Key {
	var space [len(secret{}) + binary.MaxVarintLen64 + 2*128]byte // what SQS allows of group and ID
	b := append(space[:0], w.secret[:]...)
	b = binary.AppendUvarint(b, uint64(len(group)))
	b = append(b, group...)
	b = append(b, id...)
	sum := sha256.Sum256(b)
	return Key{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
}

// The bits of a key are random, so that each use can take bits of its own: the
// shard and the tag come from the high half, the two buckets from the low.

func (k Key) shard() int { return int(k.high >> (64 - shardBits)) }

// tag is never zero: a slot of zero is empty.
func (k Key) tag() uint32 { return uint32(k.high&0xfff)%(1<<tagBits-1) + 1 }

func (k Key) buckets(n int) (a, b uint32) {
	return uint32(k.low & 0xffffffff * uint64(n) >> 32), uint32(k.low >> 32 * uint64(n) >> 32)
}
