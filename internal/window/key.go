package window

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// Key is a deduplication ID in its scope, made by [Window.Key] and valid for that window
// only.
//
// A Key is a fingerprint of 128 bits. The IDs themselves would need twice the memory, and
// the garbage collector would visit each ID. Two IDs with one fingerprint would lose an
// event, so a Key comes from a SHA-256. Among the 21 million IDs of the busiest queue, two
// keys collide with a chance of 1 in 10^24.
//
// The window hashes a random secret before each ID. So a sender cannot choose IDs that all
// fall into the same bucket of the index.
type Key struct {
	high, low uint64
}

type secret [16]byte

func newSecret() (s secret) {
	rand.Read(s[:])
	return s
}

// Key returns the key of a deduplication ID. If the deduplication scope of the queue is
// "messageGroup", the parameter `group` is the message group: the same ID in two groups has
// two keys (F-032). If the scope is "queue", the parameter `group` is empty.
//
// Unlike the other methods, Key may be called concurrently, so its caller needs no lock.
func (w *Window[V]) Key(group, id string) Key {
	var space [len(secret{}) + binary.MaxVarintLen64 + 2*128]byte // the longest group and ID of SQS
	b := append(space[:0], w.secret[:]...)
	// The length keeps different pairs of group and ID apart.
	b = binary.AppendUvarint(b, uint64(len(group)))
	b = append(b, group...)
	b = append(b, id...)
	sum := sha256.Sum256(b)
	return Key{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
}

// The bits of a key are random, and each use takes separate bits: the shard and the tag
// come from the high half, the two buckets from the low half.

func (k Key) shard() int { return int(k.high >> (64 - shardBits)) }

// tag is never zero, because zero marks an empty slot.
func (k Key) tag() uint32 { return uint32(k.high&0xfff)%(1<<tagBits-1) + 1 }

func (k Key) buckets(n int) (a, b uint32) {
	return uint32(k.low & 0xffffffff * uint64(n) >> 32), uint32(k.low >> 32 * uint64(n) >> 32)
}
