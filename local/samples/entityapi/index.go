package entityapi

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sync"

	"github.com/sortie-dev/sortie/local/samples/cid"
)

// index finds the content of a CID. It stores eight bytes of each digest and the number of the
// entity. For a match, the entity is computed again and the whole CID compared.
//
// Most clients read bytes soon after the manifest that names them, so index searches the latest
// entities first. Only other requests need the whole index, which the first of them builds from
// the whole collection.
type index struct {
	source Source

	mu     sync.Mutex
	latest map[uint64]uint32
	order  []uint64 // the keys of latest, as a ring buffer
	oldest int

	build sync.Once
	marks []mark
}

// maxLatest limits latest to the files of some hundred entities.
const maxLatest = 4096

type mark struct {
	digest uint64
	entity uint32
}

func digestMark(d cid.Digest) uint64 { return binary.BigEndian.Uint64(d[:8]) }

// Remember adds the files of entity i to the latest ones.
func (x *index) Remember(i int, e Entity) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, files := range [][]Component{e.Components, e.Attachments} {
		for _, file := range files {
			_, d, err := cid.Parse(string(file.CID))
			if err != nil {
				continue
			}
			key := digestMark(d)
			if _, known := x.latest[key]; known {
				continue
			}
			if len(x.order) < maxLatest {
				x.order = append(x.order, key)
			} else {
				delete(x.latest, x.order[x.oldest])
				x.order[x.oldest] = key
				x.oldest = (x.oldest + 1) % maxLatest
			}
			x.latest[key] = uint32(i) //nolint:gosec // a source has fewer than 1<<32 entities
		}
	}
}

// Find returns the content with the CID c, whose digest is d.
func (x *index) Find(c cid.CID, d cid.Digest) (Component, bool) {
	want := digestMark(d)
	x.mu.Lock()
	i, remembered := x.latest[want]
	x.mu.Unlock()
	if remembered {
		if found, ok := locate(x.source.Entity(int(i)), c); ok {
			return found, true
		}
	}
	x.build.Do(x.scan)
	at, _ := slices.BinarySearchFunc(x.marks, want, func(m mark, want uint64) int { return cmp.Compare(m.digest, want) })
	for ; at < len(x.marks) && x.marks[at].digest == want; at++ {
		if found, ok := locate(x.source.Entity(int(x.marks[at].entity)), c); ok {
			return found, true
		}
	}
	return Component{}, false
}

// locate returns the file or manifest of e with the CID c.
func locate(e Entity, c cid.CID) (Component, bool) {
	for _, files := range [][]Component{e.Components, e.Attachments} {
		for _, file := range files {
			if file.CID == c {
				return file, true
			}
		}
	}
	for v := range e.Versions {
		if m := version(e, v+1); m.CID == c {
			return Component{CID: c, Body: Body{Head: m.node}}, true
		}
	}
	return Component{}, false
}

func (x *index) scan() {
	var marks []mark
	for i := range x.source.Len() {
		e := x.source.Entity(i)
		if e.State != Present {
			continue
		}
		add := func(c cid.CID) {
			if _, d, err := cid.Parse(string(c)); err == nil {
				marks = append(marks, mark{digestMark(d), uint32(i)}) //nolint:gosec // as above
			}
		}
		for _, c := range e.Components {
			add(c.CID)
		}
		for _, c := range e.Attachments {
			add(c.CID)
		}
		for v := range e.Versions {
			add(version(e, v+1).CID)
		}
	}
	// Equal marks keep the order of the entities, so that the same bytes are always found in
	// the same entity.
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.digest, b.digest) })
	x.marks = slices.Clip(marks)
}
