// Package formats says what a format of the export is, and holds what all of
// them need: the addresses that are printed, dates, languages, URIs, and how a
// name is told from a body's.
//
// A format is a folder below this one with a type that has the three methods
// of Format, and one line in the worker's table. It writes an entity at a time
// and keeps nothing of it, so that memory does not grow with the collection.
// The same entities in the same order give the same bytes.
package formats

import (
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

// Format writes one document: Open, a Record for each entity, Close. Errors of
// writing are the Writer's to remember; what Record returns is an error of
// reading an entity's long texts back.
type Format interface {
	// Open writes what comes before the first record. root is the entity that
	// was asked for; it is the first record too.
	Open(w *xmlstream.Writer, root *record.Entity)
	Record(w *xmlstream.Writer, e *record.Entity) error
	Close(w *xmlstream.Writer)
}

// Options are what a format has to know.
type Options struct {
	// Collection says that many records may come: the format's collection is
	// written. Otherwise exactly one comes, and the document is that record.
	Collection bool
	// OCR says that the text of files is written, where the format has room.
	OCR bool
	// Graph says how much of cheimarros.json is written.
	Graph GraphMode
	// Links are the addresses that are printed.
	Links Links
}

// GraphMode is the option cheimarrosMode.
type GraphMode string

// The three modes. Minimal gives subjects, Full also subjects of unknown types
// and notes for properties and relations.
const (
	GraphFull    GraphMode = "full"
	GraphMinimal GraphMode = "minimal"
	GraphSkip    GraphMode = "skip"
)

// Links are public addresses, without a slash at their end. They are no part
// of how the worker reads its source: a document must not depend on the port
// that a source happened to have.
type Links struct {
	Site    string // shows an entity at {Site}/{pi}
	Gateway string // serves bytes at {Gateway}/{cid}
	API     string // the entity API: {API}/cat/{cid}
}

// DefaultLinks are Arke's public addresses.
func DefaultLinks() Links {
	return Links{Site: "https://arke.institute", Gateway: "https://ipfs.arke.institute/ipfs", API: "https://api.arke.institute"}
}

// Entity is where an entity is shown.
func (l Links) Entity(pi record.PI) string { return l.Site + "/" + pi.String() }

// Shown is where the entity says that it is shown, or else where the site
// would.
func (l Links) Shown(e *record.Entity) string {
	if e.Pinax != nil && e.Pinax.AccessURL != "" {
		return e.Pinax.AccessURL
	}
	return l.Entity(e.PI)
}

// Bytes is where the gateway serves a CID.
func (l Links) Bytes(cid string) string { return l.Gateway + "/" + cid }

// Cat is where the API serves a CID.
func (l Links) Cat(cid string) string { return l.API + "/cat/" + cid }

// Title is what a record is called: its title, or words that say that it has
// none, and then false.
func Title(e *record.Entity) (string, bool) {
	if e.Pinax != nil && e.Pinax.Title != "" {
		return e.Pinax.Title, true
	}
	return "[Incomplete Record: " + e.PI.String() + "]", false
}

// KnownNode says whether a graph's type of node has a place of its own in a
// record. The mode full gives every other type as a topic.
func KnownNode(kind string) bool {
	switch kind {
	case "person", "organization", "place", "concept", "date", "document":
		return true
	}
	return false
}
