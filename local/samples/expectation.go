package samples

import (
	"bytes"
	"encoding/json"

	"github.com/sortie-dev/sortie/local/samples/entityapi"
)

// pinaxMost is the maximum size in bytes of a pinax.json that an exporter has to read.
const pinaxMost = 4 << 20

// ExportOptions are the options of an export that change its counts.
type ExportOptions struct {
	Recursive bool
	// MaxDepth is the maximum depth of exported entities. The root has depth 0. It applies only
	// if Recursive is set.
	MaxDepth int
}

// Expectation is the result that an export should report.
type Expectation struct {
	// Fails is true if there is no output, because the root cannot be read.
	Fails bool
	// Exported is the number of records in the output, and Incomplete the number of those that
	// lack a part. Failed is the number of entities that were found but cannot be read.
	Exported, Incomplete, Failed int
}

// Expect computes the result that an export of the entity root should report, by the rules in
// the package comment. It reads each entity once. It stores one bit per entity, and the numbers
// of the entities on one level of the tree.
func (c *Collection) Expect(root string, options ExportOptions) Expectation {
	var sum Expectation
	seen := make([]uint64, c.source.Len()/64+1)
	unknown := map[string]bool{} // listed, but does not exist
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
			if e.State != entityapi.Present || lasting(e.Fault) {
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

// lasting reports whether a fault remains after any number of retries.
func lasting(t entityapi.Fault) bool {
	return t.Busy == entityapi.Forever || t.Cut == entityapi.Forever
}

// lacks reports whether a record of e lacks a component that its manifest lists, or has no
// readable pinax.json, which every entity should have.
func lacks(e entityapi.Entity) bool {
	complete := false
	for _, f := range e.Components {
		if f.Lost || lasting(f.Fault) || f.Body.CID() != f.CID {
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
	_, _ = b.WriteTo(&text) // writes to a buffer do not fail
	var object map[string]json.RawMessage
	return json.Unmarshal(text.Bytes(), &object) == nil && object != nil
}
