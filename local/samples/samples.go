// Package samples contains the collections that a local stack exports, and serves them with the
// entity API (see entityapi).
//
//   - Sample is tape 281 of the White House Tapes with its 71 conversations: 72
//     entities from an embedded table of facts.
//   - FromEAD reads a folder of finding aids, one entity each and one for each
//     component with an id, under the tapes that they name.
//   - FromCatalog reads a folder of conversation lists and catalog records into
//     one tree: collection, series, tapes, conversations.
//   - Generate computes any number of invented entities, with defects on request.
//
// A Collection is immutable. The same source gives the same bytes, PIs and CIDs in every
// process. They are computed on each request and not stored. Invalid input is an error that
// names the file.
//
// # What an export of a collection should contain
//
// Expect computes the result from the served entities, by these rules:
//
//   - An entity that cannot be read has failed: 404, merged, deleted, or 503 or
//     interrupted on every try. It is not in the output, and entities that only
//     it names are not found. If it is the root, the export fails.
//   - An entity is incomplete if it has no pinax.json, or one that is not a JSON
//     object or is over 4 MiB; or if any component is unavailable or does not
//     match its CID. It is in the output, as a reduced record, with its children.
//     So exported includes the incomplete and excludes the failed.
//   - A 503 or an interrupted answer that occurs a few times is retried and has
//     no other effect. A slow answer is an answer.
//   - An entity that is named twice, by its parent, by a descendant or by
//     itself, is exported once.
//   - Only what a parent names is found, whatever a child says of its parent.
//   - An OCR text that is empty or contains control bytes changes no count.
//
// An exporter may give up after dozens of consecutive failures of a source. Expect ignores
// this.
package samples

import (
	"net/http"

	"github.com/sortie-dev/sortie/local/samples/archive"
	"github.com/sortie-dev/sortie/local/samples/entityapi"
)

// Collection is a set of archive entities under one or more roots.
type Collection struct {
	source  entityapi.Source
	roots   []Root
	skipped []Skipped
}

// Skipped is a file in a folder that is not a part of the collection.
type Skipped struct {
	File string `json:"file"`
	// Reason is why the file was skipped, such as "not an EAD finding aid: its root element is
	// <mods>".
	Reason string `json:"reason"`
}

// Root is an entity without a parent, at which an export can start.
type Root struct {
	PI    string
	Title string
	// Entities is the number of entities in the tree of the root, including the root.
	Entities int
}

// fromUnits returns a collection whose entities are the units, arranged as a tree.
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

// Roots returns the roots, always in the same order.
func (c *Collection) Roots() []Root { return append([]Root(nil), c.roots...) }

// Skipped returns the files that FromEAD has skipped.
func (c *Collection) Skipped() []Skipped { return append([]Skipped{}, c.skipped...) }

// Len returns the number of entities.
func (c *Collection) Len() int { return c.source.Len() }

// Handler serves the collection. Each handler has its own counters for faults that occur a
// limited number of times. clock is the clock of slow responses.
func (c *Collection) Handler(clock entityapi.Clock) http.Handler {
	return entityapi.Handler(c.source, clock)
}
