// Package seeded has the random source of measurements whose results are compared.
package seeded

import (
	"encoding/hex"
	"math/rand/v2"
	"sync"
)

// Random returns the same numbers each time. It implements runs.Random and io.Reader, and is safe
// for concurrent use.
type Random struct {
	mu   sync.Mutex
	from *rand.ChaCha8
}

// New returns a random source.
func New() *Random { return &Random{from: rand.NewChaCha8([32]byte{1})} }

// Read implements io.Reader. It fills p.
func (r *Random) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from.Read(p)
}

// Uint64 returns 64 random bits.
func (r *Random) Uint64() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from.Uint64()
}

// Float64 returns a random number, at least 0 and less than 1.
func (r *Random) Float64() float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// Hex returns n random bytes in 2n hexadecimal digits.
func (r *Random) Hex(n int) string {
	text := make([]byte, n)
	_, _ = r.Read(text) // it never fails
	return hex.EncodeToString(text)
}
