package spec

import (
	"cmp"
	"encoding/json"
	"time"
)

// Inference is the work of an inference run: a request to the engine of its pool. Its worker is
// a dispatcher. The run has no machine and no execution.
type Inference struct {
	// Model is the name of the model as the client sends it. Engine is the requested engine;
	// empty leaves the choice to the pool.
	Model  string `json:"model"`
	Engine string `json:"engine,omitempty"`
	// Served is the model of the task's pool, if it is another one.
	Served string `json:"served,omitempty"`
	// SplitPercent is the share of the tasks for Model that its split sends to Served, this one too;
	// 0 for a task without a split.
	SplitPercent int `json:"splitPercent,omitempty"`
	// EngineModel is the engine's name of the model; empty if the engine serves only one.
	EngineModel string `json:"engineModel,omitempty"`
	// Workload is a value of port.Workload.
	Workload string `json:"workload"`
	// SessionID is empty for a task without a session.
	SessionID string `json:"sessionId,omitempty"`
	// Request is the JSON object for the dispatcher: the prompt and the sampling parameters. It is
	// empty after its deletion; see run.Run.AnswerDue.
	Request json.RawMessage `json:"request,omitempty"`
	// Input is the object with the whole request, if that is too large for the record. Request is
	// then its head: its beginning as the prompt, and its options.
	Input *Input `json:"input,omitempty"`
	// MaxTokens is the maximum number of tokens to generate. PromptTokens is the estimated
	// length of the prompt.
	MaxTokens int `json:"maxTokens"`
	// OpenEnd: the client has set no limit, so MaxTokens is the rest of the context length.
	OpenEnd      bool `json:"openEnd,omitempty"`
	PromptTokens int  `json:"promptTokens,omitempty"`
	// Within is how long after the creation of the run the answer is useful.
	Within time.Duration `json:"within"`
	// SamplerProfile is the version of the sampling parameters, for logs; empty if unknown.
	SamplerProfile string `json:"samplerProfileVersion,omitempty"`
	// Unstored: the answer is not stored; only the caller reads it while it is generated.
	Unstored bool `json:"unstored,omitempty"`
	// KeptFor is how long after its end the answer is stored; 0 is as long as the record.
	KeptFor time.Duration `json:"keptFor,omitempty"`
}

// ServedModel returns the model of the catalog that serves the task.
func (i Inference) ServedModel() string { return cmp.Or(i.Served, i.Model) }
