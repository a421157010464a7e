package samples

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/local/samples/archive"
	"github.com/sortie-dev/sortie/local/samples/cid"
	"github.com/sortie-dev/sortie/local/samples/entityapi"
)

// Generate returns a collection of any size. It is a tree with one root whose entities are
// numbered breadth-first. Nothing is stored. Entity i is computed from seed and i, so that the
// same seed and shape give the same bytes. The seed determines which entities have a defect,
// and the shape how many. It returns an error for an invalid shape.
func Generate(seed uint64, shape Shape) (*Collection, error) {
	shape, err := shape.normal()
	if err != nil {
		return nil, err
	}
	g := &generated{seed: seed, shape: shape}
	first := 0
	for _, defect := range Defects() {
		if n := shape.Count[defect]; n > 0 {
			first += n
			g.ranges = append(g.ranges, defectRange{first, defect})
		}
	}
	return &Collection{source: g, roots: []Root{{PI: g.pi(0), Title: g.unit(0).Title, Entities: shape.Entities}}}, nil
}

// generated is a source that computes its entities.
type generated struct {
	seed   uint64
	shape  Shape
	ranges []defectRange
}

// defectRange assigns a defect to the positions of a shuffled sequence that are before end and
// not in an earlier range.
type defectRange struct {
	end    int
	defect Defect
}

func (g *generated) Len() int        { return g.shape.Entities }
func (g *generated) Roots() []string { return []string{g.pi(0)} }

// scatter is odd, so that multiplication by it is a permutation of the 32-bit numbers. The PIs
// of neighbours then look unrelated.
const (
	scatter   = 0x9e3779b1
	gathering = 0x0e217c1e6b9b4d51 // differs from the other uses of the seed
)

// pi returns the PI of entity i, a ULID whose random part ends in the scattered number of the
// entity.
func (g *generated) pi(i int) string { return archive.ULID(g.random(uint32(i) * scatter)) }

func (g *generated) random(scattered uint32) (r [10]byte) {
	mark := (&dice{g.seed ^ gathering}).next()
	binary.BigEndian.PutUint64(r[:], mark)
	binary.BigEndian.PutUint32(r[6:], scattered^uint32(mark))
	return r
}

// Index returns the number of the entity with the PI.
func (g *generated) Index(pi string) (int, bool) {
	random, ok := archive.ParseULID(pi)
	if !ok {
		return 0, false
	}
	mark := (&dice{g.seed ^ gathering}).next()
	i := (binary.BigEndian.Uint32(random[6:]) ^ uint32(mark)) * inverse(scatter)
	if uint64(i) >= uint64(g.shape.Entities) || g.pi(int(i)) != pi {
		return 0, false
	}
	return int(i), true
}

// inverse returns the inverse of an odd number modulo 1<<32, by Newton's method.
func inverse(odd uint32) uint32 {
	x := odd
	for range 5 {
		x *= 2 - odd*x
	}
	return x
}

// defect returns the defect of entity i, or "" for no defect.
func (g *generated) defect(i int) Defect {
	if i == 0 {
		return g.shape.Root
	}
	if len(g.ranges) == 0 {
		return ""
	}
	place := shuffled(i-1, g.shape.Entities-1, g.seed)
	for _, r := range g.ranges {
		if place < r.end {
			return r.defect
		}
	}
	return ""
}

func (g *generated) parent(i int) int { return (i - 1) / g.shape.Fanout }

// Entity returns entity i, computed on each call.
func (g *generated) Entity(i int) entityapi.Entity {
	defect := g.defect(i)
	e := entityapi.Entity{PI: g.pi(i), Versions: 1}
	if i > 0 && defect != Unsigned {
		e.Parent = g.pi(g.parent(i))
	}
	for c := i*g.shape.Fanout + 1; c <= (i+1)*g.shape.Fanout && c < g.shape.Entities; c++ {
		switch g.defect(c) {
		case Unlisted:
		case Repeated:
			e.Children = append(e.Children, g.pi(c), g.pi(c))
		default:
			e.Children = append(e.Children, g.pi(c))
		}
	}
	if defect == Cycle {
		e.Children = append(e.Children, g.pi(0), g.pi(g.parent(max(i, 1))), e.PI)
	}
	if len(e.Children) > 0 {
		e.Versions = 2
	}
	u := g.unit(i)
	e.Components, e.Attachments = archive.Describe(u, e.PI, nil)
	if u.Level == archive.LevelItem {
		g.setOCR(&e, invent(&dice{g.seed ^ uint64(i)<<32}, g.shape.TextBytes))
	}
	g.infect(&e, defect)
	return e
}

// infect adds the defect to e.
func (g *generated) infect(e *entityapi.Entity, defect Defect) {
	pinax := slices.IndexFunc(e.Components, func(c entityapi.Component) bool { return c.Name == "pinax.json" })
	switch defect {
	case NoPinax:
		e.Components = slices.Delete(e.Components, pinax, pinax+1)
	case BrokenPinax:
		b := e.Components[pinax].Body.Head
		e.Components[pinax] = entityapi.NewComponent("pinax.json", entityapi.Body{Head: b[:len(b)/2]})
	case HugePinax:
		b := e.Components[pinax].Body.Head
		end := bytes.LastIndexByte(b, '\n') - len("\n}")
		head := append(bytes.Clone(b[:end]), ",\n  \"note\": \""...)
		e.Components[pinax] = entityapi.NewComponent("pinax.json", entityapi.Body{
			Head: head, Filler: 'x', FillerSize: pinaxMost + 1<<20, Tail: []byte("\"\n}\n"),
		})
	case LostPinax:
		e.Components[pinax].CID = cid.Raw([]byte("lost " + e.PI))
		e.Components[pinax].Lost = true
	case WrongCID:
		b := bytes.Clone(e.Components[pinax].Body.Head)
		b[bytes.Index(b, []byte(`"title": "`))+len(`"title": "`)] ^= 1 // changes one letter
		e.Components[pinax].Body.Head = b
	case EmptyOCR:
		g.setOCR(e, "")
	case ControlOCR:
		g.setOCR(e, `\u0000\u0007\u001b[0m \ud800 \ufffe `+"\xff\xfe"+` \u0085 end`)
	case Merged:
		e.State = entityapi.Merged
		if e.MergedInto = e.Parent; e.MergedInto == "" {
			e.MergedInto = g.pi(0)
		}
	case Deleted:
		e.State = entityapi.Deleted
	case Missing:
		e.State = entityapi.Gone
	case Busy:
		e.Fault.Busy = g.shape.Times
		e.Components[pinax].Fault.Busy = g.shape.Times
	case Down:
		e.Fault.Busy = entityapi.Forever
	case Cut:
		e.Fault.Cut = g.shape.Times
		e.Components[pinax].Fault.Cut = g.shape.Times
	case Slow:
		e.Fault.Delay = g.shape.Delay
		for i := range e.Components {
			e.Components[i].Fault.Delay = g.shape.Delay
		}
	}
}

// setOCR sets the OCR text of the entity's note, given in JSON's escaped form. It adds a note
// to an entity without one.
func (g *generated) setOCR(e *entityapi.Entity, text string) {
	ref := fmt.Sprintf("{\n  \"url\": \"https://cdn.arke.institute/%s/scan.tiff\",\n  \"type\": \"image/tiff\",\n"+
		"  \"filename\": \"scan.tiff\",\n  \"ocr\": \"%s\"\n}\n", e.PI, text)
	made := entityapi.NewComponent("note.ref.json", entityapi.Body{Head: []byte(ref)})
	at, found := slices.BinarySearchFunc(e.Components, made.Name, func(c entityapi.Component, name string) int {
		return strings.Compare(c.Name, name)
	})
	if found {
		e.Components[at], e.Attachments = made, nil
		return
	}
	e.Components = slices.Insert(e.Components, at, made)
}
