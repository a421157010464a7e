package archive

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"regexp"
	"time"

	"github.com/sortie-dev/sortie/local/samples/cid"
	"github.com/sortie-dev/sortie/local/samples/entityapi"
)

// Tree is an immutable hierarchy of units. It implements entityapi.Source.
type Tree struct {
	units    []Unit
	pis      []string
	index    map[string]int
	parent   []int // -1 for a root
	children [][]int
	roots    []int
}

// NewTree builds the hierarchy of units. Units and children keep their order. It returns an
// error for an empty or repeated ID, an unknown parent, or a cycle.
func NewTree(units []Unit) (*Tree, error) {
	t := &Tree{
		units:    units,
		pis:      make([]string, len(units)),
		index:    make(map[string]int, len(units)),
		parent:   make([]int, len(units)),
		children: make([][]int, len(units)),
	}
	byID := make(map[string]int, len(units))
	for i, u := range units {
		if u.ID == "" {
			return nil, fmt.Errorf("unit %d (%q) has no identifier", i, u.Title)
		}
		if _, taken := byID[u.ID]; taken {
			return nil, fmt.Errorf("duplicate identifier %q", u.ID)
		}
		byID[u.ID] = i
		t.pis[i] = PI(u.ID)
		t.index[t.pis[i]] = i
	}
	for i, u := range units {
		t.parent[i] = -1
		if u.Parent == "" {
			t.roots = append(t.roots, i)
			continue
		}
		p, ok := byID[u.Parent]
		if !ok {
			return nil, fmt.Errorf("unit %q: unknown parent %q", u.ID, u.Parent)
		}
		t.parent[i] = p
		t.children[p] = append(t.children[p], i)
	}
	reached := 0
	for _, r := range t.roots {
		reached += t.Count(r)
	}
	if reached != len(units) {
		return nil, fmt.Errorf("%d units contain each other and have no root", len(units)-reached)
	}
	return t, nil
}

// Count returns the number of units in the subtree of unit i, including unit i.
func (t *Tree) Count(i int) int {
	n := 1
	for _, c := range t.children[i] {
		n += t.Count(c)
	}
	return n
}

// Unit returns unit i.
func (t *Tree) Unit(i int) Unit { return t.units[i] }

// Len returns the number of units.
func (t *Tree) Len() int { return len(t.units) }

// Index returns the index of the unit with the PI.
func (t *Tree) Index(pi string) (int, bool) {
	i, ok := t.index[pi]
	return i, ok
}

// Roots returns the PIs of the units without a parent.
func (t *Tree) Roots() []string {
	roots := make([]string, len(t.roots))
	for i, r := range t.roots {
		roots[i] = t.pis[r]
	}
	return roots
}

// Entity returns the entity of unit i, computed on each call.
func (t *Tree) Entity(i int) entityapi.Entity {
	u := t.units[i]
	e := entityapi.Entity{PI: t.pis[i], Versions: 1}
	if p := t.parent[i]; p >= 0 {
		e.Parent = t.pis[p]
	}
	below := make([]Unit, 0, len(t.children[i]))
	for _, c := range t.children[i] {
		e.Children = append(e.Children, t.pis[c])
		below = append(below, t.units[c])
	}
	if len(below) > 0 { // created before its children, then updated with them
		e.Versions = 2
	}
	e.Components, e.Attachments = Describe(u, e.PI, below)
	return e
}

// Describe returns the components of the entity with the PI pi that describes u, and the files
// that the components name. below are the children of u.
func Describe(u Unit, pi string, below []Unit) (components, attachments []entityapi.Component) {
	components = []entityapi.Component{
		component("cheimarros.json", encode(graphOf(u))),
		component("description.md", narrative(u, below)),
	}
	if u.Level == LevelItem || u.Level == LevelFile {
		file := unsafe.ReplaceAllString(u.ID, "-") + "-note.txt"
		text := component(file, note(u, below))
		attachments = append(attachments, text)
		components = append(components, component("note.ref.json", encode(refFile{
			URL:      "https://cdn.arke.institute/" + pi + "/" + file,
			CID:      text.CID,
			Type:     "text/plain; charset=utf-8",
			Size:     text.Body.Size(),
			Filename: file,
			OCR:      string(text.Body.Head),
		})))
	}
	return append(components, component("pinax.json", encode(pinaxOf(u, pi)))), attachments
}

// unsafe matches characters that a file name must not have.
var unsafe = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// refFile is the content of a *.ref.json.
type refFile struct {
	URL      string  `json:"url"`
	CID      cid.CID `json:"ipfs_cid"`
	Type     string  `json:"type"`
	Size     int64   `json:"size"`
	Filename string  `json:"filename"`
	OCR      string  `json:"ocr"`
}

func component(name string, b []byte) entityapi.Component {
	return entityapi.NewComponent(name, entityapi.Body{Head: b})
}

// samplePI is the PI of audiotape 281, the root of the sample collection. The examples of the
// export contract use the same PI.
const (
	samplePI = "01K9XVBAQZF9EHDRXGBEADTZYY"
	sampleID = "37-wht-audiotape-281"
)

var crockford = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

// catalogued is the time in every PI. It is the time in the PI of the sample's root.
var catalogued = time.Date(2025, time.November, 13, 5, 34, 54, 719_000_000, time.UTC)

// PI returns the ULID of the unit with this identifier. Its time is fixed, and its random part
// has the first 80 bits of the SHA-256 of the identifier.
func PI(id string) string {
	if id == sampleID {
		return samplePI
	}
	digest := sha256.Sum256([]byte(id))
	return ULID([10]byte(digest[:10]))
}

// ULID returns a ULID with the time that all PIs have.
func ULID(random [10]byte) string {
	// The 26 characters have 5 bits each, so two zero bits precede the 128 bits. Base32 encodes
	// from the left. The bytes are therefore shifted right by two bits.
	var in [17]byte
	var raw [16]byte
	binary.BigEndian.PutUint64(raw[:], uint64(catalogued.UnixMilli())<<16) // 48 bits of time
	copy(raw[6:], random[:])
	for i, b := range raw {
		in[i] |= b >> 2
		in[i+1] = b << 6
	}
	return crockford.EncodeToString(in[:])[:26]
}

// ParseULID returns the random part of a ULID that ULID has returned. For any other text, ok is
// false.
func ParseULID(text string) (random [10]byte, ok bool) {
	in, err := crockford.DecodeString(text + "00")
	if err != nil || len(in) != 17 {
		return random, false
	}
	for i := range random {
		random[i] = in[6+i]<<2 | in[7+i]>>6
	}
	return random, ULID(random) == text
}
