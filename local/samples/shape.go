package samples

import (
	"fmt"
	"slices"
	"time"
)

// Ill is something that is wrong with a generated entity. An entity has one at most.
type Defect string

// The ills, each with what an exporter makes of it.
const (
	// Cycle: it names the root, its parent and itself among its children. Each
	// is exported once.
	Cycle Defect = "cycle"
	// Repeated: its parent names it twice. It is exported once.
	Repeated Defect = "repeated"
	// Unlisted: it names its parent, who does not name it. It is not found, nor
	// what only it names.
	Unlisted Defect = "unlisted"
	// Unsigned: its parent names it, and it names no parent. It is exported.
	Unsigned Defect = "unsigned"
	// NoPinax: it has no pinax.json. Incomplete.
	NoPinax Defect = "no-pinax"
	// BrokenPinax: its pinax.json ends in the middle. Incomplete.
	BrokenPinax Defect = "broken-pinax"
	// HugePinax: its pinax.json is larger than 4 MiB. Incomplete.
	HugePinax Defect = "huge-pinax"
	// LostPinax: its manifest names a pinax.json whose bytes are 404. Incomplete.
	LostPinax Defect = "lost-pinax"
	// WrongCID: the bytes of its pinax.json do not match the CID. Incomplete.
	WrongCID Defect = "wrong-cid"
	// EmptyOCR: the OCR text of its note is empty. Exported.
	EmptyOCR Defect = "empty-ocr"
	// ControlOCR: the OCR text has control bytes, half a surrogate pair and bytes
	// that are no UTF-8. Exported.
	ControlOCR Defect = "control-ocr"
	// Merged: it answers 200 with a pointer to its parent. Failed.
	Merged Defect = "merged"
	// Deleted: it answers 200 with a tombstone. Failed.
	Deleted Defect = "deleted"
	// Missing: it answers 404. Failed.
	Missing Defect = "missing"
	// Busy: its manifest and its pinax.json answer 503 Shape.Times times. Retried.
	Busy Defect = "busy"
	// Down: it answers 503 for ever. Failed.
	Down Defect = "down"
	// Cut: the answers with its manifest and its pinax.json are broken off
	// halfway, Shape.Times times. Retried.
	Cut Defect = "cut"
	// Slow: every answer comes after Shape.Delay. Exported.
	Slow Defect = "slow"
)

// Ills are all ills, in a fixed order.
func Defects() []Defect {
	return []Defect{
		Cycle, Repeated, Unlisted, Unsigned, NoPinax, BrokenPinax, HugePinax, LostPinax, WrongCID,
		EmptyOCR, ControlOCR, Merged, Deleted, Missing, Busy, Down, Cut, Slow,
	}
}

// Shape says what Generate makes. Its zero value is one healthy entity.
type Shape struct {
	// Entities is their number, the root included; 0 is 1, at most 1<<24.
	Entities int
	// Fanout is how many children an entity has, as long as there are any left:
	// 1 is a chain, Entities-1 a star. 0 is 10.
	Fanout int
	// TextBytes is about how long a narrative and an OCR text are, each; 0 is 600.
	TextBytes int
	// Count says how many entities have an ill, Rate which part of them (0 to 1)
	// beyond that. The root has none of them.
	Count map[Defect]int
	Rate  map[Defect]float64
	// Root is the ill of the root; empty is none.
	Root Defect
	// Times is how often Busy and Cut answers are ill; 0 is 2.
	Times int
	// Delay is that of Slow answers; 0 is 100 ms.
	Delay time.Duration
}

const entitiesMost = 1 << 24

// normal fills in defaults and turns rates into counts.
func (s Shape) normal() (Shape, error) {
	if s.Entities == 0 {
		s.Entities = 1
	}
	for _, d := range []struct {
		field *int
		value int
	}{{&s.Fanout, 10}, {&s.TextBytes, 600}, {&s.Times, 2}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if s.Delay == 0 {
		s.Delay = 100 * time.Millisecond
	}
	if s.Entities < 0 || s.Entities > entitiesMost || s.Fanout < 0 || s.TextBytes < 0 || s.Times < 0 || s.Delay < 0 {
		return s, fmt.Errorf("shape: a number is negative, or there are more than %d entities", entitiesMost)
	}
	if s.Root != "" && !slices.Contains(Defects(), s.Root) {
		return s, fmt.Errorf("shape: unknown ill %q", s.Root)
	}
	count := map[Defect]int{}
	total := 0
	for defect, n := range s.Count {
		if n < 0 || !slices.Contains(Defects(), defect) {
			return s, fmt.Errorf("shape: cannot give %d entities the ill %q", n, defect)
		}
		count[defect] += n
		total += n
	}
	for defect, rate := range s.Rate {
		if !(rate >= 0 && rate <= 1) || !slices.Contains(Defects(), defect) {
			return s, fmt.Errorf("shape: cannot give a part of %v the ill %q", rate, defect)
		}
		n := int(rate * float64(s.Entities))
		count[defect] += n
		total += n
	}
	if total > s.Entities-1 {
		return s, fmt.Errorf("shape: %d ills for %d entities beside the root", total, s.Entities-1)
	}
	s.Count, s.Rate = count, nil
	return s, nil
}
