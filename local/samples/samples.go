// Package collection has the collections that a local stack exports, and serves
// them as the entity API does (see entityapi).
//
//   - Sample is tape 281 of the White House Tapes with its 71 conversations: 72
//     entities from a table of facts inside the program.
//   - FromEAD is a folder of finding aids, one entity each, under the tapes that
//     they name.
//   - FromCatalog is a folder of conversation lists and catalog records, as one
//     tree: collection, series, tapes, conversations.
//   - Generate is any number of made-up entities, with ills on demand.
//
// A Collection never changes. The same source gives the same bytes, PIs and CIDs
// in every process; they are computed when they are asked for, and none are kept.
// Broken input is refused with the name of the file.
//
// # What an exporter should make of a collection
//
// Expect says it, from what is served and nothing else, by these rules:
//
//   - An entity that cannot be read at all has failed: 404, merged, deleted, or
//     503 or broken off however often it is asked for. It is not in the output,
//     and what only it names is never found. If it is the root, the export fails.
//   - An entity is incomplete if it has no pinax.json, or one that is no JSON
//     object or is over 4 MiB; or if any component cannot be had or does not
//     match its CID. It is in the output, as a lesser record, with its children.
//     So exported counts the incomplete too, and never the failed.
//   - A 503 or an answer broken off a few times is asked for again, and then it
//     is as if it had not been. A slow answer is an answer.
//   - An entity that is named twice, by its parent, by a descendant or by
//     itself, is exported once.
//   - What a parent does not name is not found, whatever it says of its parent;
//     what a parent names is found, whatever it says.
//   - An OCR text that is empty, or has control bytes in it, changes no count.
//
// An exporter may give up when a source fails dozens of times in a row; that is
// not foreseen here.
package samples

import (
	"net/http"

	"github.com/sortie-dev/sortie/local/samples/archive"
	"github.com/sortie-dev/sortie/local/samples/entityapi"
)

// Collection is a set of archive entities under one or several roots.
type Collection struct {
	source entityapi.Source
	roots  []Root
}

// Root is an entity that hangs under no other: where an export starts.
type Root struct {
	PI    string
	Title string
	// Entities counts the root and all below it.
	Entities int
}

// fromUnits hangs units into a tree.
func fromUnits(units []archive.Unit) (*Collection, error) {
	tree, err := archive.NewTree(units)
	if err != nil {
		return nil, err
	}
	c := &Collection{source: tree}
	for _, pi := range tree.Roots() {
		i, _ := tree.Index(pi)
		c.roots = append(c.roots, Root{PI: pi, Title: tree.Unit(i).Title, Entities: tree.Count(i)})
	}
	return c, nil
}

// Roots are the entities that an export starts at, in a fixed order.
func (c *Collection) Roots() []Root { return append([]Root(nil), c.roots...) }

// Len counts the entities.
func (c *Collection) Len() int { return c.source.Len() }

// Handler serves the collection. Every handler counts anew what goes wrong a
// number of times; clock times the answers that are slow.
func (c *Collection) Handler(clock entityapi.Clock) http.Handler {
	return entityapi.Handler(c.source, clock)
}
