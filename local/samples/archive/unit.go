package archive

// Level is a unit's place in the hierarchy of an archive.
type Level string

// The levels, from the top down.
const (
	LevelCollection Level = "collection"
	LevelSeries     Level = "series"
	LevelFile       Level = "file" // a tape
	LevelItem       Level = "item" // a conversation
)

// Unit is one archival unit: a conversation, a tape, a series, a collection.
// Everything but ID and Level may be empty; texts are clean (see Clean).
type Unit struct {
	// ID is the unit's own identifier, unique in a Tree.
	ID    string
	Level Level
	Title string
	// AltTitle is another name of the same unit.
	AltTitle string
	// Form is a DCMI type, such as "Sound" for a recording. Empty is "Text" for
	// an item and "Collection" for others.
	Form string
	// CallNumber is the number by which readers order it, "281-001".
	CallNumber string
	// CatalogID is the National Archives Identifier, in digits.
	CatalogID string
	// URL is the http or https address of the unit or its description.
	URL string
	// Abstract is the subject of the unit, History the origin of such units,
	// and Log the subjects in order.
	Abstract, History, Log string
	Period                 Period
	// Participants take part in what is recorded, in the order of the source.
	Participants []Party
	// Unidentified means that there were other participants without a known
	// name.
	Unidentified bool
	// Discussed are the people who are talked about.
	Discussed []Party
	Headings  []Heading
	// Place is where it was recorded, Coordinates "latitude, longitude".
	Place, Coordinates string
	// Institution keeps the unit; Describer wrote about it.
	Institution, Describer string
	// Language is a BCP 47 tag.
	Language string
	Rights   string
	// Released is when the unit was opened to the public, YYYY-MM-DD, and Release
	// the name of that release.
	Released, Release string
	// Digitized lists the formats in which the recording is available.
	Digitized []string
	// Above are the units that contain this one, the highest first, including
	// those that are not in the Tree.
	Above []Ref
	// FindingAid is the ID of the unit whose finding aid has this one as a component, and
	// Component its place there, from 1. Empty and 0 for another unit.
	FindingAid string
	Component  int
	// Parent is the ID of the unit in the Tree that contains this one, or
	// empty.
	Parent string
}

// Ref names another unit.
type Ref struct {
	Level     Level
	ID        string
	Title     string
	CatalogID string
}

// PartyKind is the kind of a party.
type PartyKind string

// The kinds, as cheimarros.json names them.
const (
	Person       PartyKind = "person"
	Organization PartyKind = "organization"
)

// Party is a person or a body.
type Party struct {
	Kind PartyKind
	// Name is as its source gives it: "Haldeman, H. R. (\"Bob\")".
	Name string
	// Authority identifies the party in its source's name file.
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

// Heading is a term from a vocabulary.
type Heading struct {
	Kind HeadingKind
	Text string
	// URI identifies the term, or is empty.
	URI string
}
