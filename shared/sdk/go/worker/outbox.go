package worker

import (
	"slices"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/limit"
)

// The streams of a program's output.
const (
	stdout = "stdout"
	stderr = "stderr"
)

// The sizes of the outbox, in bytes. A chunk is at most 32 KiB as base64.
const (
	chunkSize  = 24 << 10
	outboxSize = 768 << 10
	// earlySize is the amount of output that is sent at once while less than earlyTotal was
	// sent. So the start of the output is visible early.
	earlySize  = 256 << 10
	earlyTotal = 1 << 20
	// mostChunks is the approximate number of chunks of a batch if its output alternates
	// between the streams.
	mostChunks = 16
)

// chunk is a piece of output of one stream.
type chunk struct {
	stream string
	data   []byte
	// since is the time at which the oldest byte was written; zero for an empty chunk.
	since time.Time
}

// outbox holds output until it is sent. Its memory is limited: output that does not fit
// replaces the oldest, and a line reports the number of missing bytes. It is safe for
// concurrent use, and a write never waits for a call.
type outbox struct {
	mu      sync.Mutex
	pending []chunk
	size    int
	taken   int64            // bytes that were removed to be sent
	missing map[string]int64 // dropped bytes before the next output of each stream
	dropped int64            // all dropped bytes
	closed  bool
	now     func() time.Time
	grown   chan struct{} // has at most one signal
}

func newOutbox(now func() time.Time) *outbox {
	return &outbox{missing: map[string]int64{}, now: now, grown: make(chan struct{}, 1)}
}

// stream is the writer to one stream of an outbox.
type stream struct {
	to   *outbox
	name string
}

// Write accepts all of p and returns no error.
func (s stream) Write(p []byte) (int, error) {
	if s.to != nil {
		s.to.add(s.name, p)
	}
	return len(p), nil
}

func (o *outbox) add(name string, p []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	first := o.size == 0
	for rest := p; len(rest) > 0; {
		last := len(o.pending) - 1
		if last < 0 || o.pending[last].stream != name || len(o.pending[last].data) >= chunkSize {
			o.pending = append(o.pending, chunk{stream: name, since: o.now()})
			last++
		}
		n := min(len(rest), chunkSize-len(o.pending[last].data))
		o.pending[last].data = append(o.pending[last].data, rest[:n]...)
		rest, o.size = rest[n:], o.size+n
		if o.size > outboxSize {
			o.drop()
		}
	}
	if first || o.size >= earlySize {
		select {
		case o.grown <- struct{}{}:
		default:
		}
	}
}

// drop removes the oldest chunk.
func (o *outbox) drop() {
	oldest := o.pending[0]
	o.pending = o.pending[1:]
	o.size -= len(oldest.data)
	o.missing[oldest.stream] += int64(len(oldest.data))
	o.dropped += int64(len(oldest.data))
}

// isEarly reports whether there is enough output to send before the next interval.
func (o *outbox) isEarly() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size >= earlySize && o.taken < earlyTotal
}

// sentMuch reports whether the first earlyTotal bytes of the output were removed to be sent.
func (o *outbox) sentMuch() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.taken >= earlyTotal
}

// isEmpty reports whether there is no output to send.
func (o *outbox) isEmpty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size == 0 && len(o.missing) == 0
}

// take removes and returns the oldest output, at most most chunks.
func (o *outbox) take(most int) []chunk {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pending = merged(o.pending)
	n := min(most, len(o.pending))
	batch := make([]chunk, 0, n)
	for _, c := range o.pending[:n] {
		o.size -= len(c.data)
		o.taken += int64(len(c.data))
		batch = append(batch, o.marked(c))
	}
	o.pending = append([]chunk(nil), o.pending[n:]...)
	if len(o.pending) == 0 {
		for _, name := range []string{stdout, stderr} {
			if o.missing[name] > 0 {
				batch = append(batch, o.marked(chunk{stream: name}))
			}
		}
	}
	return batch
}

// marked returns the chunk, preceded by a line with the number of bytes missing before it.
func (o *outbox) marked(c chunk) chunk {
	if n := o.missing[c.stream]; n > 0 {
		delete(o.missing, c.stream)
		c.data = append(limit.CutMark(n), c.data...)
	}
	return c
}

// merged joins chunks that alternate between the streams. It joins groups of adjacent chunks,
// so that about mostChunks are left. Full chunks are unchanged.
func merged(pending []chunk) []chunk {
	if len(pending) <= mostChunks {
		return pending
	}
	each := (len(pending) + mostChunks/2 - 1) / (mostChunks / 2)
	var list []chunk
	for from := 0; from < len(pending); from += each {
		open := map[string]int{} // index of the chunk in list
		for _, c := range pending[from:min(from+each, len(pending))] {
			at, ok := open[c.stream]
			if ok && len(list[at].data)+len(c.data) <= chunkSize {
				list[at].data = append(slices.Clip(list[at].data), c.data...)
				continue
			}
			open[c.stream] = len(list)
			list = append(list, c)
		}
	}
	return list
}

// close drops the remaining output and accepts no more. It returns the number of unsent bytes,
// including those of rest.
func (o *outbox) close(rest []chunk) (lost int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	for _, c := range rest {
		lost += int64(len(c.data))
	}
	lost += int64(o.size)
	for _, n := range o.missing {
		lost += n
	}
	o.pending, o.size, o.missing = nil, 0, map[string]int64{}
	return lost
}
