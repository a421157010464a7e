package entityapi

import (
	"crypto/sha256"
	"io"

	"github.com/sortie-dev/sortie/local/samples/cid"
)

// Source is a collection that the API serves. Its entities have the numbers 0 to Len()-1, in
// the order of the list. A Source is immutable, deterministic and safe for concurrent use.
type Source interface {
	// Len returns the number of entities, including those that are Gone.
	Len() int
	// Index returns the number of the entity with the PI.
	Index(pi string) (i int, ok bool)
	// Entity computes entity i.
	Entity(i int) Entity
	// Roots returns the PIs at which an export may start.
	Roots() []string
}

// State says how an entity is answered.
type State int

const (
	// Present is an entity that can be read.
	Present State = iota
	// Merged is an entity that is answered with 200 and a pointer to another entity, without
	// components.
	Merged
	// Deleted is an entity that is answered with 200 and a tombstone, without components.
	Deleted
	// Gone is an entity that is answered with 404 and not listed, although other entities may
	// name it.
	Gone
)

// Entity is the newest version of an entity.
type Entity struct {
	// PI is a ULID, which has 26 characters of Crockford's base32.
	PI    string
	State State
	// MergedInto is the PI of the other entity, for a Merged entity only.
	MergedInto string
	// Versions is the number of the newest version, from 1. Older versions have no children,
	// because an entity is created before the entities that name it.
	Versions int
	// Parent is the PI of the parent, or empty.
	Parent string
	// Children are the PIs of the children, in order.
	Children []string
	// Components are sorted by name.
	Components []Component
	// Attachments are files that are available by CID. A component names them, not the
	// manifest.
	Attachments []Component
	// Note is free text about the version, or empty.
	Note string
	// Fault is the fault of the manifest's responses.
	Fault Fault
}

// Component is a named file of an entity.
type Component struct {
	Name string
	// CID is the CID in the manifest. Bytes that do not match it are served unchanged.
	CID   cid.CID
	Body  Body
	Fault Fault
	// Lost is true if /cat answers 404 for the CID in the manifest.
	Lost bool
}

// NewComponent returns a component with the CID of the body.
func NewComponent(name string, body Body) Component {
	return Component{Name: name, CID: body.CID(), Body: body}
}

// Body is the content of a file: Head, then FillerSize bytes with the value Filler, then Tail.
// With the filler, a large file needs no memory.
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

// CID returns the CID of the content.
func (b Body) CID() cid.CID {
	h := sha256.New()
	_, _ = b.WriteTo(h) // a hash accepts all writes
	return cid.FromDigest(cid.Digest(h.Sum(nil)))
}
