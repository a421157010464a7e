package worker

import (
	"hash/maphash"
	"slices"

	"github.com/sortie-dev/sortie/functions/worker/record"
)

// tree is the set of entities that the walk has found so far, in export order. Only its memory
// grows with the collection: about 45 bytes for each entity. Nodes are stored in blocks, so
// that growth copies no node.
type tree struct {
	blocks [][]node
	size   int
	// slots is an open-addressed hash table of node numbers plus one.
	slots []int32
	seed  maphash.Seed
}

type node struct {
	pi     record.PI
	parent int32 // the number of the node that listed this one; -1 for the root
	depth  uint16
}

const (
	blockSize  = 1024
	firstSlots = 1024 // a power of two
)

func newTree(root record.PI) *tree {
	t := &tree{slots: make([]int32, firstSlots), seed: maphash.MakeSeed()}
	t.add(root, -1, 0)
	return t
}

// add appends a node unless the tree has its PI.
func (t *tree) add(pi record.PI, parent int32, depth uint16) {
	slot := t.find(pi)
	if t.slots[slot] != 0 {
		return
	}
	if t.size%blockSize == 0 {
		t.blocks = append(t.blocks, make([]node, 0, blockSize))
	}
	last := &t.blocks[len(t.blocks)-1]
	*last = append(*last, node{pi: pi, parent: parent, depth: depth})
	t.size++
	t.slots[slot] = int32(t.size) //nolint:gosec // the tree has less than math.MaxInt32 nodes
	if t.size*4 > len(t.slots)*3 {
		t.grow()
	}
}

func (t *tree) node(i int) node { return t.blocks[i/blockSize][i%blockSize] }

// position returns the depth of node i and the path from the root to it.
func (t *tree) position(i int) record.Position {
	n := t.node(i)
	at := record.Position{Depth: int(n.depth)}
	for p := n.parent; p >= 0; {
		parent := t.node(int(p))
		at.Path = append(at.Path, parent.pi)
		p = parent.parent
	}
	slices.Reverse(at.Path)
	return at
}

// find returns the slot that holds the PI, or the free slot for it.
func (t *tree) find(pi record.PI) int {
	mask := uint64(len(t.slots) - 1) //nolint:gosec // slots is never empty
	slot := maphash.Bytes(t.seed, pi[:]) & mask
	for t.slots[slot] != 0 && t.node(int(t.slots[slot]-1)).pi != pi {
		slot = (slot + 1) & mask
	}
	return int(slot) //nolint:gosec // an index of slots
}

func (t *tree) grow() {
	t.slots = make([]int32, 2*len(t.slots))
	for i := range t.size {
		t.slots[t.find(t.node(i).pi)] = int32(i + 1)
	}
}
