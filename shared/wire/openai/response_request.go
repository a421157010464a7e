package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// ResponseOptions contains the members of a request that its response object repeats. They are
// stored with the task.
type ResponseOptions struct {
	// Background: the response continues if its caller disconnects.
	Background   bool              `json:"background,omitempty"`
	Instructions *string           `json:"instructions,omitempty"`
	Metadata     map[string]string `json:"metadata,omitempty"`
	// MaxTokens is max_output_tokens; nil if it is not set.
	MaxTokens *int `json:"maxTokens,omitempty"`
	// Unstored: only the caller can read the response, while it is generated.
	Unstored bool `json:"unstored,omitempty"`
	// PreviousID is the id of the response that this one continues; empty for none.
	PreviousID string `json:"previousId,omitempty"`
}

// The limits of the metadata of a response.
const (
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
)

// ignoredInResponses are the members of a request that do not affect the usefulness of the
// answer; see ignoredInChats.
var ignoredInResponses = []string{
	"user", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
	"max_tool_calls", "stream_options",
}

// responseMembers contains the members of a request.
type responseMembers struct {
	tools
	tuning

	Model              string                     `json:"model"`
	Temperature        *float64                   `json:"temperature"`
	TopP               *float64                   `json:"top_p"`
	Stream             bool                       `json:"stream"`
	DeadlineMS         *int64                     `json:"deadline_ms"`
	Input              json.RawMessage            `json:"input"`
	Instructions       *string                    `json:"instructions"`
	MaxOutputTokens    *int                       `json:"max_output_tokens"`
	Background         bool                       `json:"background"`
	Metadata           map[string]string          `json:"metadata"`
	Store              *bool                      `json:"store"`
	Text               responseText               `json:"text"`
	Truncation         *string                    `json:"truncation"`
	TopLogprobs        *int                       `json:"top_logprobs"`
	PreviousResponseID *string                    `json:"previous_response_id"`
	Conversation       json.RawMessage            `json:"conversation"`
	Prompt             json.RawMessage            `json:"prompt"`
	ContextManagement  json.RawMessage            `json:"context_management"`
	Include            []string                   `json:"include"`
	Reasoning          map[string]json.RawMessage `json:"reasoning"`
	Seed               *int64                     `json:"seed"`
	Stop               json.RawMessage            `json:"stop"`
	TemplateKwargs     json.RawMessage            `json:"chat_template_kwargs"`
}

// refused returns the fault of the first member that is not supported.
func (in *responseMembers) refused() error {
	switch {
	case in.Store != nil && !*in.Store && in.Background:
		return unsupported("store", "true for a response in the background, because it is read later")
	case in.Truncation != nil && *in.Truncation != "disabled":
		return unsupported("truncation", "disabled")
	case slices.ContainsFunc(in.Include, func(name string) bool { return name != includeLogprobs }):
		return unsupported("include", includeLogprobs+" alone")
	}
	return refuse(
		member{"conversation", in.Conversation}, member{"prompt", in.Prompt},
		member{"context_management", in.ContextManagement}, member{"reasoning.summary", in.Reasoning["summary"]},
		member{"reasoning.generate_summary", in.Reasoning["generate_summary"]},
	)
}

// includeLogprobs requests the probabilities of the tokens of the text.
const includeLogprobs = "message.output_text.logprobs"

// logprobs returns the number of the most likely tokens beside each token; nil for no probabilities.
func (in *responseMembers) logprobs() *int {
	switch top := in.TopLogprobs; {
	case top != nil && *top != 0:
		return top
	case len(in.Include) > 0:
		return new(int)
	}
	return nil
}

// options returns the options that the response object repeats.
func (in *responseMembers) options() ResponseOptions {
	o := ResponseOptions{
		Background: in.Background, Instructions: in.Instructions, Metadata: in.Metadata, MaxTokens: in.MaxOutputTokens, Unstored: in.Store != nil && !*in.Store,
	}
	if in.PreviousResponseID != nil {
		o.PreviousID = *in.PreviousResponseID
	}
	return o
}

// generation sets the options of the generation.
func (in *responseMembers) generation(q *Request, extra map[string]json.RawMessage) (err error) {
	q.Ask.Temperature, q.Ask.TopP, q.Ask.Seed = in.Temperature, in.TopP, in.Seed
	if q.Ask.Stop, err = stopTexts(in.Stop); err != nil {
		return err
	}
	options, err := responseOptions(in.tools, in.Text.Format, in.Reasoning["effort"])
	if err != nil {
		return err
	}
	options.Sampling, options.Extra, options.Logprobs = in.tuning.sampling(), extra, in.logprobs()
	chatOptions{TemplateKwargs: in.TemplateKwargs}.apply(&options)
	q.Ask.Options = optionsOrNil(options)
	q.MaxTokens, err = mostTokens("max_output_tokens", in.MaxOutputTokens)
	return err
}

// ParseResponse decodes the body of POST /v1/responses. The caller adds the messages of the previous
// response with Continue. Faults: InvalidRequest and InvalidParams with the field.
func ParseResponse(body []byte) (q Request, o ResponseOptions, err error) {
	members, err := membersIn(body)
	if err != nil {
		return q, o, err
	}
	extra := takeExtras(members)
	var in responseMembers
	if err := parseMembers(members, &in, ignoredInResponses...); err != nil {
		return q, o, err
	}
	within, err := deadline(in.DeadlineMS)
	q, o = Request{Model: in.Model, Workload: port.WorkloadCompletion, Stream: in.Stream, Within: within}, in.options()
	if err != nil {
		return q, o, err
	}
	if err := in.refused(); err != nil {
		return q, o, err
	}
	if err := in.generation(&q, extra); err != nil {
		return q, o, err
	}
	if err := checkMetadata(in.Metadata); err != nil {
		return q, o, err
	}
	if q.Ask.Messages, err = inputOf(in.Input); err != nil {
		return q, o, err
	}
	if in.Instructions != nil && *in.Instructions != "" {
		q.Ask.Messages = append([]port.Message{{Role: "system", Content: *in.Instructions}}, q.Ask.Messages...)
	}
	if q.Ask.Front, err = json.Marshal(o); err != nil {
		return q, o, fmt.Errorf("cannot encode the options of a response: %w", err)
	}
	return q, o, nil
}

// responseText is the member text of a request. Verbosity is ignored.
type responseText struct {
	Format    *responseFormat `json:"format"`
	Verbosity json.RawMessage `json:"verbosity"`
}

func checkMetadata(of map[string]string) error {
	if len(of) > maxMetadata {
		return fault.Invalid("metadata", "%d pairs, want at most %d", len(of), maxMetadata)
	}
	for key, value := range of {
		if utf8.RuneCountInString(key) > maxMetadataKey || utf8.RuneCountInString(value) > maxMetadataValue {
			return fault.Invalid("metadata", "the pair %.80q is too long, want keys of at most %d characters and values of at most %d", key, maxMetadataKey, maxMetadataValue)
		}
	}
	return nil
}
