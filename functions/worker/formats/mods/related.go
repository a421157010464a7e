package mods

import (
	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

// related writes the entity's files, other parts, parent and children.
func (f *Format) related(w *xmlstream.Writer, e *record.Entity) error {
	for _, ref := range e.References {
		if err := f.file(w, ref); err != nil {
			return err
		}
	}
	for _, c := range e.Others {
		w.Start("relatedItem", "type", "constituent", "displayLabel", c.Name)
		if c.CID == "" {
			w.Leaf("identifier", c.Name, "type", "local")
		} else {
			w.Leaf("identifier", c.CID, "type", "ipfs-cid")
			w.Leaf("identifier", formats.URI(f.options.Links.Bytes(c.CID)), "type", "uri")
			w.Leaf("identifier", formats.URI(f.options.Links.Cat(c.CID)), "type", "uri")
		}
		w.End()
	}
	if !e.Parent.IsZero() {
		f.entity(w, "host", e.Parent)
	}
	for _, child := range e.Children {
		f.entity(w, "constituent", child)
	}
	return nil
}

func (f *Format) file(w *xmlstream.Writer, ref record.Reference) error {
	w.Start("relatedItem", "type", "constituent", "displayLabel", ref.Filename)
	defer w.End()
	w.Leaf("identifier", formats.URI(ref.URL), "type", "uri")
	w.Leaf("identifier", ref.CID, "type", "ipfs-cid")
	if ref.Type != "" || ref.Size != "" {
		w.Start("physicalDescription")
		w.Leaf("internetMediaType", ref.Type)
		if ref.Size != "" {
			w.Leaf("extent", ref.Size+" bytes")
		}
		w.End()
	}
	if !f.options.OCR || ref.OCR.Blank() {
		return nil
	}
	return w.LeafFrom("note", ref.OCR.Open(), "type", "ocr")
}

func (f *Format) entity(w *xmlstream.Writer, kind string, pi record.PI) {
	w.Start("relatedItem", "type", kind)
	w.Leaf("identifier", pi.String(), "type", "arke-pi")
	w.Start("location")
	w.Leaf("url", formats.URI(f.options.Links.Entity(pi)))
	w.End()
	w.End()
}
