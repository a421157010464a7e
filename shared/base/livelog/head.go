package livelog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"
)

// segmentSize is the size from which the chunks of a head are moved to a segment.
const segmentSize = 64 << 10

// ErrContradiction means that the sequence was used for another chunk. Accept returns it for a
// sequence before the next one.
var ErrContradiction = errors.New("the sequence was used for another chunk")

// Gap is the error for a chunk whose predecessors are missing. Want is the next sequence.
type Gap struct{ Want int }

func (g *Gap) Error() string { return fmt.Sprintf("chunks are missing, want sequence %d", g.Want) }

// Offsets are positions in the two streams, in bytes.
type Offsets struct {
	Stdout int64 `json:"stdout"`
	Stderr int64 `json:"stderr"`
}

// Of returns a pointer to the position in stream s.
func (o *Offsets) Of(s Stream) *int64 {
	if s == Stderr {
		return &o.Stderr
	}
	return &o.Stdout
}

// After returns the positions at the end of frames that start at o.
func (o Offsets) After(frames ...Frame) Offsets {
	for _, f := range frames {
		*o.Of(f.Stream) += f.Length()
	}
	return o
}

// Segment describes a segment: an object with older chunks.
type Segment struct {
	// First and Last are the sequences of the first and the last chunk.
	First int `json:"first"`
	Last  int `json:"last"`
	// Start is the positions of the segment's beginning in the streams.
	Start Offsets `json:"start"`
	Size  int64   `json:"size"`
}

// Head is the object that each accepted chunk replaces. The zero value is the head of an
// attempt without output.
type Head struct {
	// First is the sequence of the first chunk, Next the sequence of the chunk to accept
	// next. Both are 0 before the first chunk.
	First int `json:"first"`
	Next  int `json:"next"`
	// Segments are the segments that were not dropped, oldest first.
	Segments []Segment `json:"segments,omitempty"`
	// Start is the positions of the beginning of Frames in the streams.
	Start Offsets `json:"start"`
	// FollowedUntil is the time until which a client follows the output; zero if no client
	// follows it.
	FollowedUntil time.Time `json:"followedUntil,omitzero"`
	// Frames are the newest chunks, which are not in a segment yet.
	Frames []Frame `json:"-"`
}

// Encode returns the content of the object.
func (h Head) Encode() []byte { return encode(storedHead{h, acceptedOf(h.Frames)}, h.Frames) }

// storedHead is the header of the object.
type storedHead struct {
	Head
	accepted
}

// DecodeHead decodes the content of the object.
func DecodeHead(content []byte) (h Head, err error) {
	var stored storedHead
	frames, err := decode(content, &stored)
	h = stored.Head
	h.Frames = stored.applied(frames)
	return h, err
}

// Change lists the writes that accept a chunk. The caller writes them in this order: it
// writes Closed as the object of ClosedSegment, if Closed is not empty; it replaces the head
// by Head; it deletes the objects of Dropped.
type Change struct {
	Head    Head
	Closed  []Frame
	Dropped []Segment
}

// ClosedSegment returns a Segment with First and Last of Closed, which must not be empty.
func (c Change) ClosedSegment() Segment {
	return Segment{First: c.Closed[0].Sequence, Last: c.Closed[len(c.Closed)-1].Sequence}
}

// Accept returns the change that adds a chunk. limit is the maximum size of all objects of
// the attempt in bytes. It returns a *Gap if earlier chunks are missing, and
// ErrContradiction for a sequence before Next. The caller first uses Find to handle chunks
// that are sent again.
func (h Head) Accept(f Frame, limit int64) (Change, error) {
	switch {
	case h.empty() && f.Sequence > 1:
		return Change{}, &Gap{Want: 1}
	case h.empty():
		h.First, h.Next = f.Sequence, f.Sequence
	case f.Sequence > h.Next:
		return Change{}, &Gap{Want: h.Next}
	case f.Sequence < h.Next:
		return Change{}, ErrContradiction
	}
	c := Change{}
	if size := cost(h.Frames); size >= segmentSize {
		// All these frames are committed, so concurrent writers create the same segment.
		c.Closed = h.Frames
		s := c.ClosedSegment()
		s.Start, s.Size = h.Start, size
		h.Segments = append(slices.Clone(h.Segments), s)
		h.Start, h.Frames = h.Start.After(h.Frames...), nil
	}
	h.Frames = append(slices.Clone(h.Frames), f)
	h.Next = f.Sequence + 1
	h.Segments, c.Dropped = trim(h.Segments, cost(h.Frames), limit)
	c.Head = h
	return c, nil
}

func (h Head) empty() bool { return h.Next == h.First && len(h.Segments) == 0 && len(h.Frames) == 0 }

// trim drops segments until the rest fits into limit together with open, the size of the
// frames in the head. It keeps the segments in the first half of the limit, and drops the
// oldest ones after them.
func trim(segments []Segment, open, limit int64) (kept, dropped []Segment) {
	total := open
	for _, s := range segments {
		total += s.Size
	}
	begin, size := 0, int64(0)
	for begin < len(segments) && size+segments[begin].Size <= limit/2 &&
		(begin == 0 || segments[begin].First == segments[begin-1].Last+1) {
		size += segments[begin].Size
		begin++
	}
	end := begin
	for end < len(segments) && total > limit {
		total -= segments[end].Size
		end++
	}
	return slices.Concat(segments[:begin], segments[end:]), segments[begin:end]
}

// Place says where a chunk is stored.
type Place int

// The places. Unknown: the chunk was not accepted. Open: in the head. Closed: in a segment.
// Forgotten: the chunk was accepted and later dropped.
const (
	Unknown Place = iota
	Open
	Closed
	Forgotten
)

// Find returns the place of the chunk with this sequence. It also returns the frame of an
// Open chunk, and the segment of a Closed one.
func (h Head) Find(sequence int) (Place, Frame, Segment) {
	if sequence < h.First || sequence >= h.Next {
		return Unknown, Frame{}, Segment{}
	}
	if f, ok := Among(h.Frames, sequence); ok {
		return Open, f, Segment{}
	}
	for _, s := range h.Segments {
		if s.First <= sequence && sequence <= s.Last {
			return Closed, Frame{}, s
		}
	}
	return Forgotten, Frame{}, Segment{}
}

// Among returns the frame with this sequence. It returns false if there is no such frame.
func Among(frames []Frame, sequence int) (Frame, bool) {
	i := slices.IndexFunc(frames, func(f Frame) bool { return f.Sequence == sequence })
	if i < 0 {
		return Frame{}, false
	}
	return frames[i], true
}

// Same reports whether two chunks have the same stream and data.
func (f Frame) Same(other Frame) bool {
	return f.Stream == other.Stream && bytes.Equal(f.Data, other.Data)
}

// Reader reads the chunks of an attempt in order. Its zero value is at the beginning.
type Reader struct {
	began bool
	next  int // the sequence of the next chunk
	at    Offsets
}

// Began reports whether a head that Take received had output.
func (r *Reader) Began() bool { return r.began }

// Wants returns the segments of h with chunks that the reader has not returned. The caller
// loads them for Take.
func (r *Reader) Wants(h Head) []Segment {
	return slices.DeleteFunc(slices.Clone(h.Segments), func(s Segment) bool { return r.began && s.Last < r.next })
}

// Take returns the chunks that it has not returned before. Cuts replace chunks that were
// dropped. loaded has the frames of each segment that Wants returned for h.
func (r *Reader) Take(h Head, loaded [][]Frame) []Frame {
	if !r.began {
		r.next, r.began = h.First, !h.empty()
	}
	var found []Frame
	for i, s := range r.Wants(h) {
		found = r.take(found, s.Start, loaded[i])
	}
	return r.take(found, h.Start, h.Frames)
}

func (r *Reader) take(found []Frame, at Offsets, frames []Frame) []Frame {
	for _, f := range frames {
		if f.Sequence >= r.next {
			for _, s := range Streams() {
				if missing := *at.Of(s) - *r.at.Of(s); missing > 0 {
					found = append(found, Frame{Stream: s, Cut: missing})
				}
			}
			found = append(found, f)
			r.next, r.at = f.Sequence+1, at.After(f)
		}
		at = at.After(f)
	}
	return found
}
