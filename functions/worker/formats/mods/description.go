package mods

import (
	"strings"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/formats/xmlstream"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

// description writes title, names, type, date and language.
func (f *Format) description(w *xmlstream.Writer, e *record.Entity) {
	title, ok := formats.Title(e)
	kind := ""
	if !ok {
		kind = "alternative"
	}
	w.Start("titleInfo", "type", kind)
	w.Leaf("title", title)
	w.End()

	p := e.Pinax
	if p == nil {
		return
	}
	for _, creator := range p.Creators {
		name(w, string(formats.Creator(e, creator)), creator, "creator")
	}
	if p.Institution != "" {
		name(w, string(formats.Corporate), p.Institution, "repository")
	}
	resourceType(w, p.Type)
	if p.Created != "" {
		w.Start("originInfo")
		w.Leaf("dateCreated", p.Created, "encoding", formats.Encoding(p.Created), "keyDate", "yes")
		w.End()
	}
	for _, tag := range p.Languages {
		language(w, tag)
	}
}

func name(w *xmlstream.Writer, kind, text, role string) {
	w.Start("name", "type", kind)
	w.Leaf("namePart", text)
	w.Start("role")
	w.Leaf("roleTerm", role, "type", "text", "authority", "marcrelator")
	w.End()
	w.End()
}

// resources are the values of typeOfResource, from MODS' list, by DCMI Type.
var resources = map[string]string{
	"text": "text", "event": "text", "service": "text",
	"image": "still image", "stillimage": "still image",
	"movingimage":         "moving image",
	"sound":               "sound recording",
	"dataset":             "software, multimedia",
	"interactiveresource": "software, multimedia",
	"software":            "software, multimedia",
	"collection":          "mixed material",
	"physicalobject":      "three dimensional object",
}

func resourceType(w *xmlstream.Writer, dcmi string) {
	if dcmi == "" {
		return
	}
	key := strings.ToLower(dcmi)
	resource, known := resources[key]
	if !known {
		w.Leaf("genre", dcmi)
		return
	}
	collection := ""
	if key == "collection" {
		collection = "yes"
	}
	w.Leaf("typeOfResource", resource, "collection", collection)
	w.Leaf("genre", dcmi, "authority", "dct")
}

func language(w *xmlstream.Writer, tag string) {
	w.Start("language")
	defer w.End()
	if code, ok := formats.Language(tag); ok {
		w.Leaf("languageTerm", code, "type", "code", "authority", "iso639-2b")
		return
	}
	kind := "text"
	if formats.IsLanguageTag(tag) {
		kind = "code"
	}
	w.Leaf("languageTerm", tag, "type", kind)
}

// abstract writes the narrative, or else the record's own description. If there are both, the
// description is a note.
func (f *Format) abstract(w *xmlstream.Writer, e *record.Entity) error {
	summary := ""
	if e.Pinax != nil {
		summary = e.Pinax.Description
	}
	if e.Description.Blank() {
		w.Leaf("abstract", summary)
		return nil
	}
	err := w.LeafFrom("abstract", e.Description.Open())
	w.Leaf("note", summary, "type", "summary")
	return err
}
