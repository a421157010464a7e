package archive

import (
	"bytes"
	"encoding/json"
	"slices"
)

// pinax is the content of pinax.json. Its fields have the order of the schema.
type pinax struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Type        string   `json:"type"`
	Creator     []string `json:"creator,omitempty"`
	Institution string   `json:"institution,omitempty"`
	Created     string   `json:"created,omitempty"`
	Language    string   `json:"language,omitempty"`
	Subjects    []string `json:"subjects,omitempty"`
	Description string   `json:"description,omitempty"`
	AccessURL   string   `json:"access_url"`
	Source      string   `json:"source,omitempty"`
	Rights      string   `json:"rights,omitempty"`
	Place       []string `json:"place,omitempty"`
}

// pinaxOf returns the pinax of u, which has the PI pi.
func pinaxOf(u Unit, pi string) pinax {
	p := pinax{
		ID:          pi,
		Title:       u.Title,
		Type:        u.form(),
		Institution: u.Institution,
		Created:     u.Period.Created(),
		Language:    u.Language,
		Description: u.Abstract,
		AccessURL:   u.URL,
		Source:      u.source(),
		Rights:      u.Rights,
	}
	if p.Title == "" {
		p.Title = u.ID
	}
	for _, party := range u.Participants {
		if name := shown(party.Name); !slices.Contains(p.Creator, name) {
			p.Creator = append(p.Creator, name)
		}
	}
	if len(p.Creator) == 0 {
		for _, stand := range []string{u.Describer, u.Institution} {
			if stand != "" {
				p.Creator = []string{stand}
				break
			}
		}
	}
	for _, h := range u.Headings {
		if h.Kind == HeadingTopic && !slices.Contains(p.Subjects, h.Text) {
			p.Subjects = append(p.Subjects, h.Text)
		}
	}
	if p.AccessURL == "" {
		p.AccessURL = "https://arke.institute/" + pi
	}
	if u.Place != "" {
		p.Place = []string{u.Place}
	}
	return p
}

func (u Unit) form() string {
	switch {
	case u.Form != "":
		return u.Form
	case u.Level == LevelItem:
		return "Text"
	}
	return "Collection"
}

// source returns the titles of the units that contain the unit, the highest first.
func (u Unit) source() string {
	var b bytes.Buffer
	for i, ref := range u.Above {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(ref.Title)
		if ref.CatalogID != "" {
			b.WriteString(" (National Archives Identifier " + ref.CatalogID + ")")
		}
	}
	return b.String()
}

// encode returns indented JSON in which & and < are not escaped.
func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(v) //nolint:errchkjson // strings, numbers and maps of them: JSON can say them all
	return b.Bytes()
}
