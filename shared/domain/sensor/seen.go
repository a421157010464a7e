package sensor

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// MaxObjects is the largest number of objects under the prefix of a sensor. Shards is the number of
// parts of their memory, at most about 110 KB each.
const (
	MaxObjects = 100_000
	Shards     = 8
)

// Mark is an object with its content in the memory of a sensor: 64 bits of a hash.
type Mark uint64

// Mark returns the mark of an object.
func (o Object) Mark() Mark {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", o.Key, o.ETag))
	return Mark(binary.BigEndian.Uint64(sum[:]))
}

// Seen is the memory of a sensor: the objects that have their run, or are ignored. The zero value
// is empty.
type Seen struct {
	shards  [Shards]map[Mark]bool
	changed [Shards]bool
}

func (m Mark) shard() int { return int(m % Shards) }

// Has reports whether an object is remembered.
func (s *Seen) Has(m Mark) bool { return s.shards[m.shard()][m] }

// Add remembers an object.
func (s *Seen) Add(m Mark) {
	if s.Has(m) {
		return
	}
	n := m.shard()
	if s.shards[n] == nil {
		s.shards[n] = map[Mark]bool{}
	}
	s.shards[n][m], s.changed[n] = true, true
}

// Keep forgets every object that is not listed.
func (s *Seen) Keep(listed map[Mark]bool) {
	for n, shard := range s.shards {
		for m := range shard {
			if !listed[m] {
				delete(shard, m)
				s.changed[n] = true
			}
		}
	}
}

// Len returns the number of remembered objects.
func (s *Seen) Len() (n int) {
	for _, shard := range s.shards {
		n += len(shard)
	}
	return n
}

// Changed returns the numbers of the shards that differ from what Load was given.
func (s *Seen) Changed() (shards []int) {
	for n, changed := range s.changed {
		if changed {
			shards = append(shards, n)
		}
	}
	return shards
}

// Bytes encodes a shard: its marks in ascending order, 8 bytes each.
func (s *Seen) Bytes(shard int) []byte {
	marks := make([]Mark, 0, len(s.shards[shard]))
	for m := range s.shards[shard] {
		marks = append(marks, m)
	}
	slices.Sort(marks)
	text := make([]byte, 0, 8*len(marks))
	for _, m := range marks {
		text = binary.BigEndian.AppendUint64(text, uint64(m))
	}
	return text
}

// Load decodes a shard.
func (s *Seen) Load(shard int, text []byte) {
	s.shards[shard] = make(map[Mark]bool, len(text)/8)
	for ; len(text) >= 8; text = text[8:] {
		s.shards[shard][Mark(binary.BigEndian.Uint64(text))] = true
	}
}
