package events

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/bits"

	"golang.org/x/mod/sumdb/tlog"
)

// Tree is the Merkle tree (RFC 6962) over the events of a stream. It has only the roots of the
// perfect subtrees that the events fill, largest first. They suffice to add events. Its zero
// value is the tree of an empty stream.
type Tree struct {
	// Size is the number of events.
	Size  int64
	roots []tlog.Hash
}

// Add returns the tree with one more event.
func (t Tree) Add(payload []byte) (Tree, error) {
	canonical, err := Canonical(payload)
	if err != nil {
		return Tree{}, err
	}
	hash := tlog.RecordHash(canonical)
	roots := append([]tlog.Hash(nil), t.roots...)
	for n := t.Size; n&1 == 1; n >>= 1 {
		last := len(roots) - 1
		hash = tlog.NodeHash(roots[last], hash)
		roots = roots[:last]
	}
	return Tree{t.Size + 1, append(roots, hash)}, nil
}

// Root returns the root of the tree.
func (t Tree) Root() tlog.Hash {
	if len(t.roots) == 0 {
		return tlog.Hash(sha256.Sum256(nil))
	}
	root := t.roots[len(t.roots)-1]
	for i := len(t.roots) - 2; i >= 0; i-- {
		root = tlog.NodeHash(t.roots[i], root)
	}
	return root
}

// storedTree is a tree as JSON.
type storedTree struct {
	Size  int64       `json:"size"`
	Roots []tlog.Hash `json:"roots,omitempty"`
}

// MarshalJSON implements json.Marshaler. The roots are in base64.
func (t Tree) MarshalJSON() ([]byte, error) { return json.Marshal(storedTree{t.Size, t.roots}) }

// UnmarshalJSON implements json.Unmarshaler.
func (t *Tree) UnmarshalJSON(document []byte) error {
	var stored storedTree
	err := json.Unmarshal(document, &stored)
	if err == nil {
		*t, err = newTree(stored.Size, stored.Roots)
	}
	if err != nil {
		return fmt.Errorf("malformed tree: %w", err)
	}
	return nil
}

// newTree returns the tree with these roots of subtrees.
func newTree(size int64, roots []tlog.Hash) (Tree, error) {
	if want := bits.OnesCount64(uint64(max(size, 0))); size < 0 || len(roots) != want {
		return Tree{}, fmt.Errorf("got %d subtrees of %d events, want %d", len(roots), size, want)
	}
	return Tree{size, roots}, nil
}
