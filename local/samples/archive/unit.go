package archive

// Level is the level of a unit in the hierarchy of an archive.
type Level string

// The levels, from the highest to the lowest.
const (
	LevelCollection Level = "collection"
	LevelSeries     Level = "series"
	LevelFile       Level = "file" // a tape
	LevelItem       Level = "item" // a conversation
)

// Unit is an archival unit: a conversation, a tape, a series or a collection. All fields except
// ID and Level may be empty. Texts are clean (see Clean).
type Unit struct {
	// ID is the unit's own identifier, which is unique in a Tree.
	ID    string
	Level Level
	Title string
	// AltTitle is another name of the same unit.
	AltTitle string
	// Form is a DCMI type, such as "Sound" for a recording. If it is empty, the type is "Text"
	// for an item and "Collection" for other units.
	Form string
	// CallNumber is the number by which readers order the unit, such as "281-001".
	CallNumber string
	// CatalogID is the National Archives Identifier, which has only digits.
	CatalogID string
	// URL is the http or https URL of the unit or of its description.
	URL string
	// Abstract is the subject of the unit. History is the origin of such units. Log has the
	// subjects in order.
	Abstract, History, Log string
	Period                 Period
	// Participants are the parties in the recording, in the order of the source.
	Participants []Party
	// Unidentified is true if there were other participants whose names are unknown.
	Unidentified bool
	// Discussed are the parties that the participants talk about.
	Discussed []Party
	Headings  []Heading
	// Place is the place of the recording, and Coordinates its "latitude, longitude".
	Place, Coordinates string
	// Institution holds the unit. Describer has described it.
	Institution, Describer string
	// Language is a BCP 47 tag.
	Language string
	Rights   string
	// Released is the day on which the unit was opened to the public, as YYYY-MM-DD. Release is
	// the name of that release.
	Released, Release string
	// Digitized has the formats in which the recording is available.
	Digitized []string
	// Above has the units that contain this one, the highest first, including units that are
	// not in the Tree.
	Above []Ref
	// FindingAid is the ID of the unit whose finding aid has this unit as a component, and
	// Component the position in the finding aid, from 1. They are empty and 0 for other units.
	FindingAid string
	Component  int
	// Parent is the ID of the unit in the Tree that contains this one, or empty.
	Parent string
}

// Ref identifies another unit.
type Ref struct {
	Level     Level
	ID        string
	Title     string
	CatalogID string
}

// PartyKind is the kind of a party.
type PartyKind string

// The kinds of parties, as in cheimarros.json.
const (
	Person       PartyKind = "person"
	Organization PartyKind = "organization"
)

// Party is a person or an organization.
type Party struct {
	Kind PartyKind
	// Name is the name as in the source, such as "Haldeman, H. R. (\"Bob\")".
	Name string
	// Authority is the identifier of the party in the source's name file.
	Authority string
}

// HeadingKind is the kind of a heading.
type HeadingKind string

// The kinds of headings in finding aids and catalogs.
const (
	HeadingPerson       HeadingKind = "person"
	HeadingOrganization HeadingKind = "organization"
	HeadingPlace        HeadingKind = "place"
	HeadingTopic        HeadingKind = "topic"
	HeadingGenre        HeadingKind = "genre"
)

// Heading is a term of a vocabulary.
type Heading struct {
	Kind HeadingKind
	Text string
	// URI is the URI of the term, or empty.
	URI string
}
