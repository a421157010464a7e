package record

import (
	"fmt"
	"io"
	"strings"
)

// The components that the export understands.
const (
	PinaxName       = "pinax.json"
	DescriptionName = "description.md"
	GraphName       = "cheimarros.json"
	referenceSuffix = ".ref.json"
)

// Position is where the walk found an entity. The path leads from the root to
// its parent; it is empty for the root.
type Position struct {
	Depth int
	Path  []PI
}

// Part is a component as it was fetched: its bytes, or why there are none.
type Part struct {
	Component
	Body io.ReaderAt
	Size int64
	// Err is why there are no bytes, in words that are the same on every run.
	Err error
}

// Entity is all that is known about one entity.
type Entity struct {
	Manifest
	Position    Position
	Pinax       *Pinax // nil where it is missing or could not be read
	Description Text   // description.md
	Graph       *Graph // nil where there is none, or it was not asked for
	References  []Reference
	// Others are the components that are none of the above, and references
	// that could not be read.
	Others []Component
	// Faults says what is missing from this record that should be there; an
	// entity with one is incomplete.
	Faults []string
}

// Kind says how a component is treated.
type Kind int

// The kinds of components. Only Opaque ones are not fetched.
const (
	Opaque Kind = iota
	KindPinax
	KindDescription
	KindGraph
	KindReference
)

// KindOf tells a component's kind by its name.
func KindOf(name string) Kind {
	switch {
	case name == PinaxName:
		return KindPinax
	case name == DescriptionName:
		return KindDescription
	case name == GraphName:
		return KindGraph
	case strings.HasSuffix(name, referenceSuffix):
		return KindReference
	}
	return Opaque
}

// Assemble makes the entity of a manifest and its fetched parts. It reads the
// bodies of pinax and graph whole; their sizes are the caller's to bound.
func Assemble(m Manifest, at Position, parts []Part) *Entity {
	e := &Entity{Manifest: m, Position: at}
	if m.BadLinks > 0 {
		e.fault("%d links to other entities are no PIs", m.BadLinks)
	}
	fetched := make(map[string]Part, len(parts))
	for _, part := range parts {
		fetched[part.Name] = part
	}
	for _, c := range m.Components {
		part, ok := fetched[c.Name]
		if !ok {
			if KindOf(c.Name) == Opaque && !auxiliary(c.Name) {
				e.Others = append(e.Others, c)
			}
			continue
		}
		err := part.Err
		if err == nil {
			err = e.take(part)
		}
		if err != nil {
			e.fault("%s: %v", c.Name, err)
			if KindOf(c.Name) == KindReference {
				e.Others = append(e.Others, c)
			}
		}
	}
	if _, ok := fetched[PinaxName]; !ok {
		e.fault("%s: missing", PinaxName)
	}
	if e.Pinax != nil && e.Pinax.Title == "" {
		e.fault("%s: it has no title", PinaxName)
	}
	return e
}

// auxiliary components are by-products of the archive's own processing and are
// not listed as parts of the entity.
func auxiliary(name string) bool {
	return name == "cheimarros-raw.txt" || name == "reorganization-description.txt"
}

func (e *Entity) take(part Part) error {
	switch KindOf(part.Name) {
	case KindPinax:
		body, err := whole(part)
		if err != nil {
			return err
		}
		e.Pinax, err = ParsePinax(body)
		return err
	case KindGraph:
		body, err := whole(part)
		if err != nil {
			return err
		}
		e.Graph, err = ParseGraph(body)
		return err
	case KindDescription:
		e.Description = PlainText(part.Body, part.Size)
	case KindReference:
		ref, err := ParseReference(part.Name, part.Body, part.Size)
		if err != nil {
			return err
		}
		e.References = append(e.References, ref)
	case Opaque:
	}
	return nil
}

func (e *Entity) fault(format string, args ...any) {
	e.Faults = append(e.Faults, fmt.Sprintf(format, args...))
}

// Complete says that nothing is missing from the record.
func (e *Entity) Complete() bool { return len(e.Faults) == 0 }

func whole(part Part) ([]byte, error) {
	body := make([]byte, part.Size)
	if _, err := io.ReadFull(io.NewSectionReader(part.Body, 0, part.Size), body); err != nil {
		return nil, fmt.Errorf("cannot read it back: %w", err)
	}
	return body, nil
}
