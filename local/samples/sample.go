package samples

import (
	_ "embed" // the table of facts
	"fmt"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/local/samples/archive"
)

// SampleRoot is the PI of the sample's root. The examples of the export contract use the same
// PI.
const SampleRoot = "01K9XVBAQZF9EHDRXGBEADTZYY"

// The facts of the sample: the participants and times of each conversation, and the history
// that all its finding aids share. Both are from the U.S. National Archives, CC0 1.0.
var (
	//go:embed sample/tape-281.tsv
	sampleTable string
	//go:embed sample/history.txt
	sampleHistory string
)

// Sample returns tape 281 of the White House Tapes (21 October 1971) with its 71 conversations,
// which are 72 entities under SampleRoot. Its bytes are the same as FromEAD computes from the
// 71 finding aids.
func Sample() *Collection {
	units := sampleUnits()
	found := make(map[string]archive.Unit, len(units))
	for _, u := range units {
		found[u.ID] = u
	}
	c, err := fromUnits(hang(found))
	if err != nil { // the table is embedded and valid
		panic(fmt.Sprintf("invalid table of the sample: %v", err))
	}
	return c
}

type sampleParty struct {
	archive.Party
	spoken string // the name within a sentence
}

func sampleUnits() []archive.Unit {
	parties := map[string]sampleParty{}
	var units []archive.Unit
	for line := range strings.Lines(sampleTable) {
		field := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		switch {
		case strings.HasPrefix(line, "#"):
		case field[0] == "party":
			parties[field[1]] = sampleParty{
				archive.Party{Kind: archive.PartyKind(field[2]), Name: field[4], Authority: field[3]}, field[5],
			}
		default:
			units = append(units, sampleConversation(field[0], field[1], field[2], field[3], strings.Split(field[4], ","), parties))
		}
	}
	return units
}

// sampleConversation returns the unit of conversation 281-NUMBER. All finding aids use the same
// wording.
func sampleConversation(number, start, end, certainty string, codes []string, parties map[string]sampleParty) archive.Unit {
	const (
		day    = "1971-10-21"
		office = "Old Executive Office Building"
	)
	call := "281-" + number
	id := "37-wht-conversation-" + call
	u := archive.Unit{
		ID:         id,
		Level:      archive.LevelItem,
		Title:      "White House Tapes: Conversation " + call,
		Form:       "Sound",
		CallNumber: call,
		URL:        "http://nixonlibrary.gov/tapes/audiotape-281/" + id + ".xml",
		History:    strings.TrimSpace(sampleHistory),
		Period: archive.Period{
			Start: day, End: day, StartClock: start, EndClock: end, ClockEstimated: certainty == "e",
		},
		Place:       office + ", Washington, D.C.",
		Coordinates: "38.897567, -77.039147",
		Institution: "Richard Nixon Presidential Library and Museum",
		Describer:   "Richard Nixon Presidential Library and Museum",
		Language:    "en",
		Rights:      "Creative Commons License CC0 (http://creativecommons.org/publicdomain/zero/1.0/)",
		Release:     "Second Chronological Release",
		Released:    "2000-10-26",
		Digitized:   []string{"mp3", "bwf"},
		Headings: []archive.Heading{
			{Kind: archive.HeadingOrganization, Text: "United States. President (1969-1974 : Nixon)", URI: "http://id.loc.gov/authorities/names/n79007288"},
			{Kind: archive.HeadingGenre, Text: "Audiotapes", URI: "http://id.loc.gov/authorities/subjects/sh85101069"},
			{Kind: archive.HeadingPlace, Text: "United States -- Politics and government -- 1969-1974", URI: "http://id.loc.gov/authorities/subjects/sh85140471"},
			{Kind: archive.HeadingPerson, Text: "Nixon, Richard M. (Richard Milhous), 1913-1994", URI: "http://id.loc.gov/authorities/names/n79018757"},
			{Kind: archive.HeadingTopic, Text: "Presidents -- United States", URI: "http://id.loc.gov/authorities/subjects/sh85106465"},
		},
		Above: []archive.Ref{
			{Level: archive.LevelCollection, ID: "37-wht", Title: "White House Tapes", CatalogID: "597542"},
			{Level: archive.LevelSeries, ID: "37-wht-audiotape-eob", Title: "Executive Office Building Sound Recordings", CatalogID: "17409890"},
			{Level: archive.LevelFile, ID: "37-wht-audiotape-281", Title: "Audiotape 281", CatalogID: "6116850"},
		},
	}
	var spoken []string
	for i, code := range codes {
		p := parties[code]
		if archive.Unidentified(p.Name) {
			u.Unidentified = true
		} else {
			u.Participants = append(u.Participants, p.Party)
		}
		if p.Kind == archive.Organization && i == 1 && len(codes) == 2 {
			p.spoken = "the " + p.spoken
		}
		spoken = append(spoken, p.spoken)
	}
	u.AltTitle = "Conversation between " + enumerate(spoken)
	when := fmt.Sprintf("from %s to %s", spokenClock(start), spokenClock(end))
	switch {
	case certainty == "e":
		when = fmt.Sprintf("at an unknown time between %s and %s", spokenClock(start), spokenClock(end))
	case start == end:
		when = "at " + spokenClock(start)
	}
	u.Abstract = fmt.Sprintf("On October 21, 1971, %s met in the President's office in the %s %s. "+
		"The %s taping system captured this recording, which is known as Conversation %s of the White House Tapes.",
		enumerate(spoken), office, when, office, call)
	return u
}

func enumerate(names []string) string {
	switch n := len(names); n {
	case 1:
		return names[0]
	case 2:
		return names[0] + " and " + names[1]
	default:
		return strings.Join(names[:n-1], ", ") + ", and " + names[n-1]
	}
}

func spokenClock(clock string) string {
	at, err := time.Parse("15:04", clock)
	if err != nil {
		return clock
	}
	return at.Format("3:04 pm")
}
