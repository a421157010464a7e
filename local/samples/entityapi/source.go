package entityapi

import (
	"crypto/sha256"
	"io"

	"github.com/sortie-dev/sortie/local/samples/cid"
)

// Source is a collection as the API reads it. Entities are numbered from 0 to
// Len()-1 in the order of the list. A Source is immutable, deterministic and
// safe for concurrent use.
type Source interface {
	// Len returns the number of entities, including Gone ones.
	Len() int
	// Index returns the number of an entity by its PI.
	Index(pi string) (i int, ok bool)
	// Entity computes entity i.
	Entity(i int) Entity
	// Roots returns the PIs at which an export may start.
	Roots() []string
}

// State is the readable state of an entity.
type State int

const (
	// Present is an entity that can be read.
	Present State = iota
	// Merged answers 200 with a pointer to another entity and no components.
	Merged
	// Deleted answers 200 with a tombstone and no components.
	Deleted
	// Gone answers 404, although other entities may name it. It is not listed.
	Gone
)

// Entity is one entity at its newest version.
type Entity struct {
	// PI is a ULID: 26 characters of Crockford's base32.
	PI    string
	State State
	// MergedInto is a PI; for a Merged entity only.
	MergedInto string
	// Versions is the number of the newest version, from 1. Older versions have
	// no children, because an entity is created before those that name it.
	Versions int
	// Parent is a PI, or empty.
	Parent string
	// Children are PIs, in order.
	Children []string
	// Components are sorted by name.
	Components []Component
	// Attachments are available by CID, but are named by a component instead of
	// the manifest.
	Attachments []Component
	// Note is free text about the version, or empty.
	Note string
	// Fault is the fault of the manifest.
	Fault Fault
}

// Component is a named file of an entity.
type Component struct {
	Name string
	// CID is the CID in the manifest. Bytes that do not match it are served
	// unchanged.
	CID   cid.CID
	Body  Body
	Fault Fault
	// Lost bytes are named by the manifest, and /cat answers 404.
	Lost bool
}

// NewComponent returns a component with the CID of its bytes.
func NewComponent(name string, body Body) Component {
	return Component{Name: name, CID: body.CID(), Body: body}
}

// Body is the content of a file: Head, then Filler repeated to FillerSize
// bytes, then Tail. The filler allows a large file without holding it in
// memory.
type Body struct {
	Head       []byte
	Filler     byte
	FillerSize int64
	Tail       []byte
}

// Size returns the number of bytes.
func (b Body) Size() int64 { return int64(len(b.Head)) + b.FillerSize + int64(len(b.Tail)) }

// WriteTo implements io.WriterTo.
func (b Body) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(b.Head)
	written := int64(n)
	if err == nil && b.FillerSize > 0 {
		var block [8 << 10]byte
		for i := range block {
			block[i] = b.Filler
		}
		for left := b.FillerSize; left > 0 && err == nil; left -= int64(n) {
			n, err = w.Write(block[:min(left, int64(len(block)))])
			written += int64(n)
		}
	}
	if err == nil {
		n, err = w.Write(b.Tail)
		written += int64(n)
	}
	return written, err
}

// CID returns the CID of the bytes.
func (b Body) CID() cid.CID {
	h := sha256.New()
	_, _ = b.WriteTo(h) // a hash accepts all writes
	return cid.FromDigest(cid.Digest(h.Sum(nil)))
}
