package ead

import (
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

// period reads the machine-readable time of the event, or else the text of the event and of
// unitdate. unitdate/@normal counts only if the text of unitdate agrees with it, because all
// finding aids of the White House Tapes have 1971-02-16 there.
func (d *document) period() archive.Period {
	var p archive.Period
	event := d.desc.withID("odd", "conversationDateTime")
	p, ok := archive.ParsePeriod(event.attr("altrender"))
	if !ok {
		start, known := archive.ParseDay(event.withID("p", "startDate").words())
		if known {
			p.Start, ok = start, true
			if end, known := archive.ParseDay(event.withID("p", "endDate").words()); known && end >= start {
				p.End = end
			}
		}
	}
	p.DayEstimated = uncertain(event.withID("p", "dateCertainty").words())
	p.ClockEstimated = uncertain(event.withID("p", "timeCertainty").words())
	if ok {
		return p
	}
	for _, date := range d.did.all("unitdate") {
		if told, known := unitDate(date); known {
			return told
		}
	}
	return archive.Period{}
}

func uncertain(word string) bool { return word != "" && !strings.EqualFold(word, "certain") }

func unitDate(date *node) (archive.Period, bool) {
	text := date.words()
	guessed := strings.HasPrefix(strings.ToLower(text), "c")
	if day, ok := archive.ParseDay(text); ok {
		return archive.Period{Start: day}, true
	}
	p, ok := archive.ParsePeriod(date.attr("normal"))
	if !ok || !strings.Contains(text, p.Start[:4]) {
		return archive.Period{}, false
	}
	p.DayEstimated = guessed
	return p, true
}

// parties reads the participants and the people who were discussed.
func (d *document) parties(u *archive.Unit) {
	origin := d.did.withID("origination", "participants")
	if origin == nil { // in older and other finding aids, the origin of the unit
		for _, o := range d.did.elements("origination") {
			if o.attr("id") == "" {
				origin = o
				break
			}
		}
	}
	for _, name := range origin.all("persname", "corpname", "famname", "name") {
		p := party(name)
		switch {
		case p.Name == "":
		case archive.Unidentified(p.Name):
			u.Unidentified = true
		case !slices.Contains(u.Participants, p):
			u.Participants = append(u.Participants, p)
		}
	}
	for _, id := range []string{"peopleDiscussed", "organizationsDiscussed"} {
		for _, name := range d.desc.withID("controlaccess", id).all("persname", "corpname", "famname", "name") {
			p := party(name)
			if p.Name != "" && !archive.Unidentified(p.Name) && !slices.Contains(u.Participants, p) && !slices.Contains(u.Discussed, p) {
				u.Discussed = append(u.Discussed, p)
			}
		}
	}
}

func party(n *node) archive.Party {
	kind := archive.Person
	if n.name == "corpname" {
		kind = archive.Organization
	}
	return archive.Party{Kind: kind, Name: n.words(), Authority: n.attr("authfilenumber")}
}

// headings returns the access points of the finding aid that have a vocabulary, without
// duplicates. They include places and topics of the conversation.
func (d *document) headings() []archive.Heading {
	var found []archive.Heading
	add := func(n *node) {
		h := archive.Heading{Text: n.words(), URI: httpURL(n.attr("authfilenumber"))}
		switch n.name {
		case "persname", "famname":
			h.Kind = archive.HeadingPerson
		case "corpname":
			h.Kind = archive.HeadingOrganization
		case "geogname":
			h.Kind = archive.HeadingPlace
		case "subject", "function", "occupation":
			h.Kind = archive.HeadingTopic
		case "genreform":
			h.Kind = archive.HeadingGenre
		default:
			return
		}
		if h.Text != "" && !slices.ContainsFunc(found, func(k archive.Heading) bool { return k.Kind == h.Kind && k.Text == h.Text }) {
			found = append(found, h)
		}
	}
	var walk func(n *node)
	walk = func(n *node) {
		for _, c := range n.elements() {
			switch {
			case c.name != "controlaccess":
				add(c)
			case !apart[c.attr("id")]:
				walk(c)
			}
		}
	}
	for _, access := range d.desc.elements("controlaccess") {
		if !apart[access.attr("id")] {
			walk(access)
		}
	}
	return found
}

// apart has the access points that other functions read, or that do not describe the unit (the
// legal categories of the review).
var apart = map[string]bool{
	"recordingLocation": true, "peopleDiscussed": true, "organizationsDiscussed": true, "PRMPAdeedCategories": true,
}

// above returns the units that contain this unit, the highest first.
func (d *document) above() []archive.Ref {
	var refs []archive.Ref
	for _, holder := range []struct {
		id    string
		level archive.Level
	}{
		{"parentCollection", archive.LevelCollection},
		{"parentSeries", archive.LevelSeries},
		{"parentFile", archive.LevelFile},
	} {
		n := d.desc.withID("archref", holder.id)
		if n == nil {
			continue
		}
		ref := archive.Ref{
			Level:     holder.level,
			ID:        n.attr("href"),
			Title:     n.first("unittitle").words(),
			CatalogID: digits(n.first("unitid").words()),
		}
		if ref.ID == "" && ref.CatalogID != "" {
			ref.ID = "naid-" + ref.CatalogID
		}
		ref.ID = firstOf(ref.ID, ref.Title)
		ref.Title = firstOf(ref.Title, ref.ID)
		if ref.ID != "" {
			refs = append(refs, ref)
		}
	}
	return refs
}
