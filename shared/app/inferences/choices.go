package inferences

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// severalAnswers requests the answers of a request, at the same time in the slots of the replica that
// no other task needs, otherwise one after the other. In the stream they follow each other. A repeated
// call continues with the first answer that is not complete.
func (s *answering) severalAnswers(ctx context.Context, t *serving, q *inference.Request, limits port.GenerationLimits) error {
	until := s.now().Add(limits.Total)
	several := &several{answering: s, t: t, q: q, limits: limits, until: until, n: q.Answers()}
	if s.alone {
		if width := 1 + t.replica.Widen(several.n-t.answers-1); width > 1 {
			return several.atOnce(ctx, width)
		}
	}
	for t.answers < several.n {
		g := several.generation(t.answers)
		t.answer.Limit(g.MaxTokens)
		end, err := t.oneAnswer(ctx, g, t.piece)
		if err != nil {
			return err
		}
		several.complete(end)
	}
	return nil
}

// several are the answers of a request with more than one.
type several struct {
	*answering
	t      *serving
	q      *inference.Request
	limits port.GenerationLimits
	until  time.Time
	n      int
}

// generation returns the request for an answer.
func (s *several) generation(answer int) *port.Generation {
	one, limits := s.q.One(answer), s.limits
	limits.Total = max(s.until.Sub(s.now()), 1)
	g := s.t.generation(&one, limits)
	g.MaxTokens = min(g.MaxTokens, s.t.run.Work.Inference.MaxTokens/s.n)
	if s.q.Seed == nil && g.Seed != nil { // the default of a deterministic pool
		g.Seed = new(*g.Seed + int64(answer%max(s.q.Choices, 1)))
	}
	return g
}

// complete adds the usage of the current answer to that of the task, and ends it in the stream.
func (s *several) complete(end port.GenerationEnd) {
	t := s.t
	if s.q.First(t.answers) {
		t.used.TokensIn += end.TokensIn
		t.used.CachedTokens += end.CachedTokens
	}
	t.used.TokensOut += end.TokensOut
	t.used.ReasoningTokens += end.ReasoningTokens
	if t.used.Finish = string(end.Finish); t.answers < s.n-1 {
		t.answer.EndChoice(string(end.Finish))
	}
	t.answers++
}

// oneAnswer requests an answer and passes its pieces to each.
func (t *serving) oneAnswer(ctx context.Context, g *port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	done := t.replica.CountRequest()
	defer done()
	end, err := t.replica.Engine().Generate(ctx, *g, each)
	if errors.Is(err, answer.ErrSpent) { // the engine exceeds MaxTokens
		end.TokensOut, end.Finish, err = g.MaxTokens, port.FinishLength, nil
	}
	return end, err
}
