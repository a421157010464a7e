// Package mods writes MODS 3.8: one mods, or a modsCollection of them.
//
// The mapping is that of Arke's exporter, with these differences:
//
//   - A creator is corporate where the record or its graph shows that it is
//     (formats.Creator), not always personal.
//   - The URL to show is usage="primary"; "primary display" is deprecated
//     since 3.8.
//   - A date is marked w3cdtf only if it is one, a language iso639-2b only if that
//     standard lists it; another tag is a code without authority, other text is text.
//   - The DCMI Type is kept as genre (authority "dct", the code of MODS'
//     source list), since typeOfResource is coarser; an unknown type is a genre
//     without authority. A Collection is mixed material with collection="yes".
//   - An incomplete record says what it lacks in a note of the type metadata-status.
//   - The order is fixed: components and graph by name, children and relations as in
//     their source.
//
// Every @ID is entity-{PI}: an NCName, and unique, as an entity is written
// once. There is no IDREF: a related entity may not be in the document.
package mods

import (
	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

// Namespace is MODS version 3's.
const Namespace = "http://www.loc.gov/mods/v3"

const (
	version        = "3.8"
	schemaInstance = "http://www.w3.org/2001/XMLSchema-instance"
	schemaLocation = Namespace + " https://www.loc.gov/standards/mods/v3/mods-3-8.xsd"
)

// Format writes MODS.
type Format struct{ options formats.Options }

// New returns the format.
func New(options formats.Options) *Format { return &Format{options: options} }

// Open writes the start of the collection, if it is one.
func (f *Format) Open(w *xmlstream.Writer, _ *record.Entity) {
	w.Declaration()
	if f.options.Collection {
		w.Start("modsCollection", rootAttributes()...)
	}
}

func rootAttributes() []string {
	return []string{"xmlns", Namespace, "xmlns:xsi", schemaInstance, "xsi:schemaLocation", schemaLocation}
}

// Record writes one mods.
func (f *Format) Record(w *xmlstream.Writer, e *record.Entity) error {
	attributes := []string{"version", version, "ID", "entity-" + e.PI.String()}
	if !f.options.Collection {
		attributes = append(rootAttributes(), attributes...)
	}
	w.Start("mods", attributes...)
	f.description(w, e)
	if err := f.abstract(w, e); err != nil {
		return err
	}
	f.subjects(w, e)
	f.identifiers(w, e)
	f.location(w, e)
	f.notes(w, e)
	if err := f.related(w, e); err != nil {
		return err
	}
	f.recordInfo(w, e)
	w.End()
	return nil
}

// Close writes the end of the collection, if it is one.
func (f *Format) Close(w *xmlstream.Writer) {
	if f.options.Collection {
		w.End()
	}
}
