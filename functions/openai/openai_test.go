package openai_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/sortie-dev/sortie/functions/inference"
	"github.com/sortie-dev/sortie/functions/openai"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/proof/port/sqlitetest"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/platform"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// counting is an engine that counts its requests.
type counting struct {
	*mockengine.Engine
	asked atomic.Int64
	// hold, if not nil, receives the channel on which a request waits for its error.
	hold chan chan error
}

func (e *counting) Generate(ctx context.Context, g port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	e.asked.Add(1)
	if e.hold != nil {
		answer := make(chan error)
		e.hold <- answer
		if err := <-answer; err != nil {
			return port.GenerationEnd{}, err
		}
	}
	return e.Engine.Generate(ctx, g, each)
}

// served is a stage with a pool of a mock engine, its dispatcher and the official client.
type served struct {
	*apitest.Stage
	engine *counting
	client sdk.Client
	// stop stops the dispatcher.
	dispatcher *inferences.Dispatcher
	stop       func()
	feed       port.AnswerFeed
	tally      porttest.Tally
	keys       keys
}

// keys are the tokens of clients. A client without one is served too, unless required.
type keys struct {
	list     []access.Token
	required bool
}

func (k *keys) Current(context.Context) (tokens []access.Token, required bool, err error) {
	return k.list, k.required, nil
}

func (k *keys) Refused() {}

func setup(t *testing.T) *served {
	t.Helper()
	return setupPadded(t, 0)
}

// setupPadded is like setup, with white space before answers after each interval.
func setupPadded(t *testing.T, every time.Duration) *served {
	t.Helper()
	return setupWith(t, every, 0)
}

// setupWith is like setupPadded, with an engine that generates one token in each interval.
func setupWith(t *testing.T, every, token time.Duration) *served {
	t.Helper()
	return setupMocked(t, every, mockengine.Config{TokenEvery: token})
}

// setupPlanned is like setup, with a course for each generation.
func setupPlanned(t *testing.T, plan func(port.Generation) mockengine.Course) *served {
	t.Helper()
	return setupMocked(t, 0, mockengine.Config{Plan: plan})
}

func setupMocked(t *testing.T, every time.Duration, cfg mockengine.Config) *served {
	t.Helper()
	parts := apitest.NewParts(t)
	cfg.Clock = parts.Clock
	s := &served{engine: &counting{Engine: mockengine.New(cfg)}}
	db, err := sqlitetest.Open(t.Context(), filepath.Join(sqlitetest.Folder(t), "feed.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	feed, err := sqlite.NewFeed(t.Context(), db, sqlite.FeedConfig{Clock: parts.Clock, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	s.feed = feed
	s.Stage = apitest.New(t, parts, func(system *app.System) []httpkit.Route {
		return slices.Concat(openai.PaddedRoutes(system.Inference, parts.Clock, every), inference.Routes(system.Inference, parts.Clock))
	}, func(settings *apitest.Settings) {
		settings.Record, settings.Server.Tokens = s.tally.Record, &s.keys
		settings.Tasks = app.ServeTasks(feed, func(string, platform.EnginePlace, platform.EngineReplica) (port.Engine, error) {
			return s.engine, nil
		}, inferences.DispatcherConfig{ID: "dispatcher", Alone: true})
	})
	s.dispatcher = s.System.Dispatcher
	place := platform.EnginePlace{Kind: platform.EngineMock, Model: "mock", Slots: 1, Replicas: make([]platform.EngineReplica, 1)}.WithIDs()
	pool := platform.Pool{Tenant: apitest.Tenant, ID: "pool0", Limit: 1, QueueLimit: 1, Engine: &place, CreatedAt: apitest.Began, UpdatedAt: apitest.Began}
	if err := s.Store.SavePool(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.dispatcher.Run(ctx) })
	<-s.dispatcher.Ready()
	s.stop = func() { stop(); running.Wait() }
	t.Cleanup(s.stop)
	s.client = sdk.NewClient(option.WithBaseURL(s.URL+"/v1/"), option.WithAPIKey(""), option.WithHTTPClient(s.Client))
	return s
}

func chat(tokens int64) sdk.ChatCompletionNewParams {
	return sdk.ChatCompletionNewParams{
		Model: "mock", Messages: []sdk.ChatCompletionMessageParamUnion{sdk.DeveloperMessage("be brief"), sdk.UserMessage("tell a story")},
		MaxCompletionTokens: param.NewOpt(tokens), StreamOptions: sdk.ChatCompletionStreamOptionsParam{IncludeUsage: param.NewOpt(true)},
	}
}

func TestClientGetsAnswers(t *testing.T) {
	t.Parallel()
	s := setup(t)
	ctx := t.Context()
	whole, err := s.client.Chat.Completions.New(ctx, chat(5))
	if err != nil || len(whole.Choices) != 1 || whole.Choices[0].Message.Content == "" || whole.Choices[0].FinishReason != "length" ||
		whole.Usage.CompletionTokens != 5 || !strings.HasPrefix(whole.ID, "chatcmpl-") || whole.Model != "mock" || whole.Created != apitest.Began.Unix() {
		t.Fatalf("got %+v (%v), want an answer of 5 tokens", whole, err)
	}
	stream := s.client.Chat.Completions.NewStreaming(ctx, chat(5))
	var all sdk.ChatCompletionAccumulator
	var chunks []sdk.ChatCompletionChunk
	for stream.Next() {
		chunks = append(chunks, stream.Current())
		if !all.AddChunk(stream.Current()) {
			t.Errorf("got a chunk that does not belong to the others: %s", stream.Current().RawJSON())
		}
	}
	last := chunks[len(chunks)-1]
	if stream.Err() != nil || all.Choices[0].Message.Content != whole.Choices[0].Message.Content || all.Choices[0].FinishReason != "length" ||
		chunks[0].Choices[0].Delta.Role != "assistant" || len(last.Choices) != 0 || last.Usage.TotalTokens != whole.Usage.TotalTokens {
		t.Errorf("got %+v (%v), want the parts of the same answer, the usage last", chunks, stream.Err())
	}
	text, err := s.client.Completions.New(ctx, sdk.CompletionNewParams{Model: "mock", Prompt: sdk.CompletionNewParamsPromptUnion{OfString: param.NewOpt("tell")}})
	if err != nil || text.Choices[0].Text == "" || text.Usage.CompletionTokens != 16 {
		t.Errorf("got %+v (%v), want a text of 16 tokens", text, err)
	}
	parts := s.client.Completions.NewStreaming(ctx, sdk.CompletionNewParams{Model: "mock", Prompt: sdk.CompletionNewParamsPromptUnion{OfString: param.NewOpt("tell")}})
	var joined strings.Builder
	for parts.Next() {
		joined.WriteString(parts.Current().Choices[0].Text)
	}
	if parts.Err() != nil || joined.String() != text.Choices[0].Text {
		t.Errorf("got the parts %q (%v), want those of %q", joined.String(), parts.Err(), text.Choices[0].Text)
	}
	input := sdk.EmbeddingNewParams{Model: "mock", Input: sdk.EmbeddingNewParamsInputUnion{OfArrayOfStrings: []string{"a", "b"}}}
	vectors, err := s.client.Embeddings.New(ctx, input)
	if err != nil || len(vectors.Data) != 2 || vectors.Data[1].Index != 1 || len(vectors.Data[1].Embedding) == 0 {
		t.Errorf("got %+v (%v), want two vectors", vectors, err)
	}
	models, err := s.client.Models.List(ctx)
	if err != nil || len(models.Data) != 1 || models.Data[0].ID != "mock" || models.Data[0].Created != apitest.Began.Unix() {
		t.Errorf("got %+v (%v), want the model of the pool", models, err)
	}
}

// TestClientRetriesOnlyWhatIsOfUse counts the requests that an engine receives for a call.
func TestClientRetriesOnlyWhatIsOfUse(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		fails  []int // an engine's requests, each after a number of pieces
		code   string
		status int
		asked  int64
	}{
		"success":                {asked: 1},
		"failure before content": {fails: []int{0}, asked: 2},
		"failure in the answer":  {fails: []int{2}, asked: 1, status: http.StatusBadGateway, code: "worker_reset"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, streamed := range []bool{false, true} {
				s := setup(t)
				for _, after := range row.fails {
					s.engine.FailNext(mockengine.FailReset, after)
				}
				var err error
				if streamed {
					stream := s.client.Chat.Completions.NewStreaming(t.Context(), chat(5))
					for stream.Next() {
					}
					err = stream.Err()
				} else {
					_, err = s.client.Chat.Completions.New(t.Context(), chat(5))
				}
				refused, isRefused := errors.AsType[*sdk.Error](err)
				switch {
				case row.status == 0 && err != nil, row.status != 0 && err == nil:
					t.Errorf("streamed %t: got error %v, want status %d", streamed, err, row.status)
				case streamed && err != nil && !strings.Contains(err.Error(), row.code):
					t.Errorf("got error %v of a stream, want %s", err, row.code)
				case !streamed && err != nil && (!isRefused || refused.StatusCode != row.status || refused.Code != row.code):
					t.Errorf("got error %v, want %d %s", err, row.status, row.code)
				}
				if asked := s.engine.asked.Load(); asked != row.asked {
					t.Errorf("streamed %t: got %d requests to the engine, want %d", streamed, asked, row.asked)
				}
			}
		})
	}
}

// TestLateAnswerIsAGatewayTimeout uses an engine that needs more time than the deadline of the
// task.
func TestLateAnswerIsAGatewayTimeout(t *testing.T) {
	t.Parallel()
	s := setupWith(t, 0, 10*time.Second)
	ended := make(chan error)
	go func() {
		_, err := s.client.Chat.Completions.New(t.Context(), chat(200))
		ended <- err
	}()
	s.engine.WaitRunning(1)
	err := s.pass(time.Second, ended)
	refused, ok := errors.AsType[*sdk.Error](err)
	if !ok || refused.StatusCode != http.StatusGatewayTimeout || refused.Code != "deadline_unmet" || refused.Type != "server_error" {
		t.Errorf("got %v, want 504 deadline_unmet", err)
	}
}

// pass advances the clock in steps until a call has ended, and returns its error. It gives the
// processes some real time for each step, because at a faster pace they would always be late.
func (s *served) pass(step time.Duration, ended <-chan error) error {
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for {
		select {
		case err := <-ended:
			return err
		case <-pace.C:
			s.Clock.Advance(step)
		}
	}
}

func TestDisconnectCancelsTheTask(t *testing.T) {
	t.Parallel()
	for name, streamed := range map[string]bool{"streamed": true, "whole": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.engine.FailNext(mockengine.FailStall, 2)
			ctx, leave := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			if streamed {
				stream := s.client.Chat.Completions.NewStreaming(ctx, chat(5))
				if !stream.Next() {
					t.Fatalf("got error %v, want a first part", stream.Err())
				}
			} else {
				calls.Go(func() { _, _ = s.client.Chat.Completions.New(ctx, chat(5)) })
				s.engine.WaitRunning(1)
			}
			leave()
			s.engine.WaitRunning(0)
			calls.Wait()
			// The slot is free for the next one.
			if whole, err := s.client.Chat.Completions.New(t.Context(), chat(5)); err != nil || whole.Usage.CompletionTokens != 5 {
				t.Errorf("got %+v (%v) after a disconnect, want an answer", whole, err)
			}
			if asked := s.engine.asked.Load(); asked != 2 {
				t.Errorf("got %d requests to the engine, want 2", asked)
			}
		})
	}
}

// TestDisconnectLeavesTheTaskToOthers disconnects one of two calls with the same key.
func TestDisconnectLeavesTheTaskToOthers(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.engine.FailNext(mockengine.FailStall, 2)
	key := option.WithHeader("Idempotency-Key", "k")
	first, leaveFirst := context.WithCancel(t.Context())
	defer leaveFirst()
	second, leaveSecond := context.WithCancel(t.Context())
	defer leaveSecond()
	a := s.client.Chat.Completions.NewStreaming(first, chat(5), key)
	b := s.client.Chat.Completions.NewStreaming(second, chat(5), key)
	if !a.Next() || !b.Next() || a.Current().ID != b.Current().ID {
		t.Fatalf("got %s (%v) and %s (%v), want parts of one answer", a.Current().ID, a.Err(), b.Current().ID, b.Err())
	}
	leaveFirst()
	id := "inf_" + strings.TrimPrefix(b.Current().ID, "chatcmpl-")
	s.AwaitRequests(t, 1)
	if r := s.Run(t, id); r.Cancel != nil || r.State.Terminal() {
		t.Errorf("got a task in state %s with cancel %+v, want one that runs for the second call", r.State, r.Cancel)
	}
	leaveSecond()
	s.engine.WaitRunning(0)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for _, row := range []struct {
		path, body, kind, param, code string
		status                        int
	}{
		{"chat/completions", `{`, "invalid_request_error", "", "invalid_request", 400},
		{"chat/completions", `{"messages":[{"role":"user","content":"a"}]}`, "invalid_request_error", "model", "invalid_request", 400},
		{"chat/completions", `{"model":"mock","messages":[]}`, "invalid_request_error", "messages", "invalid_request", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"tool","content":"a"}]}`, "invalid_request_error", "messages.0.tool_call_id", "invalid_request", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, "invalid_request_error", "messages.0.content.0.image_url", "invalid_request", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":"a"}],"n":17}`, "invalid_request_error", "n", "invalid_params", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":"a"}],"tools":[{}]}`, "invalid_request_error", "tools.0.type", "invalid_params", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":"a"}],"top_k":-2}`, "invalid_request_error", "top_k", "invalid_params", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":"a"}],"best":2}`, "invalid_request_error", "best", "invalid_request", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":"a"}],"temperature":"x"}`, "invalid_request_error", "temperature", "invalid_request", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":"a"}],"temperature":3}`, "invalid_request_error", "temperature", "invalid_request", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":"a"}],"max_completion_tokens":0}`, "invalid_request_error", "max_completion_tokens", "invalid_params", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":"a"}],"max_completion_tokens":32769}`, "invalid_request_error", "max_completion_tokens", "invalid_params", 400},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":"a"}],"max_tokens":32769}`, "invalid_request_error", "max_tokens", "invalid_params", 400},
		{"completions", `{"model":"mock","prompt":"a","max_tokens":32769}`, "invalid_request_error", "max_tokens", "invalid_params", 400},
		{"responses", `{"model":"mock","input":"a","max_output_tokens":32769}`, "invalid_request_error", "max_output_tokens", "invalid_params", 400},
		{"chat/completions", `{"model":"other","messages":[{"role":"user","content":"a"}]}`, "not_found_error", "", "model_not_found", 404},
		{"chat/completions", `{"model":"other","stream":true,"messages":[{"role":"user","content":"a"}]}`, "not_found_error", "", "model_not_found", 404},
		{"chat/completions", `{"model":"mock","messages":[{"role":"user","content":"a"}],"prompt":"b"}`, "invalid_request_error", "prompt", "invalid_request", 400},
		{"completions", `{"model":"mock","prompt":["a",""]}`, "invalid_request_error", "prompt", "invalid_request", 400},
		{"completions", `{"model":"mock","prompt":[1,2]}`, "invalid_request_error", "prompt", "invalid_request", 400},
		{"embeddings", `{"model":"mock","input":[]}`, "invalid_request_error", "input", "invalid_request", 400},
		{"embeddings", `{"model":"mock","input":"a","dimensions":-3}`, "invalid_request_error", "dimensions", "invalid_params", 400},
	} {
		got, header := apitest.Decoded[struct {
			Error struct {
				Message, Type, Code string
				Param               *string
			}
		}](t, s.Stage, "POST", "/v1/"+row.path, row.body, row.status)
		param := ""
		if got.Error.Param != nil {
			param = *got.Error.Param
		}
		if got.Error.Type != row.kind || got.Error.Code != row.code || param != row.param || got.Error.Message == "" || header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %.120s: got %+v of %s, want %s %s of %s", row.path, row.body, got.Error, param, row.kind, row.code, row.param)
		}
	}
	if asked := s.engine.asked.Load(); asked != 0 {
		t.Errorf("got %d requests to the engine, want none", asked)
	}
}

// TestFullQueueNamesTheWait fills the slot and the queue.
func TestFullQueueNamesTheWait(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.engine.FailNext(mockengine.FailStall, 2)
	apitest.Decoded[contract.TaskAccepted](t, s.Stage, "POST", "/v1/tasks", `{"model_ref":"mock","prompt":"a"}`, 202)
	apitest.Decoded[contract.TaskAccepted](t, s.Stage, "POST", "/v1/tasks", `{"model_ref":"mock","prompt":"a"}`, 202)
	answer := s.Call(t, "POST", "/v1/completions", `{"model":"mock","prompt":"a"}`)
	if answer.Status != http.StatusTooManyRequests || answer.Header.Get("Retry-After-Ms") != "1000" || answer.Header.Get("Retry-After") != "1" ||
		!strings.Contains(answer.Body, `"rate_limit_exceeded"`) || answer.Header.Get("X-Should-Retry") != "" {
		t.Errorf("got %d %s with %v, want 429 with the wait", answer.Status, answer.Body, answer.Header)
	}
}
