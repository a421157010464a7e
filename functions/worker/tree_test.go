package worker

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/functions/worker/record"
)

func TestTreeFindsWhatItHolds(t *testing.T) {
	t.Parallel()
	tree := newTree(mustPI(t, testPI(0)))
	const size = 5 * blockSize
	for i := 1; i < size; i++ {
		if !tree.add(mustPI(t, testPI(i)), int32((i-1)/2), 1) || tree.add(mustPI(t, testPI(i/2)), 0, 1) {
			t.Fatalf("entity %d was taken wrongly", i)
		}
	}
	if tree.size != size || tree.node(size-1).pi.String() != testPI(size-1) {
		t.Errorf("size %d, last %v", tree.size, tree.node(tree.size-1))
	}
	var path []string
	for _, pi := range tree.position(11).Path {
		path = append(path, pi.String())
	}
	if len(path) != 3 || path[0] != testPI(0) || path[1] != testPI(2) || path[2] != testPI(5) {
		t.Errorf("path = %v", path)
	}
}

func TestTreeIsASet(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var root record.PI
		tree, seen := newTree(root), map[record.PI]bool{root: true}
		for _, b := range rapid.SliceOf(rapid.Byte()).Draw(t, "pis") {
			pi := record.PI{b}
			if tree.add(pi, 0, 1) == seen[pi] {
				t.Fatalf("PI %d", b)
			}
			seen[pi] = true
		}
	})
}
