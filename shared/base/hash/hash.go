// Package hash spreads texts over numbers, for shares and delays that can be repeated.
package hash

import "hash/fnv"

// Of returns the hash of a text: FNV-1a with the finalizer of MurmurHash3. FNV alone gives similar
// values to texts that differ only in their last characters. It is not for secrets.
func Of(text string) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // never fails
	h := sum.Sum64()
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
