package openai

import (
	"encoding/json"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// responsePrefix is the prefix of the ids of responses. It replaces the prefix of the task's id.
const responsePrefix = "resp_"

// TaskOf returns the id of the task of a response. ok is false if responseID is malformed.
func TaskOf(responseID string) (taskID string, ok bool) {
	rest, ok := strings.CutPrefix(responseID, responsePrefix)
	return taskPrefix + rest, ok && rest != ""
}

// Response is the response object of the Responses API.
type Response struct {
	ID                string             `json:"id"`
	Object            string             `json:"object"`
	CreatedAt         int64              `json:"created_at"`
	Status            string             `json:"status"`
	Background        bool               `json:"background"`
	Error             *ResponseError     `json:"error"`
	IncompleteDetails *IncompleteDetails `json:"incomplete_details"`
	Instructions      *string            `json:"instructions"`
	MaxOutputTokens   *int               `json:"max_output_tokens"`
	Metadata          map[string]string  `json:"metadata"`
	Model             string             `json:"model"`
	Output            []OutputItem       `json:"output"`
	ParallelToolCalls bool               `json:"parallel_tool_calls"`
	PreviousID        *string            `json:"previous_response_id"`
	Store             bool               `json:"store"`
	Temperature       *float64           `json:"temperature"`
	Text              ResponseForm       `json:"text"`
	ToolChoice        any                `json:"tool_choice"`
	Tools             []ResponseTool     `json:"tools"`
	TopP              *float64           `json:"top_p"`
	Truncation        string             `json:"truncation"`
	Usage             *ResponseUsage     `json:"usage"`
}

// ResponseError is the error of a failed response.
type ResponseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// IncompleteDetails has the reason why a response ended early.
type IncompleteDetails struct {
	Reason string `json:"reason"`
}

// ResponseForm is the member text of a response.
type ResponseForm struct {
	Format TextFormat `json:"format"`
}

// TextFormat is the format of a text. Other members than Type belong to a JSON schema.
type TextFormat struct {
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// ResponseTool is a tool of a response.
type ResponseTool struct {
	Type string `json:"type"`
	port.Tool
}

// withOptions sets the members about tools and the format.
func (r *Response) withOptions(o *port.GenerationOptions) {
	r.ToolChoice, r.Tools, r.Text = port.ToolsNone, []ResponseTool{}, ResponseForm{TextFormat{Type: port.FormatText}}
	if o == nil {
		return
	}
	if f := o.Format; f.Type != "" {
		r.Text.Format = TextFormat(f)
	}
	for _, t := range o.Tools {
		r.Tools = append(r.Tools, ResponseTool{typeFunction, t})
	}
	if len(r.Tools) == 0 {
		return
	}
	r.ParallelToolCalls = o.ParallelToolCalls == nil || *o.ParallelToolCalls
	switch choice := o.ToolChoice; choice.Mode {
	case "":
		r.ToolChoice = port.ToolsAuto
	case port.ToolsFunction:
		r.ToolChoice = map[string]string{"type": typeFunction, "name": choice.Function}
	default:
		r.ToolChoice = choice.Mode
	}
}

// ResponseUsage is the number of tokens of the input and the output of a response.
type ResponseUsage struct {
	InputTokens         int           `json:"input_tokens"`
	InputTokensDetails  InputDetails  `json:"input_tokens_details"`
	OutputTokens        int           `json:"output_tokens"`
	OutputTokensDetails OutputDetails `json:"output_tokens_details"`
	TotalTokens         int           `json:"total_tokens"`
}

// InputDetails has the number of tokens that the engine has read from its cache; 0 if it does not count
// them.
type InputDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// OutputDetails has the number of tokens of the reasoning; 0 if the engine does not count them.
type OutputDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// The statuses of a response.
const (
	statusQueued     = "queued"
	statusInProgress = "in_progress"
	statusCompleted  = "completed"
	statusIncomplete = "incomplete"
	statusFailed     = "failed"
	statusCancelled  = "cancelled"
)

// OptionsOf returns the options of a response and the request of its task. ok is false if
// POST /v1/responses did not create the task.
func OptionsOf(r run.Run) (o ResponseOptions, q inference.Request, ok bool) {
	if r.Work.Inference == nil || json.Unmarshal(r.Work.Inference.Request, &q) != nil || len(q.Front) == 0 {
		return o, q, false
	}
	return o, q, json.Unmarshal(q.Front, &o) == nil
}

// newResponse returns the response of a task, with empty output and the given status.
func newResponse(r run.Run, status string) Response {
	o, q, _ := OptionsOf(r)
	metadata := o.Metadata
	if metadata == nil {
		metadata = map[string]string{}
	}
	is := Response{
		ID: id(responsePrefix, r.TaskID), Object: "response", CreatedAt: r.CreatedAt.Unix(), Status: status, Background: o.Background,
		Instructions: o.Instructions, MaxOutputTokens: o.MaxTokens, Metadata: metadata, Model: r.Work.Inference.Model, Output: []OutputItem{},
		Store: !o.Unstored, Temperature: q.Temperature, TopP: q.TopP,
		Truncation: "disabled",
	}
	if o.PreviousID != "" {
		is.PreviousID = &o.PreviousID
	}
	is.withOptions(q.Options)
	return is
}

// Waiting returns the response of a task that has not ended.
func Waiting(r run.Run) Response {
	if r.State == run.Running || r.State == run.Terminating {
		return newResponse(r, statusInProgress)
	}
	return newResponse(r, statusQueued)
}

// Ended returns the response of a task that has ended, with its answer.
func Ended(r run.Run, a *Answer) Response {
	is := newResponse(r, statusCompleted)
	item := statusCompleted
	switch {
	case a.Failure != nil && a.Failure.Code == fault.Cancelled:
		is.Status, item = statusCancelled, statusIncomplete
	case a.Failure != nil:
		is.Status, item = statusFailed, statusIncomplete
		is.Error = &ResponseError{Code: responseCode(*a.Failure), Message: a.Failure.Message}
	case a.End != nil && incomplete[a.End.Finish] != "":
		is.Status, item = statusIncomplete, statusIncomplete
		is.IncompleteDetails = &IncompleteDetails{Reason: incomplete[a.End.Finish]}
	}
	if e := a.End; e != nil {
		is.Usage = &ResponseUsage{
			InputTokens: e.TokensIn, OutputTokens: e.TokensOut, TotalTokens: e.TokensIn + e.TokensOut,
			InputTokensDetails: InputDetails{CachedTokens: e.CachedTokens}, OutputTokensDetails: OutputDetails{ReasoningTokens: e.ReasoningTokens},
		}
	}
	is.Output = a.items(r.TaskID, item)
	return is
}

// responseCode returns the code of a failed response. It is that of the error response for a
// prompt that is too long.
func responseCode(f inference.Failure) string {
	switch {
	case f.Code == fault.InvalidParams && f.Field == port.FieldPrompt:
		return codeOf(f.Code, f.Field)
	case f.Code == fault.InvalidParams:
		return "invalid_prompt"
	}
	return "server_error"
}

// incomplete maps the finish reasons of answers that an engine ended early to the reasons of
// IncompleteDetails.
var incomplete = map[string]string{"length": "max_output_tokens", "content_filter": "content_filter"}

// Deleted is the result of the deletion of a response.
type Deleted struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// NewDeleted returns the result of the deletion of the response of a task.
func NewDeleted(taskID string) Deleted {
	return Deleted{ID: id(responsePrefix, taskID), Object: "response", Deleted: true}
}
