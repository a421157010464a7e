package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Manifest is the response to GET /entities/{pi}: one version of an entity.
type Manifest struct {
	PI      PI
	Version int
	// Timestamp is the time of the version in the form of the API. Time parses it. It may be
	// empty.
	Timestamp string
	// CID is the address of the manifest. It may be empty.
	CID        string
	Components []Component // by name
	Children   []PI        // in the manifest's order
	Parent     PI          // zero for a root
	// BadLinks is the number of malformed children and parents, which are omitted.
	BadLinks int
}

// Component is a named part of an entity with the CID of its bytes.
type Component struct{ Name, CID string }

// Gone is the error for an entity that was merged into another or deleted.
type Gone struct {
	// MergedInto is empty for a deleted entity.
	MergedInto string
}

// Error implements error.
func (g *Gone) Error() string {
	if g.MergedInto != "" {
		return "merged into " + g.MergedInto
	}
	return "deleted"
}

// ErrNotManifest means that an answer is not a manifest. It may have been truncated.
var ErrNotManifest = errors.New("the answer is not a manifest")

type wireManifest struct {
	PI          string              `json:"pi"`
	ID          string              `json:"id"`
	Version     int                 `json:"ver"`
	Timestamp   string              `json:"ts"`
	ManifestCID string              `json:"manifest_cid"`
	CID         string              `json:"cid"`
	Components  map[string]wireLink `json:"components"`
	Children    []wirePI            `json:"children_pi"`
	Parent      wirePI              `json:"parent_pi"`
	Merged      bool                `json:"merged"`
	MergedInto  string              `json:"merged_into"`
	Status      string              `json:"status"`
}

// ParseManifest parses the response for the entity want. The error is a *Gone or wraps
// ErrNotManifest.
func ParseManifest(want PI, body []byte) (Manifest, error) {
	var wire wireManifest
	if err := json.Unmarshal(trimBOM(body), &wire); err != nil {
		return Manifest{}, fmt.Errorf("%w: %w", ErrNotManifest, err)
	}
	named := wire.PI
	if named == "" {
		named = wire.ID
	}
	if named != "" && named != want.String() {
		return Manifest{}, fmt.Errorf("%w: it is about another entity", ErrNotManifest)
	}
	if named == "" && len(wire.Components) == 0 {
		return Manifest{}, fmt.Errorf("%w: it names no entity", ErrNotManifest)
	}
	if len(wire.Components) == 0 {
		if wire.Merged || wire.MergedInto != "" {
			return Manifest{}, &Gone{MergedInto: orUnknown(wire.MergedInto)}
		}
		if wire.Status == "deleted" {
			return Manifest{}, &Gone{}
		}
	}
	m := Manifest{
		PI: want, Version: wire.Version, Timestamp: strings.TrimSpace(wire.Timestamp),
		CID: wire.ManifestCID, Parent: wire.Parent.pi,
	}
	if m.CID == "" {
		m.CID = wire.CID
	}
	if wire.Parent.bad {
		m.BadLinks++
	}
	for name, link := range wire.Components {
		m.Components = append(m.Components, Component{Name: name, CID: string(link)})
	}
	slices.SortFunc(m.Components, func(a, b Component) int { return strings.Compare(a.Name, b.Name) })
	m.Children = make([]PI, 0, len(wire.Children))
	for _, child := range wire.Children {
		switch {
		case child.bad:
			m.BadLinks++
		case !child.pi.IsZero():
			m.Children = append(m.Children, child.pi)
		}
	}
	return m, nil
}

// Time returns the time of the version in UTC. Without a valid Timestamp it returns the time in
// the PI, and without that the Unix epoch. So the same entity always has the same time.
func (m Manifest) Time() time.Time {
	if at, err := time.Parse(time.RFC3339Nano, m.Timestamp); err == nil && at.UTC().Year() >= 1 && at.UTC().Year() <= 9999 {
		return at.UTC()
	}
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	var ms int64
	for _, c := range m.PI[:10] { // a ULID's first ten characters are its milliseconds
		ms = ms<<5 | int64(max(0, strings.IndexByte(alphabet, c)))
	}
	if at := time.UnixMilli(ms).UTC(); at.Year() <= 9999 {
		return at
	}
	return time.Unix(0, 0).UTC()
}

// wireLink is a CID, as text or as an IPLD link ({"/": cid}); "" for anything else.
type wireLink string

func (l *wireLink) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*l = wireLink(text)
		return nil
	}
	var link struct {
		CID string `json:"/"`
	}
	if json.Unmarshal(raw, &link) == nil {
		*l = wireLink(link.CID)
	}
	return nil
}

// wirePI is a PI or null. Anything else sets bad, so that one malformed link does not
// invalidate the manifest.
type wirePI struct {
	pi  PI
	bad bool
}

func (p *wirePI) UnmarshalJSON(raw []byte) error {
	if bytes.Equal(raw, []byte("null")) || bytes.Equal(raw, []byte(`""`)) {
		return nil
	}
	if len(raw) == PILength+2 {
		if pi, err := ParsePI(string(raw[1 : len(raw)-1])); err == nil {
			p.pi = pi
			return nil
		}
	}
	p.bad = true
	return nil
}

func orUnknown(text string) string {
	if text == "" {
		return "another entity"
	}
	return text
}

func trimBOM(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")) }
