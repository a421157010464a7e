// Package dc writes simple Dublin Core: one oai_dc:dc, or many of them in an
// OAI-PMH ListRecords answer, since oai_dc has no collection of its own.
//
// The mapping is pinax's own (its schema's DC column), and for the rest the
// Library of Congress's from MODS to DC:
//
//	title                    title, or a placeholder
//	creator                  creator
//	subjects; graph          subject: topics, persons, organizations, concepts
//	description.md, summary  description, one each
//	institution              publisher
//	created                  date
//	type                     type (DCMI Type, as written)
//	type, size of files      format: MIME types, each once
//	pi, id, access_url       identifier
//	source                   source
//	language                 language (as written, BCP 47)
//	parent, children, files  relation: addresses
//	place; graph             coverage: places and dates
//	rights                   rights
//
// OCR, inventories and the graph's notes have no element in Dublin Core and are omitted. An
// incomplete record says so in a description.
//
// The envelope is the same on every run: its date is that of the root, and its URL that of the
// public API. It has no resumption token, because it is complete.
package dc

import (
	"time"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

const (
	oaiPMH         = "http://www.openarchives.org/OAI/2.0/"
	oaiDC          = "http://www.openarchives.org/OAI/2.0/oai_dc/"
	elements       = "http://purl.org/dc/elements/1.1/"
	schemaInstance = "http://www.w3.org/2001/XMLSchema-instance"
)

// Format writes Dublin Core.
type Format struct{ options formats.Options }

// New returns the format.
func New(options formats.Options) *Format { return &Format{options: options} }

// Open writes the start of the answer, if there are many records.
func (f *Format) Open(w *xmlstream.Writer, root *record.Entity) {
	w.Declaration()
	if !f.options.Collection {
		return
	}
	w.Start("OAI-PMH", "xmlns", oaiPMH, "xmlns:xsi", schemaInstance,
		"xsi:schemaLocation", oaiPMH+" http://www.openarchives.org/OAI/2.0/OAI-PMH.xsd")
	w.Leaf("responseDate", stamp(root.Time()))
	w.Leaf("request", formats.URI(f.options.Links.API), "verb", "ListRecords", "metadataPrefix", "oai_dc")
	w.Start("ListRecords")
}

// Record writes one oai_dc:dc, in a record of the answer if there are many.
func (f *Format) Record(w *xmlstream.Writer, e *record.Entity) error {
	if !f.options.Collection {
		return f.dc(w, e)
	}
	w.Start("record")
	w.Start("header")
	w.Leaf("identifier", "oai:arke.institute:"+e.PI.String())
	w.Leaf("datestamp", stamp(e.Time()))
	w.End()
	w.Start("metadata")
	err := f.dc(w, e)
	w.End()
	w.End()
	return err
}

// Close writes the end of the answer.
func (f *Format) Close(w *xmlstream.Writer) {
	if f.options.Collection {
		w.End()
		w.End()
	}
}

// stamp formats a time as OAI-PMH's UTC time, to the second.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05Z") }
