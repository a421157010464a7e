// Package nara parses data of the U.S. National Archives about the White House Tapes, besides
// finding aids. These are lists of conversations in JSON, and the catalog records of the tapes
// in XML.
//
// Input that cannot be parsed is an error. Known defects of the data are corrected. Character
// references in JSON strings are resolved, including the mistyped &wuot;. Repeated participants
// are merged. Unidentified participants are replaced by a flag. UTC offsets are dropped,
// because they are -05:00 even in summer. A tape with the number of another tape is identified
// by its title.
package nara

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

// ErrOther is the error for well-formed JSON or XML of another kind.
var ErrOther = errors.New("not a list of the White House Tapes")

// conversation has the fields of a list entry that are read.
type conversation struct {
	Number   string `json:"conversationNumber"`
	Tape     string `json:"tapeNumber"`
	ID       string `json:"identifier"`
	Title    string `json:"title"`
	Abstract string `json:"description"`
	DateTime struct {
		DateCertain string `json:"dateCertainty"`
		TimeCertain string `json:"timeCertainty"`
		StartTime   string `json:"startDateTime"`
		EndTime     string `json:"endDateTime"`
	} `json:"dateTime"`
	IsPartOf []struct {
		ID    string `json:"identifier"`
		Level string `json:"level"`
		Title string `json:"title"`
		URI   string `json:"uri"`
	} `json:"isPartOf"`
	Location struct {
		Code   string `json:"locationCode"`
		Device string `json:"recordingDevice"`
		Geo    struct {
			Latitude  string `json:"latitude"`
			Longitude string `json:"longitude"`
		} `json:"geo"`
	} `json:"location"`
	Access []struct {
		Contact struct {
			Name string `json:"name"`
		} `json:"contactPoint"`
	} `json:"access"`
	Participants []struct {
		ID   string `json:"identifier"`
		Name string `json:"name"`
		Type string `json:"type"`
	} `json:"participants"`
	Releases []struct {
		Type   string `json:"type"`
		Name   string `json:"releaseName"`
		Issued string `json:"issueDate"`
	} `json:"publicReleases"`
}

// ParseConversations parses a list of conversations. The Above of a unit ends with its tape,
// which is also its Parent and has the ID TapeID of the tape's number. The name of the set is
// not used, because it differs from the name of the series.
func ParseConversations(r io.Reader) ([]archive.Unit, error) {
	var list struct {
		Conversations *[]conversation `json:"conversations"`
	}
	d := json.NewDecoder(r)
	if err := d.Decode(&list); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) && kind.Field == "" {
			return nil, fmt.Errorf("%w: a JSON %s", ErrOther, kind.Value)
		}
		return nil, fmt.Errorf("cannot read the list of conversations: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("cannot read the list of conversations: data after its end")
	}
	if list.Conversations == nil {
		return nil, fmt.Errorf("%w: no conversations", ErrOther)
	}
	units := make([]archive.Unit, 0, len(*list.Conversations))
	for i, c := range *list.Conversations {
		u, err := c.unit()
		if err != nil {
			return nil, fmt.Errorf("conversation %d of the list: %w", i+1, err)
		}
		units = append(units, u)
	}
	return units, nil
}

// TapeID returns the identifier of a tape in the form that finding aids use.
func TapeID(number string) string { return "37-wht-audiotape-" + number }

func (c conversation) unit() (archive.Unit, error) {
	tape, number := archive.Clean(c.Tape), archive.Clean(c.Number)
	u := archive.Unit{
		ID:       archive.Clean(c.ID),
		Level:    archive.LevelItem,
		Title:    archive.Clean(c.Title),
		Form:     "Sound",
		Abstract: archive.CutPlaceholder(archive.Clean(c.Abstract)),
		Place:    place(archive.Clean(c.Location.Code), archive.Clean(c.Location.Device)),
		Parent:   TapeID(tape),
	}
	if u.ID == "" {
		return u, errors.New("no identifier")
	}
	if tape == "" {
		return u, fmt.Errorf("%s: no tapeNumber", u.ID)
	}
	if number != "" {
		u.CallNumber = tape + "-" + number
	}
	if lat, long := archive.Clean(c.Location.Geo.Latitude), archive.Clean(c.Location.Geo.Longitude); lat != "" && long != "" {
		u.Coordinates = lat + ", " + long
	}
	u.Period, _ = archive.ParsePeriod(c.DateTime.StartTime + "/" + c.DateTime.EndTime)
	u.Period.DayEstimated = c.DateTime.DateCertain != "" && c.DateTime.DateCertain != "certain"
	u.Period.ClockEstimated = c.DateTime.TimeCertain != "" && c.DateTime.TimeCertain != "certain"
	for _, p := range c.Participants {
		party := archive.Party{Kind: archive.Organization, Name: archive.Clean(p.Name), Authority: archive.Clean(p.ID)}
		if p.Type == "person" {
			party.Kind = archive.Person
		}
		switch {
		case party.Name == "":
		case archive.Unidentified(party.Name):
			u.Unidentified = true
		case !slices.Contains(u.Participants, party):
			u.Participants = append(u.Participants, party)
		}
	}
	for _, a := range c.Access {
		u.Institution = archive.Clean(a.Contact.Name)
	}
	for _, r := range c.Releases {
		if r.Type == "chron" {
			u.Release = archive.Clean(r.Name)
			u.Released, _ = archive.ParseDay(archive.Clean(r.Issued))
		}
	}
	for _, p := range c.IsPartOf {
		u.Above = append(u.Above, archive.Ref{
			Level:     archive.Level(p.Level),
			ID:        archive.Clean(p.ID),
			Title:     archive.Clean(p.Title),
			CatalogID: p.URI[strings.LastIndexByte(p.URI, '/')+1:],
		})
	}
	u.Above = append(u.Above, archive.Ref{Level: archive.LevelFile, ID: TapeID(tape), Title: "Audiotape " + tape})
	return u, nil
}

// place returns the place of the recording device. The list names only the device.
func place(code, device string) string {
	switch {
	case code == "CAB":
		return "Cabinet Room, White House, Washington, D.C."
	case strings.HasPrefix(code, "CD"):
		return "Camp David, Maryland"
	}
	return device
}
