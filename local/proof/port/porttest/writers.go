package porttest

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/port"
)

// WritersHarness is an adapter of port.Writers without writers.
type WritersHarness struct {
	// Writers and Other are the adapters of two processes with the same queues.
	Writers, Other port.Writers
	// Now returns the time of the adapter's clock, and Advance advances it.
	Now     func() time.Time
	Advance func(d time.Duration)
}

// Writers is the conformance suite of port.Writers.
func Writers(t *testing.T, open func(t *testing.T) WritersHarness) {
	t.Helper()
	for name, test := range map[string]func(w writersTest){
		"the first has its turn": func(w writersTest) {
			a := w.enqueue("s", "a")
			w.Advance(time.Millisecond)
			b := w.enqueue("s", "b")
			w.Advance(time.Millisecond)
			c := w.enqueue("s", "c")
			w.ahead(a, 0)
			w.ahead(b, 1)
			w.ahead(c, 2)
			w.leave(a)
			w.ahead(b, 0)
			w.ahead(c, 1)
			w.leave(c)
			w.leave(c)
			w.ahead(b, 0)
		},
		"writers of the same moment have different places": func(w writersTest) {
			a, b := w.enqueue("s", "a"), w.enqueue("s", "b")
			w.ahead(a, 0)
			w.ahead(b, 1)
		},
		"streams have queues of their own": func(w writersTest) {
			w.enqueue("s", "a")
			w.ahead(w.enqueue("s/other", "b"), 0)
			w.ahead(w.enqueue("s", "b"), 1)
		},
		"a place ends with its time": func(w writersTest) {
			a := w.enqueue("s", "a")
			w.Advance(time.Second)
			b := w.enqueue("s", "b")
			w.Advance(time.Minute - time.Second - time.Millisecond)
			w.ahead(b, 1)
			w.Advance(time.Millisecond)
			w.ahead(b, 0)
			w.ahead(a, 0)
			w.leave(a)
		},
		"a repeated call keeps the place": func(w writersTest) {
			a := w.enqueue("s", "a")
			w.Advance(time.Second)
			b := w.enqueue("s", "b")
			w.Advance(time.Minute - 2*time.Second)
			if err := w.Other.Enqueue(w.t.Context(), a, w.Now().Add(time.Minute)); err != nil {
				w.t.Fatal(err)
			}
			w.Advance(time.Second)
			w.ahead(b, 1)
			w.ahead(a, 0)
			w.leave(a)
			w.ahead(b, 0)
		},
		"a writer that is not in the queue": func(w writersTest) {
			w.enqueue("s", "a")
			w.Advance(time.Second)
			w.ahead(port.Writer{Stream: "s", Since: w.Now(), ID: "x"}, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(writersTest{open(t), t})
		})
	}
}

type writersTest struct {
	WritersHarness
	t *testing.T
}

// enqueue adds a writer to the queue of the stream for a minute.
func (w writersTest) enqueue(stream, id string) port.Writer {
	w.t.Helper()
	one := port.Writer{Stream: stream, Since: w.Now(), ID: id}
	if err := w.Writers.Enqueue(w.t.Context(), one, w.Now().Add(time.Minute)); err != nil {
		w.t.Fatal(err)
	}
	return one
}

func (w writersTest) ahead(of port.Writer, want int) {
	w.t.Helper()
	for _, from := range []port.Writers{w.Writers, w.Other} {
		if got, err := from.Ahead(w.t.Context(), of); got != want || err != nil {
			w.t.Errorf("got %d writers before %s, %v, want %d", got, of.ID, err, want)
		}
	}
}

func (w writersTest) leave(one port.Writer) {
	w.t.Helper()
	if err := w.Other.Leave(w.t.Context(), one); err != nil {
		w.t.Errorf("got %v, want %s removed", err, one.ID)
	}
}
