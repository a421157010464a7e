package events

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Checkpoint is the state of a stream at a size. A signed checkpoint is one of C2SP
// tlog-checkpoint. Its extension lines are the roots of the subtrees. With them, the events
// after the checkpoint can be verified without the events before it.
type Checkpoint struct {
	// Origin names the stream: its tenant and its epoch.
	Origin string
	Tree   Tree
}

// Origin returns the origin of the stream of a tenant.
func Origin(tenant, epoch string) string { return "sortie/" + tenant + "/" + epoch }

// subtreeLine is the prefix of an extension line with the root of a subtree.
const subtreeLine = "subtree "

// Sign returns the signed note of the checkpoint.
func (c Checkpoint) Sign(key Key) (string, error) {
	if key.private == nil {
		return "", errNoPrivate
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%d\n%s\n", c.Origin, c.Tree.Size, c.Tree.Root())
	for _, root := range c.Tree.roots {
		fmt.Fprintf(&text, "%s%s\n", subtreeLine, root)
	}
	signed, err := note.Sign(&note.Note{Text: text.String()}, noteKey{key})
	if err != nil {
		return "", fmt.Errorf("cannot sign a checkpoint: %w", err)
	}
	return string(signed), nil
}

// Checkpoint reads a signed checkpoint. It returns an error unless the checkpoint is signed by
// one of the keys and its root follows from its subtrees.
func (k Keys) Checkpoint(signed string) (Checkpoint, error) {
	opened, err := note.Open([]byte(signed), k)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("the checkpoint has no signature by a known key: %w", err)
	}
	lines := strings.Split(strings.TrimSuffix(opened.Text, "\n"), "\n")
	const head = 3
	if len(lines) < head || lines[0] == "" {
		return Checkpoint{}, errors.New("malformed checkpoint, want an origin, a size and a root")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("malformed size %q of a checkpoint", lines[1])
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("malformed root of a checkpoint: %w", err)
	}
	var roots []tlog.Hash
	for _, line := range lines[head:] {
		text, ok := strings.CutPrefix(line, subtreeLine)
		if !ok {
			continue // an extension of a later version
		}
		subtree, err := tlog.ParseHash(text)
		if err != nil {
			return Checkpoint{}, fmt.Errorf("malformed subtree of a checkpoint: %w", err)
		}
		roots = append(roots, subtree)
	}
	tree, err := newTree(size, roots)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("malformed checkpoint: %w", err)
	}
	if tree.Root() != root {
		return Checkpoint{}, fmt.Errorf("the root %s of the checkpoint does not follow from its subtrees", root)
	}
	return Checkpoint{lines[0], tree}, nil
}
