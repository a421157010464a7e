package nara

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

// catalog has the fields of the tapes' catalog records that are read.
type catalog struct {
	Records []struct {
		CatalogID string `xml:"naraID,attr"`
		Number    string `xml:"audiotapeNumber"`
		Title     string `xml:"catalogTitle"`
		Dates     struct {
			Start struct {
				Normal string `xml:"normal,attr"`
			} `xml:"startDate"`
			End struct {
				Normal string `xml:"normal,attr"`
			} `xml:"endDate"`
		} `xml:"dates"`
		Contributors []term `xml:"contributors>contributor"`
		Subjects     []term `xml:"subjects>subject"`
	} `xml:"catalogRecord"`
}

type term struct {
	Type string `xml:"type,attr"`
	Text string `xml:",chardata"`
}

var lastNumber = regexp.MustCompile(`([0-9]+)\s*$`)

// ParseTapes parses catalog records and returns the tapes by number, such as "281". Their Above
// and Parent are empty. A record does not name the series of the tape, and its title is
// unreliable: it puts tape 163 into another series.
func ParseTapes(r io.Reader) (map[string]archive.Unit, error) {
	d := xml.NewDecoder(r)
	var c catalog
	for {
		token, err := d.Token()
		if err != nil {
			return nil, fmt.Errorf("cannot read the catalog records: %w", orEmpty(err))
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != "audiotapes" {
			return nil, fmt.Errorf("%w: root element <%s>", ErrOther, start.Name.Local)
		}
		if err := d.DecodeElement(&c, &start); err != nil {
			return nil, fmt.Errorf("cannot read the catalog records: %w", err)
		}
		break
	}
	tapes := make(map[string]archive.Unit, len(c.Records))
	for _, record := range c.Records {
		number, title := archive.Clean(record.Number), archive.Clean(record.Title)
		// Two records have the number 892. The title of one of them says 893.
		if m := lastNumber.FindString(title); m != "" && !sameNumber(m, number) {
			number = pad(m, len(number))
		}
		if number == "" {
			return nil, fmt.Errorf("catalog record %q has no number", archive.Clean(record.CatalogID))
		}
		if other, taken := tapes[number]; taken {
			return nil, fmt.Errorf("two catalog records for tape %s: %s and %s", number, other.CatalogID, archive.Clean(record.CatalogID))
		}
		u := archive.Unit{
			ID:        TapeID(number),
			Level:     archive.LevelFile,
			Title:     "Audiotape " + number,
			AltTitle:  title,
			Form:      "Sound",
			CatalogID: archive.Clean(record.CatalogID),
		}
		if u.CatalogID != "" {
			u.URL = "https://catalog.archives.gov/id/" + u.CatalogID
		}
		u.Period.Start, _ = archive.ParseDay(archive.Clean(record.Dates.Start.Normal))
		if end, ok := archive.ParseDay(archive.Clean(record.Dates.End.Normal)); ok && end >= u.Period.Start {
			u.Period.End = end
		}
		for _, t := range record.Contributors {
			if p, ok := t.party(); ok {
				u.Participants = append(u.Participants, p)
			}
		}
		for _, t := range record.Subjects {
			if h := t.heading(); h.Text != "" {
				u.Headings = append(u.Headings, h)
			}
		}
		tapes[number] = u
	}
	return tapes, nil
}

func orEmpty(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("no element")
	}
	return err
}

func sameNumber(a, b string) bool {
	x, errX := strconv.Atoi(strings.TrimSpace(a))
	y, errY := strconv.Atoi(b)
	return errX == nil && errY == nil && x == y
}

func pad(number string, width int) string {
	number = strings.TrimSpace(number)
	return strings.Repeat("0", max(0, width-len(number))) + number
}

func (t term) party() (archive.Party, bool) {
	p := archive.Party{Kind: archive.Person, Name: archive.Clean(t.Text)}
	if t.Type == "corpname" {
		p.Kind = archive.Organization
	}
	return p, p.Name != "" && !archive.Unidentified(p.Name)
}

func (t term) heading() archive.Heading {
	kinds := map[string]archive.HeadingKind{
		"persname": archive.HeadingPerson, "corpname": archive.HeadingOrganization, "geographic": archive.HeadingPlace,
	}
	kind, ok := kinds[t.Type]
	if !ok {
		kind = archive.HeadingTopic
	}
	return archive.Heading{Kind: kind, Text: archive.Clean(t.Text)}
}
