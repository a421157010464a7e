package samples

import (
	"bytes"
	"encoding/json"

	"github.com/sortie-dev/sortie/local/samples/entityapi"
)

// pinaxMost is the size up to which a pinax.json has to be read.
const pinaxMost = 4 << 20

// ExportOptions are those options of an export that its counts depend on.
type ExportOptions struct {
	Recursive bool
	// MaxDepth is how far below the root, depth 0, children are followed; it
	// counts only where Recursive is set.
	MaxDepth int
}

// Expectation is what an export should report.
type Expectation struct {
	// Fails says that there is no output, because the root cannot be read.
	Fails bool
	// Exported counts the records in the output, Incomplete those of them that
	// lack something, Failed the entities that were found and could not be read.
	Exported, Incomplete, Failed int
}

// Expect computes what an export of the entity root should report, by the rules
// in the package comment. It reads every entity once, and keeps a bit for each
// and the numbers of one level of the tree.
func (c *Collection) Expect(root string, options ExportOptions) Expectation {
	var sum Expectation
	seen := make([]uint64, c.source.Len()/64+1)
	unknown := map[string]bool{} // named, and nowhere
	var level, next []int
	find := func(pi string) {
		i, ok := c.source.Index(pi)
		switch {
		case !ok && !unknown[pi]:
			unknown[pi] = true
			sum.Failed++
		case ok && seen[i/64]>>(i%64)&1 == 0:
			seen[i/64] |= 1 << (i % 64)
			next = append(next, i)
		}
	}
	find(root)
	for depth := 0; len(next) > 0; depth++ {
		level, next = next, level[:0]
		for _, i := range level {
			e := c.source.Entity(i)
			if e.State != entityapi.Present || lasting(e.Trouble) {
				sum.Failed++
				continue
			}
			sum.Exported++
			if lacks(e) {
				sum.Incomplete++
			}
			if options.Recursive && depth < options.MaxDepth {
				for _, pi := range e.Children {
					find(pi)
				}
			}
		}
	}
	sum.Fails = sum.Exported == 0
	return sum
}

// lasting trouble is there however often one asks.
func lasting(t entityapi.Trouble) bool {
	return t.Busy == entityapi.Forever || t.Cut == entityapi.Forever
}

// lacks says whether a record of e misses something that its manifest promises,
// or the pinax that every entity should have.
func lacks(e entityapi.Entity) bool {
	complete := false
	for _, f := range e.Components {
		if f.Lost || lasting(f.Trouble) || f.Body.CID() != f.CID {
			return true
		}
		complete = complete || f.Name == "pinax.json" && readable(f.Body)
	}
	return !complete
}

func readable(b entityapi.Body) bool {
	if b.Size() > pinaxMost {
		return false
	}
	var text bytes.Buffer
	_, _ = b.WriteTo(&text) // a buffer takes everything
	var object map[string]json.RawMessage
	return json.Unmarshal(text.Bytes(), &object) == nil && object != nil
}
