package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/openai"
)

// NewTask converts a request for an inference task. The fault is DeadlineUnmet if deadline_ms
// is out of range, InvalidParams if max_tokens or expected_tokens is, or InvalidRequest for a
// message without content. The other fields are checked when the task is created.
func NewTask(in contract.TaskRequest) (inferences.NewTask, error) {
	task := inferences.NewTask{
		Model: in.ModelRef, Engine: in.Engine, Workload: port.Workload(in.Workload), SessionID: in.SessionID,
		Request: inference.Request{
			Prompt: in.Prompt, Prompts: in.Prompts, Choices: choicesOf(in.N), Input: in.Input, Query: in.Query, Tokens: in.InputTokens, VectorLength: valueOr(in.Dimensions, 0), Context: valueOr(in.Ctx, 0), Stop: in.Stop, Seed: (*int64)(in.Seed),
			Temperature: in.Temperature, TopP: in.TopP,
		},
		MaxTokens: valueOr(in.MaxTokens, 0), ExpectedTokens: valueOr(in.ExpectedTokens, 0),
		Priority: spec.Priority(in.Priority), SamplerProfile: in.SamplerProfileVersion, Labels: in.Labels, Digest: digestOf(in),
	}
	if task.Workload == "" {
		task.Workload = port.WorkloadCompletion
	}
	if err := readOptions(&task.Request, in); err != nil {
		return task, err
	}
	switch {
	case in.N != nil && *in.N == 0:
		return task, fault.Invalid("n", "0 is out of range, want 1 to %d", inference.Answers)
	case in.Dimensions != nil && *in.Dimensions == 0:
		return task, fault.Invalid("dimensions", "0 is out of range, want 1 to %d", inference.Dimensions)
	case in.MaxTokens != nil && (*in.MaxTokens < 1 || *in.MaxTokens > inference.MaxTokens):
		f := fault.New(fault.InvalidParams, "%d is out of range, want 1 to %d", *in.MaxTokens, inference.MaxTokens)
		f.Field = "max_tokens"
		return task, f
	case in.ExpectedTokens != nil && *in.ExpectedTokens < 0:
		f := fault.New(fault.InvalidParams, "%d is out of range, want 0 or more", *in.ExpectedTokens)
		f.Field = "expected_tokens"
		return task, f
	case in.DeadlineMS != nil && (*in.DeadlineMS <= 0 || *in.DeadlineMS > math.MaxInt64/int64(time.Millisecond)):
		f := fault.New(fault.DeadlineUnmet, "%d ms is out of range, want 1 to %d", *in.DeadlineMS, inference.MostWithin.Milliseconds())
		f.Field = "deadline_ms"
		return task, f
	}
	task.Within = time.Duration(valueOr(in.DeadlineMS, 0)) * time.Millisecond
	return task, nil
}

// readOptions reads the messages and the members that a task shares with a chat completion.
func readOptions(q *inference.Request, in contract.TaskRequest) error {
	for i, m := range in.Messages {
		at := fmt.Sprintf("messages.%d.", i)
		calls, err := openai.ToolCalls(at+"tool_calls", m.ToolCalls)
		if err != nil {
			return err
		}
		if m.Content == nil && len(calls)+len(m.Images) == 0 {
			return fault.Invalid(at+"content", "missing content, want a text")
		}
		message := port.Message{Role: m.Role, Content: valueOr(m.Content, ""), ToolCalls: calls, ToolCallID: m.ToolCallID, Name: m.Name}
		if err := addImages(&message, at, m.Images); err != nil {
			return err
		}
		q.Messages = append(q.Messages, message)
	}
	text, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("cannot encode the request: %w", err)
	}
	q.Options, err = openai.Options(text, in.EngineOptions)
	return err
}

// addImages puts images behind the text of a message. at is its path.
func addImages(m *port.Message, at string, urls []string) error {
	if len(urls) == 0 {
		return nil
	}
	if m.Content != "" {
		m.Parts, m.Content = []port.ContentPart{{Text: m.Content}}, ""
	}
	for i, url := range urls {
		image, err := openai.Image(fmt.Sprintf("%simages.%d", at, i), url, "")
		if err != nil {
			return err
		}
		m.Parts = append(m.Parts, port.ContentPart{Image: image})
	}
	return nil
}

// choicesOf returns the number of answers for each prompt; 0 is one, so that requests without the member
// are stored as before.
func choicesOf(n *int) int {
	if n == nil || *n == 1 {
		return 0
	}
	return *n
}

// digestOf returns a digest that identifies the content of a request.
func digestOf(in any) string {
	text, _ := json.Marshal(in) //nolint:errchkjson // the requests of this package always have a JSON form
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// TaskAccepted returns the response to the creation of an inference task.
func TaskAccepted(a inferences.Accepted) contract.TaskAccepted {
	return contract.TaskAccepted{TaskID: a.Run.TaskID, QueuePosition: a.QueuePosition, PredictedStartMS: a.PredictedStart.Milliseconds()}
}

// inferenceDetails returns the details of an inference run; nil for other kinds.
func inferenceDetails(r run.Run) *contract.InferenceDetails {
	work := r.Work.Inference
	if work == nil {
		return nil
	}
	details := &contract.InferenceDetails{
		Model: work.Model, Engine: work.Engine, Workload: work.Workload, SessionID: work.SessionID, MaxTokens: work.MaxTokens,
	}
	if g := r.Generation; g != nil {
		details.Replica, details.EngineVersion, details.FinishReason, details.TraceID = g.Replica, g.EngineVersion, g.Finish, g.Trace
		details.TokensIn, details.TokensOut, details.DecodeMS = &g.TokensIn, &g.TokensOut, &g.DecodeMS
		details.CachedTokens, details.ReasoningTokens = g.CachedTokens, g.ReasoningTokens
	}
	return details
}

// featuresOf returns the features of an engine.
func featuresOf(e pools.Capability) contract.EngineFeatures {
	is := contract.EngineFeatures{Deterministic: e.Deterministic, Request: []string{}, EngineOptions: append([]string{}, inference.EngineExtras(e.Engine)...)}
	for _, f := range inference.EngineFeatures(e.Engine) {
		is.Request = append(is.Request, string(f))
	}
	return is
}
