package inferences

import (
	"context"
	"log/slog"

	"github.com/sortie-dev/sortie/shared/app/about"
)

// checkUsage sets impossible token counts of an engine to 0. The tokens of the prompt are then
// estimated, and the pieces of the answer counted.
func (s *answering) checkUsage(ctx context.Context, t *serving) {
	said, longest := t.used, t.longest
	if context := t.replica.Capabilities().ContextTokens; context > 0 {
		longest = min(longest, context*t.prompts)
	}
	if said.TokensIn < 0 || said.TokensIn > longest {
		t.used.TokensIn = 0
	}
	if said.TokensOut < 0 || said.TokensOut > t.run.Work.Inference.MaxTokens {
		t.used.TokensOut = 0
	}
	if said.CachedTokens < 0 || said.CachedTokens > t.used.TokensIn {
		t.used.CachedTokens = 0
	}
	if said.ReasoningTokens < 0 || said.ReasoningTokens > t.used.TokensOut {
		t.used.ReasoningTokens = 0
	}
	if t.used != said {
		s.log.LogAttrs(ctx, slog.LevelWarn, "the engine says a usage that the request cannot have", append(about.Run(&t.run), slog.String("replica", said.Replica),
			slog.Int("tokens_in", said.TokensIn), slog.Int("tokens_out", said.TokensOut), slog.Int("cached_tokens", said.CachedTokens), slog.Int("reasoning_tokens", said.ReasoningTokens))...)
	}
}
