// Package mockengine implements port.Engine without a model. Its answers depend only on the
// request. It is for development, tests and the simulation. It counts one token for each word,
// and can fail in the ways of real engines.
package mockengine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Version is the version that the mock reports.
const Version = "1"

// Failure is a way in which the next generation fails.
type Failure string

// The failures. All except FailBusy and FailStart happen after a number of pieces.
const (
	// FailBusy means that the engine refuses the request because it is busy.
	FailBusy Failure = "busy"
	// FailStart means that the engine fails before the first piece.
	FailStart Failure = "start"
	// FailReset means that the connection breaks.
	FailReset Failure = "reset"
	// FailEarly means that the answer ends normally, without the engine's final event.
	FailEarly Failure = "early"
	// FailError means that the engine sends an error in the middle of its answer.
	FailError Failure = "error"
	// FailStall means that no more is sent until the request is closed.
	FailStall Failure = "stall"
)

// Config configures a mock. Clock is required. Other zero values are defaults.
type Config struct {
	Clock clock.Clock
	// Model is the only model; empty is "mock".
	Model string
	// Slots is the number of concurrent generations, 4 by default. More are refused.
	Slots int
	// ContextTokens is the longest prompt with its answer, 32768 by default.
	ContextTokens int
	// TokenEvery is the time for each token; 0 sends them at once.
	TokenEvery time.Duration
	// Plan returns the course of each generation; nil uses FailNext. It is called by one
	// generation at a time.
	Plan func(port.Generation) Course
}

// Engine is a mock. It is safe for concurrent use.
type Engine struct {
	cfg Config

	mu      sync.Mutex
	changed sync.Cond
	running int
	loading bool
	next    []Course
}

var _ port.Engine = (*Engine)(nil)

// New returns a mock that is ready.
func New(cfg Config) *Engine {
	if cfg.Model == "" {
		cfg.Model = "mock"
	}
	if cfg.Slots == 0 {
		cfg.Slots = 4
	}
	if cfg.ContextTokens == 0 {
		cfg.ContextTokens = 32768
	}
	e := &Engine{cfg: cfg}
	e.changed.L = &e.mu
	return e
}

// FailNext makes the next generation fail after a number of pieces. Repeated calls plan the
// failures of the following ones.
func (e *Engine) FailNext(how Failure, after int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next = append(e.next, Course{Failure: how, After: after})
}

// SetLoading makes the engine refuse all requests, or accept them again.
func (e *Engine) SetLoading(loading bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.loading = loading
}

// WaitRunning returns when exactly n generations run.
func (e *Engine) WaitRunning(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.running != n {
		e.changed.Wait()
	}
}

// Health returns whether the engine is ready.
func (e *Engine) Health(ctx context.Context) (port.EngineHealth, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.loading {
		return port.EngineHealth{Live: true, Reason: "the engine is loading its model"}, ctx.Err()
	}
	return port.EngineHealth{Live: true, Ready: true}, ctx.Err()
}

// Capabilities returns the configuration.
func (e *Engine) Capabilities(ctx context.Context) (port.EngineCapabilities, error) {
	return port.EngineCapabilities{
		Version: Version, Models: []string{e.cfg.Model}, ContextTokens: e.cfg.ContextTokens, Slots: e.cfg.Slots,
		Workloads: []port.Workload{port.WorkloadCompletion, port.WorkloadEmbedding, port.WorkloadRerank}, Images: new(true),
	}, ctx.Err()
}

// Load returns the number of running generations.
func (e *Engine) Load(ctx context.Context) (port.EngineLoad, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	running, waiting := e.running, 0
	used := float64(running) / float64(e.cfg.Slots)
	return port.EngineLoad{Running: &running, Waiting: &waiting, KVCacheUsageRatio: &used}, ctx.Err()
}

// begin acquires a slot and returns the next planned course. The caller must call end.
func (e *Engine) begin(g port.Generation) (Course, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.loading:
		return Course{}, fault.New(fault.PoolUnavailable, "the engine is loading its model")
	case e.running == e.cfg.Slots:
		return Course{}, fault.New(fault.ReplicaExhausted, "the engine is busy: all %d slots are taken", e.cfg.Slots)
	}
	p := Course{Every: e.cfg.TokenEvery}
	if len(e.next) > 0 {
		p.Failure, p.After, e.next = e.next[0].Failure, e.next[0].After, e.next[1:]
	}
	if e.cfg.Plan != nil {
		p = e.cfg.Plan(g)
	}
	switch p.Failure {
	case FailBusy:
		return p, port.EngineAnswer{Fault: fault.New(fault.ReplicaExhausted, "the engine is busy"), Status: http.StatusTooManyRequests}
	case FailStart:
		return p, port.EngineAnswer{Fault: fault.New(fault.PoolUnavailable, "the engine failed before its first token"), Status: http.StatusInternalServerError}
	}
	e.running++
	e.changed.Broadcast()
	return p, nil
}

func (e *Engine) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running--
	e.changed.Broadcast()
}

// check returns a fault for another model, or for more tokens than the context has.
func (e *Engine) check(model string, tokens int) error {
	switch {
	case model != "" && model != e.cfg.Model:
		return fault.New(fault.ModelUnknown, "the engine does not have the model %s, it has %s", model, e.cfg.Model)
	case tokens > e.cfg.ContextTokens:
		return fault.New(fault.InvalidParams, "the engine refuses the request: prompt and max_tokens are %d tokens, the context has %d", tokens, e.cfg.ContextTokens)
	}
	return nil
}

// Generate sends words that depend on the prompt and the seed. Without a limit of the client
// they end by themselves, with the reason stop.
func (e *Engine) Generate(ctx context.Context, g port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	if err := g.Check(); err != nil {
		return port.GenerationEnd{}, err
	}
	if err := ctx.Err(); err != nil {
		return port.GenerationEnd{}, err
	}
	prompt := promptOf(g)
	in := len(strings.Fields(prompt)) + 1
	if err := e.check(g.Model, in+g.MaxTokens); err != nil {
		return port.GenerationEnd{}, err
	}
	course, err := e.begin(g)
	if err != nil {
		return port.GenerationEnd{}, err
	}
	ended := false
	defer func() { e.leave(course, ended) }()
	limits := newLimits(e.cfg.Clock, g.Limits)
	end := port.GenerationEnd{Finish: port.FinishLength, Usage: port.Usage{TokensIn: in, Counted: true}}
	answer := sourceOf(prompt, g)
	most := g.MaxTokens
	reason, bounded := answer.finish()
	if own := answer.length(); g.OpenEnd && own < most || bounded && own <= most {
		most, end.Finish = own, reason
	}
	if strings.Contains(prompt, Reasoning) {
		course.Reasons = most / 2
	}
	var text strings.Builder
	for end.TokensOut < most {
		if course.Failure != "" && end.TokensOut == course.After {
			ended = course.Failure != FailStall
			return port.GenerationEnd{}, e.fail(ctx, course, limits)
		}
		pause := course.Every
		if end.TokensOut == 0 {
			pause += course.First
		}
		if err := limits.wait(ctx, pause); err != nil {
			return port.GenerationEnd{}, err
		}
		piece := withLogprobs(answer.next(), g.Options)
		text.WriteString(piece.Text)
		end.TokensOut++
		if stopped(text.String(), g.Stop) {
			end.Finish = port.FinishStop
			break
		}
		sent := 1
		if end.TokensOut == course.Repeats {
			sent = 2
		}
		for range sent {
			if piece.Reasoning = piece.Calls == nil && end.TokensOut <= course.Reasons; piece.Reasoning {
				piece.Logprobs = nil
			}
			if err := each(piece); err != nil {
				return port.GenerationEnd{}, err
			}
		}
		limits.piece()
	}
	ended, end.CachedTokens, end.ReasoningTokens, end.Finish = true, min(course.Cached, end.TokensIn), min(course.Reasons, end.TokensOut), cmp.Or(course.Finish, end.Finish)
	return end, ctx.Err()
}

// fail ends a generation as planned.
func (e *Engine) fail(ctx context.Context, p Course, limits *limits) error {
	if p.Failure == FailStall {
		return limits.wait(ctx, stall)
	}
	return fault.Wrap(failed{p.Failure}, fault.WorkerReset, "the engine ended its answer after %d pieces", p.After)
}

// failed is the cause of a planned failure.
type failed struct{ how Failure }

func (f failed) Error() string { return "planned failure: " + string(f.how) }

// Planned returns the planned failure that ended a generation with err, or "" for another
// error.
func Planned(err error) Failure {
	f, _ := errors.AsType[failed](err)
	return f.how
}

// stall is longer than any limit.
const stall = 365 * 24 * time.Hour

// promptOf returns the text of a request.
func promptOf(g port.Generation) string {
	if g.Prompt != "" {
		return g.Prompt
	}
	var b strings.Builder
	for _, m := range g.Messages {
		fmt.Fprintf(&b, "[%s] %s\n", m.Role, m.Content)
		for _, p := range m.Parts {
			if p.Image != nil {
				fmt.Fprintf(&b, "[image] %s %x\n", p.Image.MediaType, sha256.Sum256(p.Image.Data))
			} else {
				fmt.Fprintln(&b, p.Text)
			}
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "[call] %s %s\n", c.Name, c.Arguments)
		}
	}
	if o := g.Options; o != nil {
		for _, t := range o.Tools {
			fmt.Fprintf(&b, "[tool] %s %s %s\n", t.Name, t.Description, t.Parameters)
		}
	}
	return b.String()
}

// stopped reports whether the answer contains a stop text. The mock sends whole words, so a
// stop text that begins within a word removes the whole word.
func stopped(text string, stops []string) bool {
	return slices.ContainsFunc(stops, func(s string) bool { return s != "" && strings.Contains(text, s) })
}

// words generates the words of an answer. One of them has a character of several bytes.
type words struct{ state [sha256.Size]byte }

var vocabulary = []string{
	" archive", " box", " caf\u00e9", " date", " entry", " folder", " guide", " hand", " index", " journal", " key", " letter",
	" map", " note", " order", " page",
}

func newWords(prompt string, seed *int64) *words {
	var number [8]byte
	if seed != nil {
		binary.BigEndian.PutUint64(number[:], uint64(*seed)) //nolint:gosec // any bits will do
	}
	return &words{state: sha256.Sum256(append(number[:], prompt...))}
}

// length is the number of words of an answer without a limit: 32 to 95.
func (w *words) length() int { return 32 + int(w.state[1])%64 }

func (w *words) finish() (port.FinishReason, bool) { return port.FinishStop, false }

func (w *words) next() port.Piece {
	w.state = sha256.Sum256(w.state[:])
	return port.Piece{Text: vocabulary[int(w.state[0])%len(vocabulary)]}
}

func vectorOf(input string, length int) []float64 {
	sum := sha256.Sum256([]byte(input))
	vector := make([]float64, length)
	for i := range vector {
		vector[i] = float64(sum[i%len(sum)])/127.5 - 1
	}
	return vector
}

// Embed returns vectors that depend on the inputs, by default of eight numbers.
func (e *Engine) Embed(ctx context.Context, request port.Embedding) (port.Embedded, error) {
	var answer port.Embedded
	answer.Counted = true
	length := cmp.Or(request.Dimensions, 8)
	for _, input := range request.Inputs {
		answer.TokensIn += len(strings.Fields(input)) + 1
		answer.Vectors = append(answer.Vectors, vectorOf(input, length))
	}
	for _, tokens := range request.Tokens {
		answer.TokensIn += len(tokens)
		answer.Vectors = append(answer.Vectors, vectorOf(fmt.Sprint(tokens), length))
	}
	if err := e.check(request.Model, answer.TokensIn); err != nil {
		return port.Embedded{}, err
	}
	if _, err := e.begin(port.Generation{}); err != nil {
		return port.Embedded{}, err
	}
	defer e.end()
	return answer, ctx.Err()
}

// Rerank scores a document by the share of the query's words that it contains.
func (e *Engine) Rerank(ctx context.Context, request port.Reranking) (port.Ranked, error) {
	var answer port.Ranked
	answer.Counted = true
	query := strings.Fields(strings.ToLower(request.Query))
	for _, document := range request.Documents {
		have := strings.Fields(strings.ToLower(document))
		answer.TokensIn += len(query) + len(have)
		found := 0
		for _, word := range query {
			if slices.Contains(have, word) {
				found++
			}
		}
		answer.Scores = append(answer.Scores, float64(found)/float64(max(1, len(query))))
	}
	if err := e.check(request.Model, answer.TokensIn); err != nil {
		return port.Ranked{}, err
	}
	if _, err := e.begin(port.Generation{}); err != nil {
		return port.Ranked{}, err
	}
	defer e.end()
	return answer, ctx.Err()
}
