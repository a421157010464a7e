package porttest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// EngineFault is a way in which an engine fails its next generation.
type EngineFault string

// The faults that a harness can inject. The first two occur before the first piece.
const (
	EngineIsBusy     EngineFault = "is busy"
	EngineFails      EngineFault = "fails"
	EngineResets     EngineFault = "resets the connection"
	EngineEndsEarly  EngineFault = "ends without its final event"
	EngineSendsError EngineFault = "sends an error"
	EngineStalls     EngineFault = "stalls"
)

// EngineHarness is a ready replica without requests.
type EngineHarness struct {
	// Engine is the adapter under test. It uses Clock.
	Engine port.Engine
	Clock  *clock.Virtual
	// Model is the model of the engine.
	Model string
	// Messages: the engine accepts conversations. Stops: it accepts stop texts. Names: it
	// rejects unknown models. Vectors: it has embeddings and reranking.
	Messages, Stops, Names, Vectors bool
	// Reasons: the engine sends reasoning before its answer to a message with the text
	// mockengine.Reasoning. Counts: it counts the reasoning tokens.
	Reasons, Counts bool
	// Calls: the engine calls the tools of a request, and enforces a JSON schema.
	Calls bool
	// Silent: the engine says nothing about itself.
	Silent bool
	// Idle waits until the engine generates nothing.
	Idle func(t *testing.T)
	// Fault makes the next generation fail in this way after a number of pieces. Begun waits
	// until the engine generates. Both are nil for a real engine, for which the fault tests are
	// skipped.
	Fault func(t *testing.T, how EngineFault, pieces int)
	Begun func(t *testing.T)
	// Loading makes the engine load its model, or makes it ready again; nil for a real engine.
	Loading func(t *testing.T, loading bool)
	// Shut ends the engine. It is nil for an engine without its own process, and for an engine
	// that other tests use. Such tests call EngineIsUnreachable at their end.
	Shut func(t *testing.T)
}

// Engine is the conformance suite of port.Engine. setup is called once for each test.
func Engine(t *testing.T, setup func(t *testing.T) EngineHarness) {
	t.Helper()
	tests := []struct {
		name string
		run  func(*testing.T, EngineHarness)
	}{
		{"health and capabilities", engineSelf},
		{"completion", engineCompletion},
		{"same seed, same text", engineSeed},
		{"conversation", engineMessages},
		{"reasoning", engineReasoning},
		{"calls of tools", engineCalls},
		{"format", engineFormat},
		{"stop text", engineStop},
		{"invalid generation", engineInvalid},
		{"too many tokens", engineTooLong},
		{"unknown model", engineUnknownModel},
		{"caller ends the answer", engineCallerEnds},
		{"ended context", engineContext},
		{"busy", engineBusy},
		{"failures before the first piece", engineFailsFirst},
		{"failures within an answer", engineFailsWithin},
		{"limits", engineLimits},
		{"loading", engineLoading},
		{"unreachable", engineUnreachable},
		{"vectors and scores", engineVectors},
		{"load", engineLoad},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, setup(t))
		})
	}
}

func (h EngineHarness) generation() port.Generation {
	seed := int64(7)
	return port.Generation{Model: h.Model, Prompt: "the archive", MaxTokens: 12, Seed: &seed}
}

// generate returns the text of an answer, its pieces, and its end.
func (h EngineHarness) generate(t *testing.T, g port.Generation) (text string, pieces int, end port.GenerationEnd, err error) {
	t.Helper()
	end, err = h.Engine.Generate(deadline(t), g, func(p port.Piece) error {
		if p.Text == "" || !utf8.ValidString(p.Text) {
			t.Errorf("got the piece %q, want valid text", p.Text)
		}
		text += p.Text
		pieces++
		return nil
	})
	return text, pieces, end, err
}

func engineSelf(t *testing.T, h EngineHarness) {
	if got, err := h.Engine.Health(deadline(t)); err != nil || got != (port.EngineHealth{Live: true, Ready: true}) {
		t.Errorf("got health %+v, %v, want live and ready", got, err)
	}
	got, err := h.Engine.Capabilities(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if h.Silent {
		if got.Version != "" || len(got.Models) > 0 || !slices.Contains(got.Workloads, port.WorkloadCompletion) {
			t.Errorf("got %+v, want completions only", got)
		}
		return
	}
	if got.Version == "" || !slices.Contains(got.Models, h.Model) || !slices.Contains(got.Workloads, port.WorkloadCompletion) || got.ContextTokens == 0 || got.Slots == 0 {
		t.Errorf("got %+v, want a version, the model %s, completions, a context and slots", got, h.Model)
	}
}

func engineCompletion(t *testing.T, h EngineHarness) {
	text, pieces, end, err := h.generate(t, h.generation())
	if err != nil {
		t.Fatal(err)
	}
	if end.Finish != port.FinishLength || text == "" || pieces < 2 || pieces > 12 {
		t.Errorf("got %q in %d pieces, %+v, want 2 to 12 pieces and the finish reason length", text, pieces, end)
	}
	if end.Counted && (end.TokensOut != 12 || end.TokensIn == 0) || !end.Counted && end.TokensOut != pieces {
		t.Errorf("got %+v for %d pieces, want 12 tokens or the number of pieces", end.Usage, pieces)
	}
}

// engineReasoning requires that the engine separates its reasoning from its answer.
func engineReasoning(t *testing.T, h EngineHarness) {
	if !h.Reasons {
		return
	}
	g := port.Generation{Model: h.Model, Messages: []port.Message{{Role: "user", Content: "cause-reasoning"}}, MaxTokens: 12}
	pieces := map[bool]int{}
	end, err := h.Engine.Generate(deadline(t), g, func(p port.Piece) error {
		if p.Reasoning && pieces[false] > 0 {
			t.Errorf("got the reasoning %q after the answer, want it before", p.Text)
		}
		pieces[p.Reasoning]++
		return nil
	})
	if err != nil || pieces[true] != 6 || pieces[false] != 6 || end.TokensOut != 12 {
		t.Errorf("got %d pieces of reasoning and %d of the answer, %+v (%v), want 6 each", pieces[true], pieces[false], end, err)
	}
	if h.Counts && end.ReasoningTokens != 6 {
		t.Errorf("got %d tokens of reasoning, want 6", end.ReasoningTokens)
	}
}

func engineSeed(t *testing.T, h EngineHarness) {
	first, _, _, err := h.generate(t, h.generation())
	if err != nil {
		t.Fatal(err)
	}
	if again, _, _, err := h.generate(t, h.generation()); err != nil || again != first {
		t.Errorf("got %q, %v, want %q again", again, err, first)
	}
	other := h.generation()
	*other.Seed = 8
	if text, _, _, err := h.generate(t, other); err != nil || text == first {
		t.Errorf("got %q, %v, want another text for another seed", text, err)
	}
}

func engineMessages(t *testing.T, h EngineHarness) {
	g := h.generation()
	g.Prompt, g.Messages = "", []port.Message{{Role: "system", Content: "be brief"}, {Role: "user", Content: "hello"}}
	text, _, end, err := h.generate(t, g)
	if !h.Messages {
		if !fault.Is(err, fault.InvalidParams) {
			t.Errorf("got %v, want InvalidParams", err)
		}
		return
	}
	if err != nil || text == "" || end.Finish != port.FinishLength {
		t.Errorf("got %q, %+v, %v, want an answer", text, end, err)
	}
}

func engineStop(t *testing.T, h EngineHarness) {
	if !h.Stops {
		return
	}
	whole, _, _, err := h.generate(t, h.generation())
	if err != nil {
		t.Fatal(err)
	}
	g := h.generation()
	words := strings.Fields(whole)
	g.Stop = []string{" " + words[len(words)-1]}
	text, _, end, err := h.generate(t, g)
	if err != nil || end.Finish != port.FinishStop || strings.Contains(text, g.Stop[0]) || !strings.HasPrefix(whole, text) {
		t.Errorf("got %q, %+v, %v, want the beginning of %q before %q", text, end, err, whole, g.Stop[0])
	}
}

func engineInvalid(t *testing.T, h EngineHarness) {
	for _, g := range []port.Generation{
		{Model: h.Model, MaxTokens: 1},
		{Model: h.Model, Prompt: "x", Messages: []port.Message{{Role: "user", Content: "x"}}, MaxTokens: 1},
		{Model: h.Model, Prompt: "x"},
		{Model: h.Model, Prompt: "\xff", MaxTokens: 1},
	} {
		if _, _, _, err := h.generate(t, g); !fault.Is(err, fault.Internal) {
			t.Errorf("generation %+v: got %v, want Internal", g, err)
		}
	}
}

func engineTooLong(t *testing.T, h EngineHarness) {
	g := h.generation()
	g.Prompt, g.MaxTokens = strings.Repeat("very long ", 40_000), 100_000
	if _, pieces, _, err := h.generate(t, g); !fault.Is(err, fault.InvalidParams) || pieces > 0 {
		t.Errorf("got %v after %d pieces, want InvalidParams", err, pieces)
	}
}

func engineUnknownModel(t *testing.T, h EngineHarness) {
	if !h.Names {
		return
	}
	g := h.generation()
	g.Model = "no-such-model"
	if _, _, _, err := h.generate(t, g); !fault.Is(err, fault.ModelUnknown) {
		t.Errorf("got %v, want ModelUnknown", err)
	}
}

func engineCallerEnds(t *testing.T, h EngineHarness) {
	own := errors.New("enough")
	calls := 0
	_, err := h.Engine.Generate(deadline(t), h.generation(), func(port.Piece) error {
		calls++
		if calls == 2 {
			return own
		}
		return nil
	})
	if !errors.Is(err, own) || calls != 2 {
		t.Errorf("got %v after %d calls, want the caller's error after 2", err, calls)
	}
	h.Idle(t)
}

func engineContext(t *testing.T, h EngineHarness) {
	ctx, cancel := context.WithCancel(deadline(t))
	g := h.generation()
	g.MaxTokens = 500
	_, err := h.Engine.Generate(ctx, g, func(port.Piece) error {
		cancel()
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the error of the context", err)
	}
	h.Idle(t)
	if _, err := h.Engine.Generate(ctx, g, func(port.Piece) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for an ended context, want its error", err)
	}
	if _, err := h.Engine.Health(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v for the health with an ended context, want its error", err)
	}
}

func engineBusy(t *testing.T, h EngineHarness) {
	if h.Fault == nil {
		return
	}
	h.Fault(t, EngineIsBusy, 0)
	if _, pieces, _, err := h.generate(t, h.generation()); !fault.Is(err, fault.ReplicaExhausted) || pieces > 0 {
		t.Errorf("got %v after %d pieces, want ReplicaExhausted", err, pieces)
	}
}

func engineFailsFirst(t *testing.T, h EngineHarness) {
	if h.Fault == nil {
		return
	}
	h.Fault(t, EngineFails, 0)
	if _, pieces, _, err := h.generate(t, h.generation()); !fault.Is(err, fault.PoolUnavailable) || pieces > 0 {
		t.Errorf("got %v after %d pieces, want PoolUnavailable", err, pieces)
	}
	if _, _, _, err := h.generate(t, h.generation()); err != nil {
		t.Errorf("got %v from the next request, want an answer", err)
	}
}

func engineFailsWithin(t *testing.T, h EngineHarness) {
	if h.Fault == nil {
		return
	}
	for _, how := range []EngineFault{EngineResets, EngineEndsEarly, EngineSendsError} {
		h.Fault(t, how, 3)
		if _, pieces, end, err := h.generate(t, h.generation()); !fault.Is(err, fault.WorkerReset) || pieces == 0 || pieces > 3 {
			t.Errorf("engine %s: got %v, %+v after %d pieces, want WorkerReset after 1 to 3", how, err, end, pieces)
		}
		h.Idle(t)
	}
}

func engineLoading(t *testing.T, h EngineHarness) {
	if h.Loading == nil {
		return
	}
	h.Loading(t, true)
	if got, err := h.Engine.Health(deadline(t)); err != nil || !got.Live || got.Ready || got.Reason == "" {
		t.Errorf("got %+v, %v while loading, want live, not ready, with a reason", got, err)
	}
	if _, pieces, _, err := h.generate(t, h.generation()); !fault.Is(err, fault.PoolUnavailable) || pieces > 0 {
		t.Errorf("got %v after %d pieces while loading, want PoolUnavailable", err, pieces)
	}
	h.Loading(t, false)
	if _, _, _, err := h.generate(t, h.generation()); err != nil {
		t.Errorf("got %v after loading, want an answer", err)
	}
}

func engineUnreachable(t *testing.T, h EngineHarness) {
	if h.Shut == nil {
		return
	}
	h.Shut(t)
	EngineIsUnreachable(t, h)
}

// EngineIsUnreachable is the part of the suite for an engine that has ended. Tests whose
// harness has no Shut call it themselves.
func EngineIsUnreachable(t *testing.T, h EngineHarness) {
	t.Helper()
	if got, err := h.Engine.Health(deadline(t)); err != nil || got.Live || got.Ready || got.Reason == "" {
		t.Errorf("got %+v, %v, want neither live nor ready, with a reason", got, err)
	}
	if _, _, _, err := h.generate(t, h.generation()); !fault.Is(err, fault.PoolUnavailable) {
		t.Errorf("got %v, want PoolUnavailable", err)
	}
	if _, err := h.Engine.Capabilities(deadline(t)); !h.Silent && !fault.Is(err, fault.PoolUnavailable) {
		t.Errorf("got %v for the capabilities, want PoolUnavailable", err)
	}
}

func engineVectors(t *testing.T, h EngineHarness) {
	vectors, err := h.Engine.Embed(deadline(t), port.Embedding{Model: h.Model, Inputs: []string{"box", "folder", "box"}})
	scores, rankErr := h.Engine.Rerank(deadline(t), port.Reranking{Model: h.Model, Query: "a box of letters", Documents: []string{"a folder", "a box of letters", "letters"}})
	if !h.Vectors {
		if !fault.Is(err, fault.InvalidParams) || !fault.Is(rankErr, fault.InvalidParams) {
			t.Errorf("got %v and %v, want InvalidParams", err, rankErr)
		}
		return
	}
	if err != nil || len(vectors.Vectors) != 3 || !slices.Equal(vectors.Vectors[0], vectors.Vectors[2]) || slices.Equal(vectors.Vectors[0], vectors.Vectors[1]) || vectors.TokensIn == 0 {
		t.Errorf("got %+v, %v, want 3 vectors of which the first and the last are equal", vectors, err)
	}
	if rankErr != nil || len(scores.Scores) != 3 || slices.Max(scores.Scores) != scores.Scores[1] || scores.Scores[0] == scores.Scores[1] {
		t.Errorf("got %+v, %v, want the highest score for the second document", scores, rankErr)
	}
}

func engineLoad(t *testing.T, h EngineHarness) {
	got, err := h.Engine.Load(deadline(t))
	if err != nil {
		t.Fatal(err)
	}
	if h.Silent {
		if got != (port.EngineLoad{}) {
			t.Errorf("got %+v, want no load", got)
		}
		return
	}
	if got.Running != nil && *got.Running != 0 || got.Waiting != nil && *got.Waiting != 0 || got.Running == nil && got.Waiting == nil {
		t.Errorf("got %+v, want no running and no waiting request", got)
	}
	if r := got.KVCacheUsageRatio; r != nil && (*r < 0 || *r > 1) {
		t.Errorf("got a cache usage of %v, want 0 to 1", *r)
	}
}
