package record

import (
	"fmt"
	"io"
	"strings"
)

// The names of the supported components.
const (
	PinaxName       = "pinax.json"
	DescriptionName = "description.md"
	GraphName       = "cheimarros.json"
	referenceSuffix = ".ref.json"
)

// Position is the position of an entity in the walk. Path has the entities from the
// root to its parent; it is empty for the root.
type Position struct {
	Depth int
	Path  []PI
}

// Part is a fetched component: its bytes, or an error.
type Part struct {
	Component
	Body io.ReaderAt
	Size int64
	// Err is the error of fetching. Its text is the same on every run.
	Err error
}

// Entity is a parsed entity.
type Entity struct {
	Manifest
	Position    Position
	Pinax       *Pinax // nil if it is missing or invalid
	Description Text   // description.md
	Graph       *Graph // nil if it is missing or was not requested
	References  []Reference
	// Others are all other components, and invalid references.
	Others []Component
	// Faults lists the defects of the record. An entity with a fault is incomplete.
	Faults []string
}

// Kind is the kind of a component.
type Kind int

// The kinds of components. Only Opaque ones are not fetched.
const (
	Opaque Kind = iota
	KindPinax
	KindDescription
	KindGraph
	KindReference
)

// KindOf returns the kind of a component by its name.
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

// Assemble returns the entity of a manifest and its fetched parts. It holds the bodies of pinax
// and graph in memory. The caller must limit their sizes.
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

// auxiliary reports whether a component is a by-product of the archive's processing. Those are
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

// Complete reports whether the record has no faults.
func (e *Entity) Complete() bool { return len(e.Faults) == 0 }

func whole(part Part) ([]byte, error) {
	body := make([]byte, part.Size)
	if _, err := io.ReadFull(io.NewSectionReader(part.Body, 0, part.Size), body); err != nil {
		return nil, fmt.Errorf("cannot read it back: %w", err)
	}
	return body, nil
}
