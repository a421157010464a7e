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
	// Form is a DCMI type, "Sound" for a recording; empty is "Text" for an item
	// and "Collection" for what holds others.
	Form string
	// CallNumber is what a reader orders it by, "281-001".
	CallNumber string
	// CatalogID is the National Archives Identifier, digits.
	CatalogID string
	// URL is where the unit is described or can be had, http or https.
	URL string
	// Abstract is what the unit is about, History where such units come from,
	// Log what is said in it.
	Abstract, History, Log string
	Period                 Period
	// Participants take part in what is recorded, in the order of the source.
	Participants []Party
	// Unidentified says that others took part whom nobody could name.
	Unidentified bool
	// Discussed are spoken of.
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
	// Digitized are the formats in which the recording can be had.
	Digitized []string
	// Above are the units that hold this one, the highest first, whether they are
	// in the Tree or not.
	Above []Ref
	// Parent is the ID of the unit in the Tree that holds this one, or empty.
	Parent string
}

// Ref names another unit.
type Ref struct {
	Level     Level
	ID        string
	Title     string
	CatalogID string
}

// PartyKind says what sort of party somebody is.
type PartyKind string

// The kinds, in the words of cheimarros.json.
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

// HeadingKind says what a heading is about.
type HeadingKind string

// The kinds of headings that finding aids and catalogs have.
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
