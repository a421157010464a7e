package mods

import (
	"strings"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

// subjects writes the record's topics and places, and the graph's nodes.
func (f *Format) subjects(w *xmlstream.Writer, e *record.Entity) {
	if e.Pinax != nil {
		for _, topic := range e.Pinax.Subjects {
			subject(w, "topic", topic)
		}
		for _, place := range e.Pinax.Places {
			subject(w, "geographic", place)
		}
	}
	if e.Graph == nil || f.options.Graph == formats.GraphSkip {
		return
	}
	for _, node := range e.Graph.Nodes {
		f.node(w, node)
	}
}

func (f *Format) node(w *xmlstream.Writer, node record.Node) {
	label := node.Name()
	switch node.Type {
	case "person":
		subjectName(w, formats.Personal, label)
	case "organization":
		subjectName(w, formats.Corporate, label)
	case "place":
		subject(w, "geographic", label)
	case "concept":
		subject(w, "topic", label)
	case "date":
		if date := node.Date(); date != "" {
			subject(w, "temporal", date, "encoding", formats.Encoding(date))
		} else {
			subject(w, "temporal", label, "encoding", formats.Encoding(label))
		}
	case "document":
	default:
		if f.options.Graph == formats.GraphFull {
			subject(w, "topic", label)
		}
	}
}

func subject(w *xmlstream.Writer, kind, text string, attributes ...string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	w.Start("subject")
	w.Leaf(kind, text, attributes...)
	w.End()
}

func subjectName(w *xmlstream.Writer, kind formats.NameType, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	w.Start("subject")
	w.Start("name", "type", string(kind))
	w.Leaf("namePart", text)
	w.End()
	w.End()
}

// graphNotes writes the properties and relations of the graph as notes.
func (f *Format) graphNotes(w *xmlstream.Writer, e *record.Entity) {
	if e.Graph == nil || f.options.Graph != formats.GraphFull {
		return
	}
	for _, node := range e.Graph.Nodes {
		for _, p := range node.Properties {
			if p.Key != "description" {
				w.Leaf("note", node.Name()+": "+p.Key+": "+strings.Join(p.Values, "; "), "type", "cheimarros-property")
			}
		}
	}
	for _, r := range e.Graph.Relations {
		w.Leaf("note", r.Source+" → "+r.Type+" → "+r.Target, "type", "cheimarros-relation")
	}
}
