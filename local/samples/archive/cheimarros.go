package archive

import "slices"

import "strings"

// graph is the content of cheimarros.json: persons, places, dates, documents and their
// relations.
type graph struct {
	Entities  map[string]node `json:"entities"`
	Relations []relation      `json:"relations,omitempty"`

	self  string
	order []string // the keys of persons, in the order of their addition
}

type node struct {
	Type       string         `json:"type"`
	Label      string         `json:"label"`
	Properties map[string]any `json:"properties,omitempty"`
}

type relation struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Type   string `json:"type"`
}

type entityRef struct {
	Type string `json:"type"`
	Code string `json:"code"`
}

// graphOf returns the graph of u, which has u itself as a document.
func graphOf(u Unit) *graph {
	g := &graph{Entities: map[string]node{}, self: code("record", u.ID)}
	record := map[string]any{"identifier": u.ID}
	put(record, "callNumber", u.CallNumber)
	put(record, "catalogId", u.CatalogID)
	g.Entities[g.self] = node{Type: "document", Label: u.Title, Properties: record}

	for _, p := range u.Participants {
		g.relate(g.party(p), g.self, "participated_in")
	}
	for _, p := range u.Discussed {
		if at, known := g.Known(p); !known {
			g.relate(g.self, g.party(p), "discusses")
		} else {
			g.merge(at, p)
		}
	}
	if u.Institution != "" {
		g.relate(g.self, g.add(code("organization", u.Institution), node{Type: string(Organization), Label: u.Institution}), "held_by")
	}
	g.place(u)
	g.dates(u.Period)
	for _, h := range u.Headings {
		g.heading(h)
	}
	above := g.self
	for _, v := range slices.Backward(u.Above) {
		above = g.above(above, v)
	}
	return g
}

// add adds a node unless the key exists, and returns the key.
func (g *graph) add(key string, n node) string {
	if _, taken := g.Entities[key]; !taken {
		g.Entities[key] = n
		if n.Type == string(Person) {
			g.order = append(g.order, key)
		}
	}
	return key
}

func (g *graph) relate(source, target, kind string) {
	r := relation{source, target, kind}
	if slices.Contains(g.Relations, r) {
		return
	}
	g.Relations = append(g.Relations, r)
}

// Known returns the key of the node of a party. A person is found by any form of the name.
func (g *graph) Known(p Party) (string, bool) {
	if p.Kind == Person {
		for _, key := range g.order {
			if samePerson(g.Entities[key].Label, p.Name) {
				return key, true
			}
		}
		return "", false
	}
	key := code(string(p.Kind), shown(p.Name))
	_, ok := g.Entities[key]
	return key, ok
}

// party returns the key of the node of a party, and adds the node if no form of the party's
// name is known.
func (g *graph) party(p Party) string {
	if key, ok := g.Known(p); ok {
		return g.merge(key, p)
	}
	label := shown(p.Name)
	properties := map[string]any{}
	put(properties, "authority", p.Authority)
	if p.Kind == Person {
		return g.add(g.free(code("person", plain(label))), node{string(Person), label, properties})
	}
	return g.add(code(string(p.Kind), label), node{string(p.Kind), label, properties})
}

// free returns key, extended if necessary so that no other node uses it.
func (g *graph) free(key string) string {
	for {
		if _, taken := g.Entities[key]; !taken {
			return key
		}
		key += "_bis"
	}
}

// merge adds the name as an alternative name to the node, if it differs from the node's label.
func (g *graph) merge(key string, p Party) string {
	n := g.Entities[key]
	if n.Properties == nil {
		n.Properties = map[string]any{}
	}
	if name := shown(p.Name); name != n.Label {
		put(n.Properties, "alternateName", name)
	}
	put(n.Properties, "authority", p.Authority)
	g.Entities[key] = n
	return key
}

func (g *graph) place(u Unit) {
	if u.Place == "" {
		return
	}
	properties := map[string]any{}
	put(properties, "coordinates", u.Coordinates)
	g.relate(g.self, g.add(code("place", u.Place), node{"place", u.Place, properties}), "recorded_at")
}

// dates adds the days of the period with the known precision. The digits of a date are its
// code.
func (g *graph) dates(p Period) {
	known := p.known()
	if p.Start == "" {
		return
	}
	if known == "" || known == p.Start && p.last() != p.Start {
		g.date(p.Start, nil, "begins")
		g.date(p.last(), nil, "ends")
		return
	}
	properties := map[string]any{}
	if p.DayEstimated {
		properties["certainty"] = "estimated"
		properties["earliest"] = p.Start
		properties["latest"] = p.last()
	}
	g.date(known, properties, "recorded_on")
}

func (g *graph) date(day string, properties map[string]any, how string) {
	key := "date_" + strings.ReplaceAll(day, "-", "_")
	g.relate(g.self, g.add(key, node{"date", day, properties}), how)
}

func (g *graph) heading(h Heading) {
	var key string
	switch h.Kind {
	case HeadingPerson:
		key = g.party(Party{Kind: Person, Name: h.Text})
	case HeadingOrganization:
		key = g.party(Party{Kind: Organization, Name: h.Text})
	case HeadingPlace:
		key = g.add(code("place", h.Text), node{Type: "place", Label: h.Text})
	default:
		properties := map[string]any{}
		if h.Kind == HeadingGenre {
			properties["role"] = "genre"
		}
		key = g.add(code("concept", h.Text), node{"concept", h.Text, properties})
	}
	if h.URI != "" {
		n := g.Entities[key]
		if n.Properties == nil {
			n.Properties = map[string]any{}
		}
		put(n.Properties, "uri", h.URI)
		g.Entities[key] = n
	}
	if h.Kind == HeadingGenre {
		g.relate(g.self, key, "has_form")
	} else {
		g.relate(g.self, key, "about")
	}
}

// above adds the unit that contains below, and their relation. It returns the key of the unit.
func (g *graph) above(below string, ref Ref) string {
	properties := map[string]any{"level": string(ref.Level)}
	put(properties, "catalogId", ref.CatalogID)
	key := g.add(code(string(ref.Level), ref.ID), node{"document", ref.Title, properties})
	if n := g.Entities[below]; n.Properties != nil {
		n.Properties["partOf"] = entityRef{"entity_ref", key}
	}
	g.relate(below, key, "part_of")
	return key
}

// put sets a property, unless the value is empty or the property is already set.
func put(properties map[string]any, key, value string) {
	if _, set := properties[key]; value != "" && !set {
		properties[key] = value
	}
}
