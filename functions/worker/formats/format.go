// Package formats declares the interface of export formats and their common functions: public
// URLs, dates, languages, URIs, and the distinction of personal and corporate names.
//
// A format is a package below this one with a type that implements Format, and one line in the
// worker's table. It writes one entity at a time and stores none, so that memory does not grow
// with the collection. The same entities in the same order give the same bytes.
package formats

import (
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

// Format writes one document: Open, a Record for each entity, Close. The Writer stores errors
// of writing. Record returns errors of reading an entity's long texts.
type Format interface {
	// Open writes the beginning of the document. root is the requested entity, which is
	// also the first record.
	Open(w *xmlstream.Writer, root *record.Entity)
	Record(w *xmlstream.Writer, e *record.Entity) error
	Close(w *xmlstream.Writer)
}

// Options configure a format.
type Options struct {
	// Collection selects the format's collection of any number of records. Otherwise the
	// document is exactly one record.
	Collection bool
	// OCR selects the text of files, if the format has room for it.
	OCR bool
	// Graph selects how much of cheimarros.json is written.
	Graph GraphMode
	// Links are the public URLs in the document.
	Links Links
}

// GraphMode is the option cheimarrosMode.
type GraphMode string

// The modes. Minimal writes subjects. Full also writes subjects of unknown types, and notes for
// properties and relations.
const (
	GraphFull    GraphMode = "full"
	GraphMinimal GraphMode = "minimal"
	GraphSkip    GraphMode = "skip"
)

// Links are public URLs without a trailing slash. They differ from the URL of the
// source, because a document must not depend on the source's port.
type Links struct {
	Site    string // shows an entity at {Site}/{pi}
	Gateway string // serves bytes at {Gateway}/{cid}
	API     string // the entity API: {API}/cat/{cid}
}

// DefaultLinks returns the public URLs of Arke.
func DefaultLinks() Links {
	return Links{Site: "https://arke.institute", Gateway: "https://ipfs.arke.institute/ipfs", API: "https://api.arke.institute"}
}

// Entity returns the URL that shows an entity.
func (l Links) Entity(pi record.PI) string { return l.Site + "/" + pi.String() }

// Shown returns the access URL of the entity, or its URL on the site if it has none.
func (l Links) Shown(e *record.Entity) string {
	if e.Pinax != nil && e.Pinax.AccessURL != "" {
		return e.Pinax.AccessURL
	}
	return l.Entity(e.PI)
}

// Bytes returns the URL of a CID on the gateway.
func (l Links) Bytes(cid string) string { return l.Gateway + "/" + cid }

// Cat returns the URL of a CID on the API.
func (l Links) Cat(cid string) string { return l.API + "/cat/" + cid }

// Title returns the title of a record and true, or a placeholder and false.
func Title(e *record.Entity) (string, bool) {
	if e.Pinax != nil && e.Pinax.Title != "" {
		return e.Pinax.Title, true
	}
	return "[Incomplete Record: " + e.PI.String() + "]", false
}

// KnownNode reports whether a type of node has its own element in a record. The mode
// full writes every other type as a topic.
func KnownNode(kind string) bool {
	switch kind {
	case "person", "organization", "place", "concept", "date", "document":
		return true
	}
	return false
}
