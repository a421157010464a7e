package marcxml

import (
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/record"
)

// build fills the record. It starts with the most important fields, because a full record omits
// the last ones.
func (f *Format) build(e *record.Entity) (*marc, error) {
	p := e.Pinax
	if p == nil {
		p = &record.Pinax{}
	}
	m := &marc{leader: leader(p.Type)}
	f.controlFields(m, e, p)
	m.add("040", "  ", "a", "Arke Institute")
	languages(m, p.Languages)
	title, _ := formats.Title(e)
	main := f.names(m, e, p)
	m.add("245", main+"0", "a", title)
	m.add("264", " 0", "c", p.Created)
	m.add("852", "  ", "a", p.Institution)
	m.add("856", "40", "u", formats.URI(f.options.Links.Shown(e)))
	for _, rights := range p.Rights {
		m.add("540", "  ", "a", rights)
	}
	if err := f.notes(m, e, p); err != nil {
		return nil, err
	}
	if !e.Parent.IsZero() {
		m.add("773", "0 ", "w", "(arke-pi)"+e.Parent.String())
	}
	f.subjects(m, e, p)
	f.addresses(m, e)
	for _, child := range e.Children {
		m.add("774", "0 ", "w", "(arke-pi)"+child.String())
	}
	return m, nil
}

// leader returns the 24 characters: new, by type, monograph or collection, UTF-8. Lengths are
// blank, as required by MARCXML.
func leader(dcmi string) string {
	kind, level := "a", "m"
	switch strings.ToLower(dcmi) {
	case "image", "stillimage":
		kind = "k"
	case "movingimage":
		kind = "g"
	case "sound":
		kind = "i"
	case "physicalobject":
		kind = "r"
	case "dataset", "interactiveresource", "software":
		kind = "m"
	case "collection":
		kind, level = "p", "c"
	}
	return "     n" + kind + level + " a22     uu 4500"
}

func (f *Format) controlFields(m *marc, e *record.Entity, p *record.Pinax) {
	at := e.Time()
	control := func(tag, text string) {
		m.control = append(m.control, field{tag: tag, subfields: []subfield{{text: text}}})
	}
	control("001", e.PI.String())
	control("003", "arke-pi")
	control("005", at.Format("20060102150405.0"))
	dates := "n" + "uuuu" + "uuuu" // dates unknown
	if year := formats.Year(p.Created); year != "" {
		dates = "s" + year + "    "
	}
	language := "und"
	for _, tag := range p.Languages {
		if code, ok := formats.Language(tag); ok {
			language = code
			break
		}
	}
	// 00-05 entered, 06-14 dates, 15-17 place: unknown, 18-34 not coded,
	// 35-37 language, 38 not modified, 39 other source.
	control("008", at.Format("060102")+dates+"xx "+strings.Repeat("|", 17)+language+" d")
}

func languages(m *marc, tags []string) {
	var pairs []string
	for _, tag := range tags {
		if code, ok := formats.Language(tag); ok {
			pairs = append(pairs, "a", code)
		}
	}
	m.add("041", "0 ", pairs...)
}

// names adds the first creator as the only main entry, which is not repeatable, and all other
// names as added entries. It returns the title's first indicator: whether there is a main
// entry.
func (f *Format) names(m *marc, e *record.Entity, p *record.Pinax) string {
	main, entry := "0", "1"
	for _, creator := range p.Creators {
		kind := formats.Creator(e, creator)
		tag, indicators := nameField(kind, creator)
		m.add(entry+tag, indicators+" ", "a", creator, "e", "creator")
		main, entry = "1", "7"
	}
	m.add("710", "2 ", "a", p.Institution, "e", "repository")
	return main
}

// nameField returns the last two digits of a name's tag and its first indicator. A corporate
// body is in direct order. A person is by surname, or by forename if the name is not inverted.
func nameField(kind formats.NameType, text string) (tag, indicator string) {
	switch {
	case kind == formats.Corporate:
		return "10", "2"
	case strings.Contains(text, ","):
		return "00", "1"
	}
	return "00", "0"
}

func (f *Format) notes(m *marc, e *record.Entity, p *record.Pinax) error {
	if !e.Description.Blank() {
		text, err := head(e.Description.Open())
		if err != nil {
			return err
		}
		m.add("520", "  ", "a", text)
	}
	m.add("520", "  ", "a", p.Description)
	for _, source := range p.Source {
		m.add("500", "  ", "a", "Source: "+source)
	}
	if e.Version > 0 {
		m.add("500", "  ", "a", "Version "+strconv.Itoa(e.Version))
	}
	if !e.Complete() {
		m.add("500", "  ", "a", "Incomplete: "+strings.Join(e.Faults, "; "))
	}
	return nil
}

func (f *Format) subjects(m *marc, e *record.Entity, p *record.Pinax) {
	for _, topic := range p.Subjects {
		m.add("650", " 4", "a", topic)
	}
	for _, place := range p.Places {
		m.add("651", " 4", "a", place)
	}
	if e.Graph == nil || f.options.Graph == formats.GraphSkip {
		return
	}
	for _, node := range e.Graph.Nodes {
		label := node.Name()
		switch node.Type {
		case "person", "organization":
			kind := formats.Personal
			if node.Type == "organization" {
				kind = formats.Corporate
			}
			tag, indicator := nameField(kind, label)
			m.add("6"+tag, indicator+"4", "a", label)
		case "place":
			m.add("651", " 4", "a", label)
		case "concept":
			m.add("650", " 4", "a", label)
		case "date":
			if date := node.Date(); date != "" {
				label = date
			}
			m.add("648", " 4", "a", label)
		default:
			if f.options.Graph == formats.GraphFull && !formats.KnownNode(node.Type) {
				m.add("650", " 4", "a", label)
			}
		}
	}
}

// addresses adds the URLs of the manifest and the files.
func (f *Format) addresses(m *marc, e *record.Entity) {
	if e.CID != "" {
		m.add("856", "42", "3", "IPFS Manifest", "u", formats.URI(f.options.Links.Bytes(e.CID)))
	}
	for _, ref := range e.References {
		size := ref.Size
		if size != "" {
			size += " bytes"
		}
		m.add("856", "40", "3", ref.Filename, "u", formats.URI(ref.URL), "q", ref.Type, "s", size)
	}
	for _, c := range e.Others {
		if c.CID != "" {
			m.add("856", "40", "3", c.Name, "u", formats.URI(f.options.Links.Bytes(c.CID)))
		}
	}
}
