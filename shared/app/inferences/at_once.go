package inferences

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/port"
)

// atOnce are answers that are requested at the same time. The pieces of the current one go to the
// stream, those of later ones wait until their turn. It is safe for concurrent use.
type atOnce struct {
	*several
	stop context.CancelFunc

	mu      sync.Mutex
	answers []laterAnswer
	workers int
	failure error // the first error of the current answer
}

// laterAnswer is an answer with the pieces that wait for its turn.
type laterAnswer struct {
	pieces []port.Piece
	calls  int // parts of calls in pieces
	end    port.GenerationEnd
	// asked: it was requested. failed: a request before its turn has failed, so that it is requested
	// again in its turn. ended: it is complete.
	asked, failed, ended bool
	most                 int
}

// callParts is the most parts of calls that an answer before its turn may have for each token.
const callParts = 4

// atOnce requests the answers that are not complete, at most width of them at a time. The slots
// beyond the first one are released as soon as no answer needs them, or another task waits.
func (s *several) atOnce(ctx context.Context, width int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a := &atOnce{several: s, stop: stop, answers: make([]laterAnswer, s.n), workers: width}
	a.t.answer.Limit(a.generation(a.t.answers).MaxTokens)
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() { a.work(ctx) })
	}
	workers.Wait()
	if a.failure == nil && a.t.answers < a.n {
		return context.Cause(ctx)
	}
	return a.failure
}

// work requests answers until none is left for it.
func (a *atOnce) work(ctx context.Context) {
	for i, ok := a.next(ctx); ok; i, ok = a.next(ctx) {
		g := a.generation(i)
		a.mu.Lock()
		a.answers[i].most = g.MaxTokens
		a.mu.Unlock()
		end, err := a.t.oneAnswer(ctx, g, func(p port.Piece) error { return a.piece(i, p) })
		a.ended(i, end, err)
	}
}

// next returns the first answer that is to be requested. Without one, the caller must end; its slot is
// released unless it is the last one.
func (a *atOnce) next(ctx context.Context) (answer int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failure == nil && ctx.Err() == nil && (a.workers == 1 || !a.t.replica.Awaited()) {
		for i := a.t.answers; i < a.n; i++ {
			if l := &a.answers[i]; !l.asked && (!l.failed || i == a.t.answers) {
				l.asked = true
				return i, true
			}
		}
	}
	if a.workers--; a.workers > 0 {
		a.t.replica.Narrow()
	}
	return 0, false
}

// piece adds a piece of an answer to the stream, or to those that wait.
func (a *atOnce) piece(answer int, p port.Piece) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if answer == a.t.answers {
		return a.t.piece(p)
	}
	return a.answers[answer].add(p)
}

// add keeps a piece until the turn of its answer.
func (l *laterAnswer) add(p port.Piece) error {
	if l.calls += len(p.Calls); len(l.pieces) >= l.most && len(p.Calls) == 0 || l.calls > callParts*(l.most+1) {
		return answer.ErrSpent
	}
	p.Calls = slices.Clone(p.Calls) // its memory is the engine's
	l.pieces = append(l.pieces, p)
	return nil
}

// ended records the end of a request. If it was that of the current answer, the next one is current.
func (a *atOnce) ended(i int, end port.GenerationEnd, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := &a.answers[i]
	switch {
	case err == nil:
		l.end, l.ended = end, true
	case i == a.t.answers:
		a.fail(err)
	default:
		*l = laterAnswer{failed: true}
	}
	for a.failure == nil && a.t.answers < a.n && a.answers[a.t.answers].ended {
		a.complete(a.answers[a.t.answers].end)
		if a.t.answers < a.n {
			a.fail(a.flush(&a.answers[a.t.answers]))
		}
	}
}

// fail ends all requests with the error of the current answer, unless it is nil.
func (a *atOnce) fail(err error) {
	if err != nil && a.failure == nil {
		a.failure = err
		a.stop()
	}
}

// flush adds the pieces of the answer that has become current to the stream.
func (a *atOnce) flush(l *laterAnswer) error {
	a.t.answer.Limit(a.generation(a.t.answers).MaxTokens)
	pieces := l.pieces
	l.pieces = nil
	for _, p := range pieces {
		if err := a.t.piece(p); err != nil && !errors.Is(err, answer.ErrSpent) {
			return err
		}
	}
	return nil
}
