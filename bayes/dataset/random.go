package dataset

import (
	"encoding/binary"
	"math/rand/v2"
)

// newRand is a generator that depends on (purpose, seed, counter) only, which are the key of ChaCha8: streams with
// neighbouring seeds or counters are as independent as any two. purpose is cut to 16 bytes.
func newRand(purpose string, seed, counter uint64) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[0:], seed)
	binary.LittleEndian.PutUint64(key[8:], counter)
	copy(key[16:], purpose)
	return rand.New(rand.NewChaCha8(key))
}
