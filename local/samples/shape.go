package samples

import (
	"fmt"
	"slices"
	"time"
)

// Defect is a defect of a generated entity. An entity has at most one.
type Defect string

// The defects, each with its effect on an export.
const (
	// Cycle: the entity lists the root, its parent and itself as children. Each of them is
	// exported once.
	Cycle Defect = "cycle"
	// Repeated: its parent lists it twice. It is exported once.
	Repeated Defect = "repeated"
	// Unlisted: it names its parent, but the parent does not list it. An export finds neither
	// the entity nor the entities that only it lists.
	Unlisted Defect = "unlisted"
	// Unsigned: its parent lists it, but it names no parent. It is exported.
	Unsigned Defect = "unsigned"
	// NoPinax: it has no pinax.json. Incomplete.
	NoPinax Defect = "no-pinax"
	// BrokenPinax: its pinax.json ends in the middle. Incomplete.
	BrokenPinax Defect = "broken-pinax"
	// HugePinax: its pinax.json is larger than 4 MiB. Incomplete.
	HugePinax Defect = "huge-pinax"
	// LostPinax: its manifest lists a pinax.json whose bytes are 404.
	// Incomplete.
	LostPinax Defect = "lost-pinax"
	// WrongCID: the bytes of its pinax.json do not match the CID. Incomplete.
	WrongCID Defect = "wrong-cid"
	// EmptyOCR: the OCR text of its note is empty. Exported.
	EmptyOCR Defect = "empty-ocr"
	// ControlOCR: the OCR text contains control bytes, half a surrogate pair
	// and invalid UTF-8. Exported.
	ControlOCR Defect = "control-ocr"
	// Merged: it answers 200 with a pointer to its parent. Failed.
	Merged Defect = "merged"
	// Deleted: it answers 200 with a tombstone. Failed.
	Deleted Defect = "deleted"
	// Missing: it answers 404. Failed.
	Missing Defect = "missing"
	// Busy: its manifest and its pinax.json answer 503 Shape.Times times. Retried.
	Busy Defect = "busy"
	// Down: it always answers 503. Failed.
	Down Defect = "down"
	// Cut: the answers with its manifest and its pinax.json are interrupted
	// halfway, Shape.Times times. Retried.
	Cut Defect = "cut"
	// Slow: every answer is delayed by Shape.Delay. Exported.
	Slow Defect = "slow"
)

// Defects lists all defects in a fixed order.
func Defects() []Defect {
	return []Defect{
		Cycle, Repeated, Unlisted, Unsigned, NoPinax, BrokenPinax, HugePinax, LostPinax, WrongCID,
		EmptyOCR, ControlOCR, Merged, Deleted, Missing, Busy, Down, Cut, Slow,
	}
}

// Shape configures Generate. Its zero value is one entity without a defect.
type Shape struct {
	// Entities is the number of entities including the root, at most 1<<24; 0 means 1.
	Entities int
	// Fanout is the number of children of an entity, as long as entities are left. 1 is a
	// chain, Entities-1 a star; 0 means 10.
	Fanout int
	// TextBytes is the approximate size in bytes of each narrative and OCR text; 0 means 600.
	TextBytes int
	// Count is the number of entities with a defect. Rate is the fraction (0 to 1) of the
	// remaining entities. Neither includes the root.
	Count map[Defect]int
	Rate  map[Defect]float64
	// Root is the defect of the root; empty means no defect.
	Root Defect
	// Times is the number of faulty responses of Busy and Cut; 0 means 2.
	Times int
	// Delay is the delay of Slow; 0 means 100 ms.
	Delay time.Duration
}

const entitiesMost = 1 << 24

// normal sets the defaults and converts rates to counts.
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
		return s, fmt.Errorf("shape: unknown defect %q", s.Root)
	}
	count := map[Defect]int{}
	total := 0
	for defect, n := range s.Count {
		if n < 0 || !slices.Contains(Defects(), defect) {
			return s, fmt.Errorf("shape: %d entities with defect %q: number is out of range", n, defect)
		}
		count[defect] += n
		total += n
	}
	for defect, rate := range s.Rate {
		if !(rate >= 0 && rate <= 1) || !slices.Contains(Defects(), defect) {
			return s, fmt.Errorf("shape: rate %v of defect %q is out of range, want 0 to 1", rate, defect)
		}
		n := int(rate * float64(s.Entities))
		count[defect] += n
		total += n
	}
	if total > s.Entities-1 {
		return s, fmt.Errorf("shape: %d defects for %d entities besides the root", total, s.Entities-1)
	}
	s.Count, s.Rate = count, nil
	return s, nil
}
