package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxSealed is the largest number of entries that a store covers by one [Seal].
const MaxSealed = 1000

// SealedEntry stands for one entry in a [Seal]: the entry's position and its hash.
type SealedEntry struct {
	Position
	Hash Hash
}

// sealedEntrySize is the encoded size of a SealedEntry in bytes.
const sealedEntrySize = 16 + sha256.Size

// Seal protects consecutive entries of the ledger: it lists the position and the hash of
// each entry. The entries follow the entries of the previous seal, and belong to one
// epoch.
type Seal struct {
	// N counts from 1 without gaps.
	N int64

	// Epoch grows when the ledger was restored to another database server, or when the
	// server's transaction numbers went back. A [Position] of one epoch is not comparable
	// with a Position of another epoch, because transaction numbers started again.
	Epoch int64

	// Fence is the number of the sealing process, and grows whenever another process
	// takes over. It is 0 if each transaction seals its own entries.
	Fence int64

	// Listed entries have positions before End. Later entries of this epoch have positions at
	// or after End.
	End Position

	// At is the time of sealing in whole microseconds, by the store's clock.
	At time.Time

	Entries  []SealedEntry
	Previous Hash // hash of the previous seal, zero in the first
	Hash     Hash // the recorded hash; see [Seal.Sum]
}

// Head returns the seal's number and hash.
func (s Seal) Head() Head { return Head{N: s.N, Hash: s.Hash} }

// Sum returns the SHA-256 of the text "sqsfifo ledger seal 1", N, Epoch, Fence, End
// (transaction and seq), At, the entries in the form of [AppendSealedEntries], and Previous.
// Values are encoded like those of [Entry.Sum].
func (s Seal) Sum() Hash {
	b := make([]byte, 0, 160+sealedEntrySize*len(s.Entries))
	b = appendText(b, "sqsfifo ledger seal 1")
	b = appendInt(b, s.N, s.Epoch, s.Fence, s.End.Transaction, s.End.Seq, s.At.UnixMicro())
	b = appendInt(b, int64(sealedEntrySize*len(s.Entries)))
	b = AppendSealedEntries(b, s.Entries)
	b = appendText(b, string(s.Previous[:]))
	return sha256.Sum256(b)
}

// AppendSealedEntries appends 48 bytes per entry: Transaction and Seq in eight big-endian bytes
// each, and the hash.
func AppendSealedEntries(b []byte, leaves []SealedEntry) []byte {
	for _, l := range leaves {
		b = appendInt(b, l.Transaction, l.Seq)
		b = append(b, l.Hash[:]...)
	}
	return b
}

// ParseSealedEntries is the inverse of [AppendSealedEntries].
func ParseSealedEntries(b []byte) ([]SealedEntry, error) {
	if len(b)%sealedEntrySize != 0 {
		return nil, fmt.Errorf("leaves of %d bytes, want a multiple of %d", len(b), sealedEntrySize)
	}
	leaves := make([]SealedEntry, 0, len(b)/sealedEntrySize)
	for ; len(b) > 0; b = b[sealedEntrySize:] {
		leaves = append(leaves, SealedEntry{
			Position: Position{Transaction: int64(binary.BigEndian.Uint64(b)), Seq: int64(binary.BigEndian.Uint64(b[8:]))},
			Hash:     Hash(b[16:sealedEntrySize]),
		})
	}
	return leaves, nil
}

// Head is the number and hash of a seal. It identifies a ledger up to this seal, because
// the hash depends on all earlier seals and entries. The zero Head belongs to an empty
// ledger.
//
// Keep heads out of reach of the database's writers: in a log, a ticket or another
// account.
type Head struct {
	N    int64
	Hash Hash
}

// String returns the seal's number, a colon, and the hash in hexadecimal.
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

// MarshalText returns h.String().
func (h Head) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText parses text with [ParseHead].
func (h *Head) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHead(string(text))
	return err
}
