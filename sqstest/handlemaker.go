package sqstest

// Deviations from AWS in this file: none. Handles are opaque (F-044).

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"hash/maphash"
	"strings"
)

const (
	handlePrefix = "AQEB"
	handleRandom = 242 // number of random bytes; handles are then as long as AWS's (F-044)
)

// handleMaker makes and recognises the receipt handles of one queue. A handle contains the
// message's sequence number and a hash with the queue's seed. The hash distinguishes the
// handles of forgotten messages from invented handles.
type handleMaker struct{ seed maphash.Seed }

func newHandleMaker() handleMaker { return handleMaker{maphash.MakeSeed()} }

// handle returns a new handle on every call.
func (h handleMaker) handle(sequence uint64) string {
	b := make([]byte, handleRandom, handleRandom+16)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	b = binary.BigEndian.AppendUint64(b, sequence)
	b = binary.BigEndian.AppendUint64(b, maphash.Bytes(h.seed, b))
	return handlePrefix + base64.StdEncoding.EncodeToString(b)
}

// sequenceOf returns the sequence number in the handle, and whether this maker made the
// handle.
func (h handleMaker) sequenceOf(handle string) (uint64, bool) {
	text, ok := strings.CutPrefix(handle, handlePrefix)
	b, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil || len(b) != handleRandom+16 {
		return 0, false
	}
	sealed, seal := b[:handleRandom+8], b[handleRandom+8:]
	return binary.BigEndian.Uint64(sealed[handleRandom:]), maphash.Bytes(h.seed, sealed) == binary.BigEndian.Uint64(seal)
}
