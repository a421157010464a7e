package dc

import (
	"strings"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

func (f *Format) dc(w *xmlstream.Writer, e *record.Entity) error {
	w.Start("oai_dc:dc", "xmlns:oai_dc", oaiDC, "xmlns:dc", elements, "xmlns:xsi", schemaInstance,
		"xsi:schemaLocation", oaiDC+" http://www.openarchives.org/OAI/2.0/oai_dc.xsd")
	defer w.End()
	p := e.Pinax
	if p == nil {
		p = &record.Pinax{}
	}
	title, _ := formats.Title(e)
	w.Leaf("dc:title", title)
	each(w, "dc:creator", p.Creators)
	each(w, "dc:subject", p.Subjects)
	f.graph(w, e, "dc:subject", "person", "organization", "concept")
	if err := f.descriptions(w, e, p.Description); err != nil {
		return err
	}
	w.Leaf("dc:publisher", p.Institution)
	w.Leaf("dc:date", p.Created)
	w.Leaf("dc:type", p.Type)
	fileTypes(w, e.References)
	f.identifiers(w, e, p)
	each(w, "dc:source", p.Source)
	each(w, "dc:language", p.Languages)
	f.relations(w, e)
	each(w, "dc:coverage", p.Places)
	f.graph(w, e, "dc:coverage", "place", "date")
	each(w, "dc:rights", p.Rights)
	return nil
}

func each(w *xmlstream.Writer, name string, values []string) {
	for _, value := range values {
		w.Leaf(name, value)
	}
}

func (f *Format) descriptions(w *xmlstream.Writer, e *record.Entity, summary string) error {
	var err error
	if !e.Description.Blank() {
		err = w.LeafFrom("dc:description", e.Description.Open())
	}
	w.Leaf("dc:description", summary)
	if !e.Complete() {
		w.Leaf("dc:description", "Incomplete: "+strings.Join(e.Faults, "; "))
	}
	return err
}

func (f *Format) identifiers(w *xmlstream.Writer, e *record.Entity, p *record.Pinax) {
	w.Leaf("dc:identifier", e.PI.String())
	if p.ID != e.PI.String() {
		w.Leaf("dc:identifier", p.ID)
	}
	w.Leaf("dc:identifier", formats.URI(f.options.Links.Shown(e)))
}

func (f *Format) relations(w *xmlstream.Writer, e *record.Entity) {
	for _, ref := range e.References {
		w.Leaf("dc:relation", formats.URI(ref.URL))
	}
	if !e.Parent.IsZero() {
		w.Leaf("dc:relation", formats.URI(f.options.Links.Entity(e.Parent)))
	}
	for _, child := range e.Children {
		w.Leaf("dc:relation", formats.URI(f.options.Links.Entity(child)))
	}
}

func fileTypes(w *xmlstream.Writer, references []record.Reference) {
	written := map[string]bool{}
	for _, ref := range references {
		if !written[ref.Type] {
			written[ref.Type] = true
			w.Leaf("dc:format", ref.Type)
		}
	}
}

// graph writes the nodes of the given types. In the full mode it writes a type that the graph's
// schema does not define as a subject.
func (f *Format) graph(w *xmlstream.Writer, e *record.Entity, element string, types ...string) {
	if e.Graph == nil || f.options.Graph == formats.GraphSkip {
		return
	}
	for _, node := range e.Graph.Nodes {
		for _, kind := range types {
			if node.Type == kind {
				text := node.Name()
				if kind == "date" && node.Date() != "" {
					text = node.Date()
				}
				w.Leaf(element, text)
			}
		}
		if element == "dc:subject" && f.options.Graph == formats.GraphFull && !formats.KnownNode(node.Type) {
			w.Leaf(element, node.Name())
		}
	}
}
