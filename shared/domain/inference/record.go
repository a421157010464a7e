package inference

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// StreamPrefix is the prefix of the streams of tasks.
const StreamPrefix = "tasks/"

// StreamOf returns the name of the stream of a task.
func StreamOf(tenant, taskID string) string { return StreamPrefix + tenant + "/" + taskID }

// Accepted returns when the task of a stream was accepted, from its id. ok is false for other
// streams.
func Accepted(stream string) (at time.Time, ok bool) {
	_, id, _ := strings.Cut(strings.TrimPrefix(stream, StreamPrefix), "/inf_")
	parsed, err := ulid.ParseStrict(id)
	if err != nil {
		return time.Time{}, false
	}
	return parsed.Timestamp(), true
}

// Record is one record of a task's stream. One of its pointers, Tokens, Reasoning, Calls or Begun
// is set.
type Record struct {
	// Attempt is the attempt of the writer; 0 if no dispatcher wrote the record.
	Attempt int `json:"attempt,omitempty"`
	// Begun marks the start of an attempt. Readers do not see it.
	Begun bool `json:"begun,omitempty"`
	// Started is the first event of a stream.
	Started *Started `json:"started,omitempty"`
	// Tokens are pieces of the answer. First is the index of the first one.
	Tokens []string `json:"tokens,omitempty"`
	// Logprobs are the probabilities of each of Tokens; nil if the request has none.
	Logprobs [][]port.TokenLogprob `json:"logprobs,omitempty"`
	// Reasoning are pieces of the reasoning before the answer. They have their own indexes.
	Reasoning []string `json:"reasoning,omitempty"`
	First     int      `json:"first,omitempty"`
	// Calls are parts of calls of tools.
	Calls []port.ToolDelta `json:"calls,omitempty"`
	// ChoiceEnd ends an answer that is not the last one.
	ChoiceEnd *ChoiceEnd `json:"choiceEnd,omitempty"`
	// Metrics describe the task while it runs.
	Metrics *Metrics `json:"metrics,omitempty"`
	// Result is a result of an embedding or rerank.
	Result *Result `json:"result,omitempty"`
	// End and Error are the last record of a stream.
	End   *End     `json:"end,omitempty"`
	Error *Failure `json:"error,omitempty"`
}

// Started is the first event of a stream, with the values of the admission.
type Started struct {
	QueuePosition    int   `json:"queue_position"`
	PredictedStartMS int64 `json:"predicted_start_ms"`
}

// Token is a piece of the answer, one or more tokens of the engine, with its index from 0.
type Token struct {
	T string `json:"t"`
	I int    `json:"i"`
	// Logprobs are the probabilities of the tokens of the engine, if the request has them.
	Logprobs []port.TokenLogprob `json:"logprobs,omitempty"`
}

// Reasoning is a piece of the reasoning before the answer, with its index from 0.
type Reasoning struct {
	T string `json:"t"`
	I int    `json:"i"`
}

// Result is the answer for one input of an embedding, or one document of a rerank.
type Result struct {
	Index     int       `json:"index"`
	Embedding []float64 `json:"embedding,omitempty"`
	Score     *float64  `json:"score,omitempty"`
}

// Metrics describe a running task. The budgets are what remains of the task's own reservation
// and deadline.
type Metrics struct {
	QueueDepth            int     `json:"queue_depth"`
	OnTimeProbability     float64 `json:"on_time_probability"`
	KVWarmth              bool    `json:"kv_warmth"`
	TokensBudgetRemaining int64   `json:"tokens_budget_remaining"`
	TimeBudgetRemainingMS int64   `json:"time_budget_remaining_ms"`
	CostBudgetRemaining   float64 `json:"cost_budget_remaining"`
}

// End is the last event of an answer that is complete.
type End struct {
	TokensOut int   `json:"tokens_out"`
	DecodeMS  int64 `json:"decode_ms"`
	// The following fields are additions to the contract.
	TokensIn int    `json:"tokens_in"`
	Finish   string `json:"finish_reason,omitempty"`
	// CachedTokens is the number of tokens in TokensIn that the engine has read from its cache,
	// ReasoningTokens that of reasoning tokens in TokensOut, if the engine counts them.
	CachedTokens    int `json:"cached_tokens,omitempty"`
	ReasoningTokens int `json:"reasoning_tokens,omitempty"`
}

// Failure is the last event of an answer that is not complete.
type Failure struct {
	Code    fault.Code `json:"code"`
	Message string     `json:"message"`
	Engine  string     `json:"engine,omitempty"`
	// Field is the field of the request that the engine refused, if known.
	Field string `json:"field,omitempty"`
	// TokensOut and DecodeMS are the usage until the failure; they are additions to the
	// contract.
	TokensOut int   `json:"tokens_out"`
	DecodeMS  int64 `json:"decode_ms"`
	// By and Reason are those of a cancel request. Readers do not see By.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Ends reports whether the record is the last one.
func (r Record) Ends() bool { return r.End != nil || r.Error != nil }

// State is stored as the state of the stream's head.
type State struct {
	// Attempt is the highest attempt that has written.
	Attempt int `json:"attempt"`
	// Pieces and Results count the pieces and results in the stream.
	Pieces  int `json:"pieces,omitempty"`
	Results int `json:"results,omitempty"`
	// Calls counts the parts of calls of tools. A token can make several of them.
	Calls int `json:"calls,omitempty"`
	// Choices counts the answers that have ended, without the last one. One may have no piece.
	Choices int  `json:"choices,omitempty"`
	Started bool `json:"started,omitempty"`
	Ended   bool `json:"ended,omitempty"`
}

// After returns the state after the record is appended.
func (s State) After(r Record) State {
	s.Attempt = max(s.Attempt, r.Attempt)
	s.Pieces += len(r.Tokens) + len(r.Reasoning)
	s.Calls += len(r.Calls)
	if r.Result != nil {
		s.Results++
	}
	if r.ChoiceEnd != nil {
		s.Choices++
	}
	s.Started = s.Started || r.Started != nil
	s.Ended = s.Ended || r.Ends()
	return s
}

// HasContent reports whether readers may have seen a part of the answer. No other attempt may
// follow then.
func (s State) HasContent() bool { return s.Pieces+s.Results+s.Calls+s.Choices > 0 }

// Tokens estimates the number of generated tokens in the stream, at most most: one for each piece
// and each part of a call.
func (s State) Tokens(most int) int { return min(s.Pieces+s.Calls, most) }

// Event is an event of a stream for readers.
type Event struct {
	ID   EventID
	Name string
	Data any
}

// EventID is the place of an event: the position of its record, and its number in the record
// from 1. The zero value is before the first event.
type EventID struct {
	Position int64
	N        int
}

func (id EventID) String() string { return fmt.Sprintf("%d.%d", id.Position, id.N) }

// ParseEventID parses the result of String. The fault is InvalidRequest with the field.
func ParseEventID(field, text string) (EventID, error) {
	position, n, ok := strings.Cut(text, ".")
	p, err := strconv.ParseInt(position, 10, 64)
	k, err2 := strconv.Atoi(n)
	if !ok || err != nil || err2 != nil || p < 0 || k < 0 || strings.HasPrefix(text, "+") || strings.HasPrefix(n, "+") {
		return EventID{}, fault.Invalid(field, "malformed id of an event, want one that the stream sent, such as 3.1")
	}
	return EventID{p, k}, nil
}

// Names of events.
const (
	NameStarted   = "started"
	NameReasoning = "reasoning"
	NameToken     = "token"
	NameToolCall  = "tool_call"
	NameChoiceEnd = "choice_end"
	NameResult    = "result"
	NameMetrics   = "metrics"
	NameEnd       = "end"
	NameError     = "error"
)

// Events returns the events of the record at position that follow the event after.
func (r Record) Events(position int64, after EventID) []Event {
	var found []Event
	n := 0
	add := func(name string, data any) {
		n++
		if position > after.Position || position == after.Position && n > after.N {
			found = append(found, Event{EventID{position, n}, name, data})
		}
	}
	switch {
	case r.Started != nil:
		add(NameStarted, r.Started)
	case r.Metrics != nil:
		add(NameMetrics, r.Metrics)
	case r.Result != nil:
		add(NameResult, r.Result)
	case r.ChoiceEnd != nil:
		add(NameChoiceEnd, r.ChoiceEnd)
	case r.End != nil:
		add(NameEnd, r.End)
	case r.Error != nil:
		shown := *r.Error
		shown.By = ""
		add(NameError, shown)
	}
	for i, t := range r.Reasoning {
		add(NameReasoning, Reasoning{T: t, I: r.First + i})
	}
	for i, t := range r.Tokens {
		token := Token{T: t, I: r.First + i}
		if i < len(r.Logprobs) {
			token.Logprobs = r.Logprobs[i]
		}
		add(NameToken, token)
	}
	for _, c := range r.Calls {
		add(NameToolCall, c)
	}
	return found
}

// Decode decodes the data of a record.
func Decode(data []byte) (r Record, err error) {
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("malformed record of a stream: %w", err)
	}
	return r, nil
}

// DecodeState decodes the state of a head; empty data is the zero value.
func DecodeState(data []byte) (s State, err error) {
	if len(data) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("malformed state of a stream: %w", err)
	}
	return s, nil
}
