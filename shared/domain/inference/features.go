package inference

import (
	"maps"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// chatFeatures are the features of the engines with OpenAI's paths.
var chatFeatures = []port.EngineFeature{
	port.FeatureMessages, port.FeatureTools, port.FeatureToolChoice, port.FeatureParallelToolCalls, port.FeatureObject, port.FeatureSchema,
	port.FeatureFrequencyPenalty, port.FeaturePresencePenalty, port.FeatureRepetitionPenalty, port.FeatureMinP, port.FeatureTopK, port.FeatureLogitBias,
	port.FeatureReasoningEffort, port.FeatureTemplateKwargs, port.FeatureLogprobs, port.FeatureImages,
}

// engineFeatures lists the features of each engine. Tests of the adapters check it.
var engineFeatures = map[platform.EngineKind][]port.EngineFeature{
	platform.EngineLlamaCpp: append([]port.EngineFeature{port.FeatureTokens}, chatFeatures...),
	platform.EngineVLLM:     append([]port.EngineFeature{port.FeatureTokens, port.FeatureDimensions}, chatFeatures...),
	platform.EngineTGI:      {port.FeatureSchema, port.FeatureFrequencyPenalty, port.FeatureRepetitionPenalty, port.FeatureTopK},
	platform.EngineTriton:   {},
	platform.EngineOpenAI: {
		port.FeatureMessages, port.FeatureTools, port.FeatureToolChoice, port.FeatureParallelToolCalls, port.FeatureObject, port.FeatureSchema,
		port.FeatureFrequencyPenalty, port.FeaturePresencePenalty, port.FeatureLogitBias, port.FeatureReasoningEffort, port.FeatureLogprobs,
		port.FeatureDimensions, port.FeatureTokens, port.FeatureImages,
	},
	platform.EngineMock: append([]port.EngineFeature{port.FeatureTokens, port.FeatureDimensions}, chatFeatures...),
}

// engineExtras lists the members of the engines' own requests that a request may have. None of them
// names a file, an address or another request.
var engineExtras = map[platform.EngineKind][]string{
	platform.EngineLlamaCpp: {
		"cache_prompt", "dry_allowed_length", "dry_base", "dry_multiplier", "dry_penalty_last_n", "dry_sequence_breakers", "dynatemp_exponent", "dynatemp_range",
		"grammar", "ignore_eos", "mirostat", "mirostat_eta", "mirostat_tau", "repeat_last_n", "samplers", "top_n_sigma", "typical_p", "xtc_probability",
		"xtc_threshold",
	},
	platform.EngineVLLM: {
		"add_generation_prompt", "add_special_tokens", "allowed_token_ids", "bad_words", "continue_final_message", "ignore_eos", "include_stop_str_in_output",
		"length_penalty", "min_tokens", "skip_special_tokens", "spaces_between_special_tokens", "stop_token_ids", "structured_outputs",
	},
	platform.EngineTGI: {"truncate", "typical_p", "watermark"},
}

// EngineFeatures returns the features of an engine, sorted.
func EngineFeatures(kind platform.EngineKind) []port.EngineFeature {
	return slices.Sorted(slices.Values(engineFeatures[kind]))
}

// EngineExtras returns the members of an engine's own request that a request may have, sorted.
// EngineMock has those of all engines.
func EngineExtras(kind platform.EngineKind) []string {
	if kind != platform.EngineMock {
		return slices.Clone(engineExtras[kind])
	}
	return Extras()
}

// Extras returns the members that at least one engine has, sorted. Callers do not change it.
func Extras() []string { return allExtras }

var allExtras = slices.Compact(slices.Sorted(func(yield func(string) bool) {
	for _, names := range engineExtras {
		for _, name := range names {
			if !yield(name) {
				return
			}
		}
	}
}))

// Features returns the features that a request uses.
func Features(q Request) (used []port.EngineFeature) {
	add := func(f port.EngineFeature, uses bool) {
		if uses {
			used = append(used, f)
		}
	}
	add(port.FeatureMessages, len(q.Messages) > 0)
	add(port.FeatureImages, q.Images() > 0)
	add(port.FeatureTokens, len(q.Tokens) > 0)
	add(port.FeatureDimensions, q.VectorLength != 0)
	o := q.Options
	if o == nil {
		return used
	}
	s := o.Sampling
	add(port.FeatureTools, len(o.Tools) > 0)
	add(port.FeatureToolChoice, o.ToolChoice.Mode != "")
	add(port.FeatureParallelToolCalls, o.ParallelToolCalls != nil)
	add(port.FeatureObject, o.Format.Type == port.FormatObject)
	add(port.FeatureSchema, o.Format.Type == port.FormatSchema)
	add(port.FeatureFrequencyPenalty, s.FrequencyPenalty != nil)
	add(port.FeaturePresencePenalty, s.PresencePenalty != nil)
	add(port.FeatureRepetitionPenalty, s.RepetitionPenalty != nil)
	add(port.FeatureMinP, s.MinP != nil)
	add(port.FeatureTopK, s.TopK != nil)
	add(port.FeatureLogitBias, len(s.LogitBias) > 0)
	add(port.FeatureReasoningEffort, o.ReasoningEffort != "")
	add(port.FeatureTemplateKwargs, len(o.TemplateKwargs) > 0)
	add(port.FeatureLogprobs, o.Logprobs != nil)
	for _, name := range slices.Sorted(maps.Keys(o.Extra)) {
		used = append(used, port.EngineFeature(name))
	}
	return used
}

// CheckEngine returns an InvalidParams fault, with the field, if a request uses a feature or an
// extra member that an engine does not have.
func (q Request) CheckEngine(kind platform.EngineKind) error {
	has := engineFeatures[kind]
	for _, f := range Features(q) {
		if slices.Contains(has, f) || q.Options != nil && q.Options.Extra[string(f)] != nil && slices.Contains(EngineExtras(kind), string(f)) {
			continue
		}
		return invalidParams(fieldOf(f), "the engine %s has no %s, want a request without it; GET /v1/capabilities lists the features of engines", kind, f)
	}
	return nil
}

// fieldOf returns the field of a request that uses a feature.
func fieldOf(f port.EngineFeature) string {
	if f == port.FeatureObject || f == port.FeatureSchema {
		return fieldFormat
	}
	if f == port.FeatureImages {
		return "messages"
	}
	return string(f)
}
