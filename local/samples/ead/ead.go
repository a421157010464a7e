// Package ead parses finding aids in Encoded Archival Description 2002. Each describes one
// archival unit, such as those that the National Archives published for the conversations of
// the White House Tapes.
//
// It accepts the EAD namespace with any prefix, no namespace, or a DOCTYPE. It accepts every
// encoding that a browser supports, and finding aids in which any element is missing. Input
// that is not well-formed XML is an error, and XML of another kind is ErrOther. It reads no DTD
// and follows no link.
//
// It drops known errors of those finding aids: a date in unitdate/@normal that its own text
// contradicts, UTC offsets, the placeholder at the end of an abstract, "discussed" people who
// are only the participants again, unidentified parties, and texts that are the same in all of
// them (access, acquisition, arrangement). Parse returns one unit for a finding aid. ParseAll
// also returns the components that have an id as units.
package ead

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

// ErrOther is the error for a document that is well-formed XML but not EAD.
var ErrOther = errors.New("not an EAD finding aid")

// Parse parses one finding aid. If the finding aid has no identifier, its ID is fallback, which
// is usually the name of the file.
func Parse(r io.Reader, fallback string) (archive.Unit, error) {
	units, err := ParseAll(r, fallback)
	if err != nil {
		return archive.Unit{}, err
	}
	return units[0], nil
}

// subjectLog matches the start of a subtitle that describes the finding aid instead of the
// recording.
var subjectLog = regexp.MustCompile(`^A Subject Log of (?:the )?`)

// document has the three parts of a finding aid that are read. Each part may be nil.
type document struct {
	header, desc, did *node
}

func (d *document) unit(fallback string) archive.Unit {
	u := archive.Unit{
		ID:          firstOf(d.header.child("eadid").words(), fallback),
		Level:       d.level(),
		Title:       d.title(),
		AltTitle:    subjectLog.ReplaceAllString(d.header.first("subtitle").words(), ""),
		CallNumber:  d.callNumber(),
		CatalogID:   d.catalogID(),
		URL:         httpURL(d.header.child("eadid").attr("url")),
		Abstract:    d.abstract(),
		History:     d.history(),
		Log:         d.desc.child("dsc").words("head"),
		Period:      d.period(),
		Place:       d.place().words(),
		Coordinates: d.place().attr("normal"),
		Institution: d.did.child("repository").words("address"),
		Describer:   d.header.first("author").words(),
		Language:    languageTag(d.did.child("langmaterial").first("language")),
		Rights:      d.rights(),
		Digitized:   d.digitized(),
		Headings:    d.headings(),
		Above:       d.above(),
	}
	if corp := d.did.child("repository").first("corpname").words(); corp != "" {
		u.Institution = corp
	}
	u.Title = firstOf(u.Title, u.ID)
	u.Form = d.form(u)
	d.parties(&u)
	if release := d.desc.withID("archref", "chronRelease"); release != nil {
		u.Release = release.first("unittitle").words()
	}
	for _, date := range d.desc.all("date") {
		if date.attr("type") == "releaseDate" {
			u.Released, _ = archive.ParseDay(firstOf(date.attr("normal"), date.words()))
		}
	}
	return u
}

func (d *document) title() string {
	if t := d.did.child("unittitle").words("unitdate"); t != "" {
		return strings.TrimRight(t, " ,")
	}
	var formal string
	for _, t := range d.header.all("titleproper") {
		words := strings.TrimRight(t.words("date"), " ,")
		if t.attr("type") == "filing" && words != "" {
			return words
		}
		formal = firstOf(formal, words)
	}
	return formal
}

// level returns the level in archdesc/@level, or LevelItem if the value is missing or unknown.
func (d *document) level() archive.Level {
	level := d.desc.attr("level")
	if level == "otherlevel" {
		level = d.desc.attr("otherlevel")
	}
	switch strings.ToLower(level) {
	case "collection", "fonds", "recordgrp":
		return archive.LevelCollection
	case "series", "subseries", "subfonds", "subgrp", "class":
		return archive.LevelSeries
	case "file", "audiotape", "tape":
		return archive.LevelFile
	}
	return archive.LevelItem
}

func (d *document) callNumber() string {
	for _, id := range d.did.elements("unitid") {
		if id.attr("type") != "naId" {
			return id.words()
		}
	}
	return ""
}

func (d *document) catalogID() string {
	for _, id := range d.did.elements("unitid") {
		if id.attr("type") == "naId" {
			return digits(id.words())
		}
	}
	return ""
}

func (d *document) abstract() string {
	var found []string
	for _, a := range d.did.elements("abstract") {
		if a.attr("id") == "summaryAbstract" {
			return archive.CutPlaceholder(a.words())
		}
		if a.attr("id") != "historicalAbstract" {
			found = append(found, archive.CutPlaceholder(a.words()))
		}
	}
	if len(found) > 0 {
		return joinParagraphs(found)
	}
	scope := d.desc.withID("scopecontent", "conversationSummary")
	if outer := d.desc.child("scopecontent"); scope == nil && outer.attr("id") == "" && len(outer.elements("scopecontent")) == 0 {
		scope = outer
	}
	return paragraphs(scope)
}

func (d *document) history() string { return paragraphs(d.desc.child("bioghist")) }

// paragraphs returns the texts of the <p> elements below n, or the text of n if it has no <p>.
func paragraphs(n *node) string {
	var found []string
	for _, p := range n.all("p") {
		found = append(found, archive.CutPlaceholder(p.words()))
	}
	if found == nil {
		return archive.CutPlaceholder(n.words("head"))
	}
	return joinParagraphs(found)
}

func joinParagraphs(texts []string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), "\n\n")
}

func (d *document) place() *node {
	return d.desc.withID("controlaccess", "recordingLocation").child("geogname")
}

// rights returns the linked licence, or else the first text about use.
func (d *document) rights() string {
	var use *node
	for _, n := range d.desc.all("userestrict") {
		use = n
		break
	}
	for _, link := range use.all("extref", "extptr") {
		if href := httpURL(link.attr("href")); strings.Contains(href, "creativecommons.org/") || strings.Contains(href, "rightsstatements.org/") {
			if title := archive.Clean(link.attr("title")); title != "" {
				return title + " (" + href + ")"
			}
			return href
		}
	}
	for _, p := range use.all("p") {
		if words := p.words(); words != "" {
			return words
		}
	}
	return use.words("head")
}

func (d *document) digitized() []string {
	var formats []string
	for _, alt := range d.desc.all("altformavail") {
		if format := archive.Clean(alt.attr("type")); format != "" && len(alt.elements("altformavail")) == 0 {
			formats = append(formats, format)
		}
	}
	return formats
}

// forms maps patterns to DCMI types.
var forms = []struct {
	words *regexp.Regexp
	form  string
}{
	{regexp.MustCompile(`audio|sound|mp3|\bwav`), "Sound"},
	{regexp.MustCompile(`video|film|motion|moving`), "MovingImage"},
	{regexp.MustCompile(`photo|slide|negative|\bprints?\b|poster|drawing`), "StillImage"},
}

// form returns the DCMI type that the formats, the genre or the physical description imply, or
// else the default type of the level.
func (d *document) form(u archive.Unit) string {
	if u.Level == archive.LevelCollection || u.Level == archive.LevelSeries {
		return "Collection"
	}
	told := strings.ToLower(strings.Join(u.Digitized, " "))
	for _, alt := range d.desc.all("altformavail") {
		told += " " + strings.ToLower(alt.attr("type"))
	}
	for _, h := range u.Headings {
		if h.Kind == archive.HeadingGenre {
			told += " " + strings.ToLower(h.Text)
		}
	}
	told += " " + strings.ToLower(d.did.child("physdesc").words())
	for _, known := range forms {
		if known.words.MatchString(told) {
			return known.form
		}
	}
	if u.Level == archive.LevelFile {
		return "Collection"
	}
	return "Text"
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func httpURL(s string) string {
	if strings.HasPrefix(s, "http://") || strings.HasPrefix(s, "https://") {
		if !strings.ContainsAny(s, " \t\n<>\"") {
			return s
		}
	}
	return ""
}

func digits(s string) string {
	if s != "" && strings.Trim(s, "0123456789") == "" {
		return s
	}
	return ""
}

// languageTag returns the BCP 47 tag of a language element, for example "en" for <language
// langcode="eng">. It returns "" without a valid language.
func languageTag(n *node) string {
	tag, err := language.Parse(n.attr("langcode"))
	if err != nil || tag == language.Und {
		return ""
	}
	return tag.String()
}
