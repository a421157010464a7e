package inferences

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/app/answer"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// severalAnswers requests the answers of a request, one after the other: the task has one slot of the
// engine, and not every engine has several answers. A repeated call continues with the first answer
// that is not complete.
func (s *answering) severalAnswers(ctx context.Context, t *serving, q *inference.Request, limits port.GenerationLimits) error {
	n, until := q.Answers(), s.now().Add(limits.Total)
	most := t.run.Work.Inference.MaxTokens / n
	for ; t.answers < n; t.answers++ {
		one := q.One(t.answers)
		if limits.Total = until.Sub(s.now()); limits.Total <= 0 {
			limits.Total = 1
		}
		g := t.generation(&one, limits)
		g.MaxTokens = min(g.MaxTokens, most)
		if q.Seed == nil && g.Seed != nil { // the default of a deterministic pool
			g.Seed = new(*g.Seed + int64(t.answers%max(q.Choices, 1)))
		}
		t.answer.Limit(g.MaxTokens)
		end, err := t.oneAnswer(ctx, g)
		if err != nil {
			return err
		}
		if q.First(t.answers) {
			t.used.TokensIn += end.TokensIn
			t.used.CachedTokens += end.CachedTokens
		}
		t.used.TokensOut += end.TokensOut
		t.used.ReasoningTokens += end.ReasoningTokens
		if t.used.Finish = string(end.Finish); t.answers < n-1 {
			t.answer.EndChoice(string(end.Finish))
		}
	}
	return nil
}

// oneAnswer requests an answer and adds its pieces to those of the task.
func (t *serving) oneAnswer(ctx context.Context, g *port.Generation) (port.GenerationEnd, error) {
	done := t.replica.CountRequest()
	defer done()
	end, err := t.replica.Engine().Generate(ctx, *g, t.piece)
	if errors.Is(err, answer.ErrSpent) { // the engine exceeds MaxTokens
		end.TokensOut, end.Finish, err = g.MaxTokens, port.FinishLength, nil
	}
	return end, err
}
