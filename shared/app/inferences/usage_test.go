package inferences_test

import (
	"context"
	"testing"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/port"
)

// counting is an engine that reports the usage says.
type counting struct {
	port.Engine
	says port.Usage
}

func (c counting) Generate(ctx context.Context, in port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	end, err := c.Engine.Generate(ctx, in, each)
	end.Usage = c.says
	return end, err //nolint:wrapcheck // as the engine says it
}

func (c counting) Embed(ctx context.Context, in port.Embedding) (port.Embedded, error) {
	got, err := c.Engine.Embed(ctx, in)
	got.Usage = c.says
	return got, err //nolint:wrapcheck // as the engine says it
}

// TestUsageIsChecked checks the usage of a task with 3 estimated prompt tokens and 4 generated
// tokens, for different reports of the engine.
func TestUsageIsChecked(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		says                port.Usage
		in, out, reasonings int
		cached              int
	}{
		"plausible":                {port.Usage{TokensIn: 9, CachedTokens: 8, TokensOut: 4, ReasoningTokens: 2, Counted: true}, 9, 4, 2, 8},
		"fewer than were sent":     {port.Usage{TokensIn: 9, TokensOut: 1, Counted: true}, 9, 4, 0, 0},
		"negative":                 {port.Usage{TokensIn: -1, TokensOut: -4, ReasoningTokens: -1, CachedTokens: -1, Counted: true}, 3, 4, 0, 0},
		"more than the limit":      {port.Usage{TokensIn: 9, TokensOut: 5, ReasoningTokens: 5, Counted: true}, 9, 4, 0, 0},
		"absurd":                   {port.Usage{TokensIn: 1 << 31, TokensOut: 1 << 31, ReasoningTokens: 1 << 31, Counted: true}, 3, 4, 0, 0},
		"within the context alone": {port.Usage{TokensIn: 30000, TokensOut: 4, Counted: true}, 3, 4, 0, 0},
		"more reasoning than all":  {port.Usage{TokensIn: 9, CachedTokens: 10, TokensOut: 4, ReasoningTokens: 5, Counted: true}, 9, 4, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newInferring(t, 1, 1, func(h *inferring) { h.wrap = func(e port.Engine) port.Engine { return counting{e, row.says} } })
			task := h.ask(4)
			events := h.read(task, inference.EventID{})
			end, _ := events[len(events)-1].Data.(*inference.End)
			r := h.ended(task)
			if g := r.Generation; end == nil || g.TokensIn != row.in || g.TokensOut != row.out || g.ReasoningTokens != row.reasonings || g.CachedTokens != row.cached ||
				end.TokensIn != row.in || end.TokensOut != row.out || end.ReasoningTokens != row.reasonings || r.Reservation.Used.Tokens != int64(row.out) {
				t.Errorf("got %+v, %+v and %+v, want %d tokens, %d and %d of reasoning", end, g, r.Reservation, row.in, row.out, row.reasonings)
			}
			vectors := h.ask(0, func(in *inferences.NewTask) {
				in.Workload, in.Request = port.WorkloadEmbedding, inference.Request{Input: []string{"count to ten"}}
			})
			h.read(vectors, inference.EventID{})
			if g := h.ended(vectors).Generation; g.TokensIn != row.in {
				t.Errorf("got %+v for an embedding, want %d tokens", g, row.in)
			}
		})
	}
}
