package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxSealed is the largest number of entries that stores put under one seal.
const MaxSealed = 1000

// Leaf stands for an entry in a seal.
type Leaf struct {
	Place
	Hash Hash
}

// leafSize is the number of bytes of a leaf.
const leafSize = 16 + sha256.Size

// Seal fixes the entries of an epoch from the end of the seal before it to End.
type Seal struct {
	// N counts from 1 without a gap.
	N int64

	// Epoch counts the database servers in which the ledger has lived: transaction
	// numbers begin again in a server into which it was restored.
	Epoch int64

	// Fence is that of the sealer, or 0 where the writer seals.
	Fence int64

	// End is the first place of the epoch that this seal does not cover. No entry is
	// added before it any more.
	End Place

	// At is when it was sealed, in whole microseconds, on the clock of the store.
	At time.Time

	Leaves   []Leaf
	Previous Hash // of the seal before it, zero for the first
	Hash     Hash // as it was written; see [Seal.Sum]
}

// Head returns the head of a ledger that ends with the seal.
func (s Seal) Head() Head { return Head{N: s.N, Hash: s.Hash} }

// Sum returns the SHA-256 of the text "sqsfifo ledger seal 1", of N, Epoch, Fence, End
// (transaction and seq), At, the leaves as [AppendLeaves] writes them, and Previous, in
// the form of [Entry.Sum].
func (s Seal) Sum() Hash {
	b := make([]byte, 0, 160+leafSize*len(s.Leaves))
	b = appendText(b, "sqsfifo ledger seal 1")
	b = appendInt(b, s.N, s.Epoch, s.Fence, s.End.Transaction, s.End.Seq, s.At.UnixMicro())
	b = appendInt(b, int64(leafSize*len(s.Leaves)))
	b = AppendLeaves(b, s.Leaves)
	b = appendText(b, string(s.Previous[:]))
	return sha256.Sum256(b)
}

// AppendLeaves appends each leaf as 48 bytes: transaction and seq in eight bytes each, in
// big-endian order, and the hash.
func AppendLeaves(b []byte, leaves []Leaf) []byte {
	for _, l := range leaves {
		b = appendInt(b, l.Transaction, l.Seq)
		b = append(b, l.Hash[:]...)
	}
	return b
}

// ParseLeaves is the inverse of [AppendLeaves].
func ParseLeaves(b []byte) ([]Leaf, error) {
	if len(b)%leafSize != 0 {
		return nil, fmt.Errorf("leaves of %d bytes, want a multiple of %d", len(b), leafSize)
	}
	leaves := make([]Leaf, 0, len(b)/leafSize)
	for ; len(b) > 0; b = b[leafSize:] {
		leaves = append(leaves, Leaf{
			Place: Place{Transaction: int64(binary.BigEndian.Uint64(b)), Seq: int64(binary.BigEndian.Uint64(b[8:]))},
			Hash:  Hash(b[16:leafSize]),
		})
	}
	return leaves, nil
}

// Head stands for a ledger up to a seal. Keep heads where those who can write to the
// database cannot: in a log, a ticket, another account. The zero Head is that of an
// empty ledger.
type Head struct {
	N    int64
	Hash Hash
}

// String returns the number of the seal, a colon, and the hash in hexadecimal.
func (h Head) String() string { return strconv.FormatInt(h.N, 10) + ":" + h.Hash.String() }

// ParseHead is the inverse of [Head.String].
func ParseHead(s string) (Head, error) {
	number, hash, found := strings.Cut(s, ":")
	n, err := strconv.ParseInt(number, 10, 64)
	if !found || err != nil || n < 0 || strconv.FormatInt(n, 10) != number {
		return Head{}, fmt.Errorf("ledger: head %q: want the number of a seal, a colon, and its hash, as Head.String writes it", s)
	}
	h := Head{N: n}
	if err := h.Hash.UnmarshalText([]byte(hash)); err != nil {
		return Head{}, fmt.Errorf("ledger: head %q: %w", s, err)
	}
	if (h.N == 0) != (h.Hash == Hash{}) {
		return Head{}, fmt.Errorf("ledger: head %q: only an empty ledger has the number 0 and a hash of zeros", s)
	}
	return h, nil
}

// MarshalText returns what String does.
func (h Head) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText is [ParseHead].
func (h *Head) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHead(string(text))
	return err
}
