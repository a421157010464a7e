package worker

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/functions/worker/record"
)

func TestTreeKeepsOrderAndPaths(t *testing.T) {
	t.Parallel()
	tree := newTree(mustPI(t, testPI(0)))
	const size = 5 * blockSize
	for i := 1; i < size; i++ {
		tree.add(mustPI(t, testPI(i)), int32((i-1)/2), 1)
		tree.add(mustPI(t, testPI(i/2)), 0, 1) // is in the tree already
		if tree.size != i+1 {
			t.Fatalf("entity %d: got size %d, want %d", i, tree.size, i+1)
		}
	}
	if got := tree.node(size - 1).pi.String(); got != testPI(size-1) {
		t.Errorf("got last node %s, want %s", got, testPI(size-1))
	}
	var path []string
	for _, pi := range tree.position(11).Path {
		path = append(path, pi.String())
	}
	if len(path) != 3 || path[0] != testPI(0) || path[1] != testPI(2) || path[2] != testPI(5) {
		t.Errorf("got path %v, want those of entities 0, 2, 5", path)
	}
}

func TestTreeIsASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var root record.PI
		tree, seen := newTree(root), map[record.PI]bool{root: true}
		for _, b := range rapid.SliceOf(rapid.Byte()).Draw(t, "pis") {
			pi := record.PI{b}
			tree.add(pi, 0, 1)
			if seen[pi] = true; tree.size != len(seen) {
				t.Fatalf("PI %d: got %d nodes, want %d", b, tree.size, len(seen))
			}
		}
	})
}
