package livelog_test

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sortie-dev/sortie/shared/base/livelog"
)

// objects are the stored objects of an attempt.
type objects struct {
	head     []byte
	segments map[livelog.Segment][]byte
}

func (o *objects) load(t *rapid.T) livelog.Head {
	if o.head == nil {
		return livelog.Head{}
	}
	h, err := livelog.DecodeHead(o.head)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// accept applies a change to the objects.
func (o *objects) accept(t *rapid.T, f livelog.Frame, limit int64) {
	c, err := o.load(t).Accept(f, limit)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Closed) > 0 {
		s := c.ClosedSegment()
		o.segments[livelog.Segment{First: s.First, Last: s.Last}] = livelog.EncodeFrames(c.Closed)
	}
	o.head = c.Head.Encode()
	for _, s := range c.Dropped {
		delete(o.segments, livelog.Segment{First: s.First, Last: s.Last})
	}
}

// read returns the chunks that the reader has not returned before.
func (o *objects) read(t *rapid.T, r *livelog.Reader) []livelog.Frame {
	h := o.load(t)
	var loaded [][]livelog.Frame
	for _, s := range r.Wants(h) {
		content, ok := o.segments[livelog.Segment{First: s.First, Last: s.Last}]
		if !ok {
			t.Fatalf("got segment %+v in the head and no object", s)
		}
		frames, err := livelog.DecodeFrames(content)
		if err != nil {
			t.Fatal(err)
		}
		loaded = append(loaded, frames)
	}
	return r.Take(h, loaded)
}

// lengths returns the number of bytes of each stream, cuts included, and the data of each.
func lengths(frames []livelog.Frame) (length map[livelog.Stream]int64, data map[livelog.Stream]string) {
	length, data = map[livelog.Stream]int64{}, map[livelog.Stream]string{}
	for _, f := range frames {
		length[f.Stream] += f.Length()
		data[f.Stream] += string(f.Data)
	}
	return length, data
}

// TestReadersGetEveryChunkOrACut reads at random times. Each chunk must be returned once and
// in order, or replaced by a cut of its length. The beginning and the end are kept within the
// limit.
func TestReadersGetEveryChunkOrACut(t *testing.T) {
	t.Parallel()
	const limit = 400 << 10
	rapid.Check(t, func(t *rapid.T) {
		o := objects{segments: map[livelog.Segment][]byte{}}
		var sent, followed []livelog.Frame
		var follower livelog.Reader
		first := rapid.IntRange(0, 1).Draw(t, "first")
		size := rapid.SampledFrom([]int{10, 2000, 32 << 10}).Draw(t, "size")
		for i := range rapid.IntRange(0, 120).Draw(t, "chunks") {
			f := livelog.Frame{
				Stream: rapid.SampledFrom(livelog.Streams()).Draw(t, "stream"), Sequence: first + i,
				Data: bytes.Repeat([]byte{byte(i), '\n'}, rapid.IntRange(0, size/2).Draw(t, "length")),
			}
			o.accept(t, f, limit)
			sent = append(sent, f)
			if rapid.Bool().Draw(t, "read") {
				followed = append(followed, o.read(t, &follower)...)
			}
		}
		followed = append(followed, o.read(t, &follower)...)
		stored := int64(len(o.head))
		for content := range maps.Values(o.segments) {
			stored += int64(len(content))
		}
		if stored > limit+(8<<10) {
			t.Errorf("got %d stored bytes, want at most %d and headers", stored, limit)
		}
		wantLength, wantData := lengths(sent)
		for name, got := range map[string][]livelog.Frame{"follower": followed, "late reader": o.read(t, &livelog.Reader{})} {
			length, data := lengths(got)
			if diff := cmp.Diff(wantLength, length); diff != "" {
				t.Errorf("%s: lengths: %s", name, diff)
			}
			for s, whole := range wantData {
				before, _, cut := strings.Cut(joined(got, s), "|")
				if !cut && data[s] != whole || cut && (!strings.HasPrefix(whole, before) || len(data[s]) > len(whole)) {
					t.Errorf("%s: got %d bytes of %s, want those that were sent", name, len(data[s]), s)
				}
			}
			if n := len(sent); n > 0 && (len(got) == 0 || !got[len(got)-1].Same(sent[n-1])) {
				t.Errorf("%s: want the last chunk", name)
			}
		}
	})
}

// joined returns the text of a stream with | in place of each cut.
func joined(frames []livelog.Frame, s livelog.Stream) string {
	var text strings.Builder
	for _, f := range frames {
		if f.Stream == s && f.Cut > 0 {
			text.WriteByte('|')
		}
		if f.Stream == s {
			text.Write(f.Data)
		}
	}
	return text.String()
}

func TestSequences(t *testing.T) {
	t.Parallel()
	chunk := func(n int) livelog.Frame {
		return livelog.Frame{Stream: livelog.Stdout, Sequence: n, Data: []byte("x")}
	}
	var h livelog.Head
	add := func(n int) {
		t.Helper()
		c, err := h.Accept(chunk(n), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		h = c.Head
	}
	wantGap := func(n, want int) {
		t.Helper()
		_, err := h.Accept(chunk(n), 1<<20)
		if gap, ok := errors.AsType[*livelog.Gap](err); !ok || gap.Want != want {
			t.Errorf("sequence %d: got %v, want a gap at %d", n, err, want)
		}
	}
	wantGap(2, 1)
	add(1)
	wantGap(3, 2)
	if _, err := h.Accept(chunk(0), 1<<20); !errors.Is(err, livelog.ErrContradiction) {
		t.Errorf("sequence before the first one: got %v, want ErrContradiction", err)
	}
	add(2)
	for n, want := range map[int]livelog.Place{0: livelog.Unknown, 1: livelog.Open, 2: livelog.Open, 3: livelog.Unknown} {
		if got, _, _ := h.Find(n); got != want {
			t.Errorf("sequence %d: got place %d, want %d", n, got, want)
		}
	}
}

func FuzzDecodeHead(f *testing.F) {
	f.Add([]byte("{}\nstdout 1 2\nab\nstderr cut 5\n"))
	f.Add(livelog.Head{First: 1, Next: 2, Frames: []livelog.Frame{{Stream: livelog.Stderr, Sequence: 1, Data: []byte("\n\x00")}}}.Encode())
	f.Fuzz(func(t *testing.T, content []byte) {
		h, err := livelog.DecodeHead(content)
		if err != nil {
			return
		}
		again, err := livelog.DecodeHead(h.Encode())
		if diff := cmp.Diff(h, again); err != nil || diff != "" {
			t.Errorf("got %v after another round, %s", err, diff)
		}
	})
}

func TestTimesAreStored(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)
	for name, want := range map[string][]livelog.Frame{
		"none":     {{Stream: "stdout", Sequence: 1, Data: []byte("a")}},
		"time":     {{Stream: "stdout", Sequence: 1, Data: []byte("a"), At: at}, {Stream: "stdout", Sequence: 2, Data: []byte("b")}},
		"lag":      {{Stream: "stdout", Sequence: 1, Data: []byte("a")}, {Stream: "stderr", Sequence: 2, Data: []byte("b"), Lag: time.Second}},
		"both":     {{Stream: "stdout", Sequence: 1, Data: []byte("a"), At: at, Lag: time.Millisecond}},
		"of a cut": {{Stream: "stdout", Cut: 7}, {Stream: "stdout", Sequence: 2, Data: []byte("b"), At: at, Lag: time.Hour}},
	} {
		if got, err := livelog.DecodeFrames(livelog.EncodeFrames(want)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v (%v), want %+v", name, got, err, want)
		}
		head, err := livelog.DecodeHead(livelog.Head{Frames: want}.Encode())
		if err != nil || !reflect.DeepEqual(head.Frames, want) {
			t.Errorf("%s: got %+v in a head (%v), want %+v", name, head.Frames, err, want)
		}
	}
	// An earlier version has added the second frame.
	got, err := livelog.DecodeFrames([]byte("{\"at\":[1000],\"lag\":[5]}\nstdout 1 1\na\nstdout 2 1\nb\n"))
	if err != nil || len(got) != 2 || !got[0].At.IsZero() || got[0].Lag != 0 {
		t.Errorf("got %+v (%v), want two frames without times", got, err)
	}
}
