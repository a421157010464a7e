package mods

import (
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

func (f *Format) identifiers(w *xmlstream.Writer, e *record.Entity) {
	if e.Pinax != nil {
		w.Leaf("identifier", e.Pinax.ID, "type", "local")
	}
	w.Leaf("identifier", e.PI.String(), "type", "arke-pi")
	w.Leaf("identifier", formats.URI(f.options.Links.Shown(e)), "type", "uri")
	w.Leaf("identifier", e.CID, "type", "arke-manifest-cid")
}

// location writes the institution and the addresses, in the schema's order.
func (f *Format) location(w *xmlstream.Writer, e *record.Entity) {
	w.Start("location")
	if e.Pinax != nil {
		w.Leaf("physicalLocation", e.Pinax.Institution)
	}
	w.Leaf("url", formats.URI(f.options.Links.Shown(e)), "usage", "primary", "access", "object in context")
	if e.CID != "" {
		w.Leaf("url", formats.URI(f.options.Links.Bytes(e.CID)), "displayLabel", "IPFS Manifest")
	}
	w.End()
	if e.Pinax != nil {
		for _, rights := range e.Pinax.Rights {
			w.Leaf("accessCondition", rights, "type", "use and reproduction")
		}
	}
}

func (f *Format) notes(w *xmlstream.Writer, e *record.Entity) {
	if e.Pinax != nil {
		for _, source := range e.Pinax.Source {
			w.Leaf("note", source, "type", "source")
		}
	}
	if e.Version > 0 {
		text := "Version " + strconv.Itoa(e.Version)
		if e.CID != "" {
			text += ", manifest " + e.CID
		}
		w.Leaf("note", text, "type", "version")
	}
	w.Leaf("note", place(e), "type", "hierarchy")
	f.graphNotes(w, e)
	names := make([]string, len(e.Components))
	for i, c := range e.Components {
		names[i] = c.Name
	}
	w.Leaf("note", strings.Join(names, ", "), "type", "component-inventory")
	childrenNote(w, e)
	if !e.Complete() {
		w.Leaf("note", "Incomplete: "+strings.Join(e.Faults, "; "), "type", "metadata-status")
		w.Leaf("note", "Complete the entity's components and export it again.", "type", "metadata-remediation")
	}
}

// place returns the position of the entity in the walk, as text.
func place(e *record.Entity) string {
	var text strings.Builder
	text.WriteString("Depth " + strconv.Itoa(e.Position.Depth))
	path := e.Position.Path
	if len(path) > 0 {
		text.WriteString("; parent " + path[len(path)-1].String())
	}
	text.WriteString("; path ")
	for _, pi := range path {
		text.WriteString(pi.String() + "/")
	}
	text.WriteString(e.PI.String())
	return text.String()
}

// childrenNote writes the number of children; the related items name them.
func childrenNote(w *xmlstream.Writer, e *record.Entity) {
	switch n := len(e.Children); n {
	case 0:
	case 1:
		w.Leaf("note", "1 child entity", "type", "children-inventory")
	default:
		w.Leaf("note", strconv.Itoa(n)+" child entities", "type", "children-inventory")
	}
}

func (f *Format) recordInfo(w *xmlstream.Writer, e *record.Entity) {
	w.Start("recordInfo")
	w.Leaf("recordContentSource", "Arke Institute")
	w.Leaf("recordCreationDate", e.Timestamp, "encoding", formats.Encoding(e.Timestamp))
	w.Leaf("recordIdentifier", e.PI.String(), "source", "arke-pi")
	if e.Pinax != nil {
		w.Leaf("descriptionStandard", "pinax")
	}
	w.End()
}
