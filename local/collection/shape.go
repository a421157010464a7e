package collection

import (
	"fmt"
	"slices"
	"time"
)

// Ill is something that is wrong with a generated entity. An entity has one at most.
type Ill string

// The ills, each with what an exporter makes of it.
const (
	// Cycle: it names the root, its parent and itself among its children. Each
	// is exported once.
	Cycle Ill = "cycle"
	// Repeated: its parent names it twice. It is exported once.
	Repeated Ill = "repeated"
	// Unlisted: it names its parent, who does not name it. It is not found, nor
	// what only it names.
	Unlisted Ill = "unlisted"
	// Unsigned: its parent names it, and it names no parent. It is exported.
	Unsigned Ill = "unsigned"
	// NoPinax: it has no pinax.json. Incomplete.
	NoPinax Ill = "no-pinax"
	// BrokenPinax: its pinax.json ends in the middle. Incomplete.
	BrokenPinax Ill = "broken-pinax"
	// HugePinax: its pinax.json is larger than 4 MiB. Incomplete.
	HugePinax Ill = "huge-pinax"
	// LostPinax: its manifest names a pinax.json whose bytes are 404. Incomplete.
	LostPinax Ill = "lost-pinax"
	// WrongCID: the bytes of its pinax.json do not match the CID. Incomplete.
	WrongCID Ill = "wrong-cid"
	// EmptyOCR: the OCR text of its note is empty. Exported.
	EmptyOCR Ill = "empty-ocr"
	// ControlOCR: the OCR text has control bytes, half a surrogate pair and bytes
	// that are no UTF-8. Exported.
	ControlOCR Ill = "control-ocr"
	// Merged: it answers 200 with a pointer to its parent. Failed.
	Merged Ill = "merged"
	// Deleted: it answers 200 with a tombstone. Failed.
	Deleted Ill = "deleted"
	// Missing: it answers 404. Failed.
	Missing Ill = "missing"
	// Busy: its manifest and its pinax.json answer 503 Shape.Times times. Retried.
	Busy Ill = "busy"
	// Down: it answers 503 for ever. Failed.
	Down Ill = "down"
	// Cut: the answers with its manifest and its pinax.json are broken off
	// halfway, Shape.Times times. Retried.
	Cut Ill = "cut"
	// Slow: every answer comes after Shape.Delay. Exported.
	Slow Ill = "slow"
)

// Ills are all ills, in a fixed order.
func Ills() []Ill {
	return []Ill{
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
	Count map[Ill]int
	Rate  map[Ill]float64
	// Root is the ill of the root; empty is none.
	Root Ill
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
	if s.Root != "" && !slices.Contains(Ills(), s.Root) {
		return s, fmt.Errorf("shape: unknown ill %q", s.Root)
	}
	count := map[Ill]int{}
	total := 0
	for ill, n := range s.Count {
		if n < 0 || !slices.Contains(Ills(), ill) {
			return s, fmt.Errorf("shape: cannot give %d entities the ill %q", n, ill)
		}
		count[ill] += n
		total += n
	}
	for ill, rate := range s.Rate {
		if !(rate >= 0 && rate <= 1) || !slices.Contains(Ills(), ill) {
			return s, fmt.Errorf("shape: cannot give a part of %v the ill %q", rate, ill)
		}
		n := int(rate * float64(s.Entities))
		count[ill] += n
		total += n
	}
	if total > s.Entities-1 {
		return s, fmt.Errorf("shape: %d ills for %d entities beside the root", total, s.Entities-1)
	}
	s.Count, s.Rate = count, nil
	return s, nil
}
