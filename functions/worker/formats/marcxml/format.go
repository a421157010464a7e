// Package marcxml writes MARC 21 bibliographic records as MARCXML: one record,
// or a collection of them.
//
// The mapping is the Library of Congress's from MODS to MARC 21 (3.4), with the
// pinax and the manifest as its source:
//
//	001, 003, 005, 008   PI, "arke-pi", time of the version, date and language
//	040, 041             Arke Institute; language codes that ISO 639-2 has
//	100/110              the first creator; further ones are 700/710, the institution 710
//	245                  title
//	264 _0               date created (production: nothing was published)
//	500, 520, 540        source and version; description.md and summary; rights
//	600 610 648 650 651  graph and subjects, second indicator 4: no thesaurus
//	773, 774             parent and children, by control number
//	852, 856             institution; addresses of the entity, its manifest, its files
//
// A field of ISO 2709 has at most 9,999 bytes and a record 99,999, and MARCXML must be
// convertible to it. So OCR, inventories and the graph's notes are omitted, and a longer text
// is cut and marked with an ellipsis. A full record omits the rest of its files, subjects and
// children and has their number in a note. The record is built in memory before it is written;
// that limit bounds its size.
//
// The type Sound of DCMI does not distinguish speech from music; leader/06 is "i", nonmusical,
// because most recordings of archives are.
package marcxml

import (
	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

const (
	namespace      = "http://www.loc.gov/MARC21/slim"
	schemaInstance = "http://www.w3.org/2001/XMLSchema-instance"
	schemaLocation = namespace + " http://www.loc.gov/standards/marcxml/schema/MARC21slim.xsd"
)

// Format writes MARCXML.
type Format struct{ options formats.Options }

// New returns the format.
func New(options formats.Options) *Format { return &Format{options: options} }

// Open writes the start of the collection, if it is one.
func (f *Format) Open(w *xmlstream.Writer, _ *record.Entity) {
	w.Declaration()
	if f.options.Collection {
		w.Start("collection", rootAttributes()...)
	}
}

func rootAttributes() []string {
	return []string{"xmlns", namespace, "xmlns:xsi", schemaInstance, "xsi:schemaLocation", schemaLocation}
}

// Record writes one record.
func (f *Format) Record(w *xmlstream.Writer, e *record.Entity) error {
	r, err := f.build(e)
	if err != nil {
		return err
	}
	attributes := []string{"type", "Bibliographic"}
	if !f.options.Collection {
		attributes = append(rootAttributes(), attributes...)
	}
	w.Start("record", attributes...)
	r.write(w)
	w.End()
	return nil
}

// Close writes the end of the collection, if it is one.
func (f *Format) Close(w *xmlstream.Writer) {
	if f.options.Collection {
		w.End()
	}
}
