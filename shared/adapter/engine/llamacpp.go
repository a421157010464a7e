package engine

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// llamacpp is llama-server. While it loads, every path returns 503 "Loading model". It ignores
// the name of the model. It keeps a request without a free slot without responding.
type llamacpp struct{ openai }

// generation renames the penalty. The effort is an argument of the template. A chosen function is
// the only one, and is required: the server ignores a choice with a name.
func (llamacpp) generation(g port.Generation) (string, any, error) {
	path, body := completionOf(g)
	if g.Options == nil {
		return path, body, nil
	}
	body.RepeatPenalty = g.Options.Sampling.RepetitionPenalty
	if choice := g.Options.ToolChoice; choice.Mode == port.ToolsFunction {
		body.Tools = slices.DeleteFunc(body.Tools, func(t openaiTool) bool { return t.Function.Name != choice.Function })
		body.ToolChoice = port.ToolsRequired
	}
	if effort := g.Options.ReasoningEffort; effort != "" {
		kwargs := map[string]any{}
		if len(body.TemplateKwargs) > 0 {
			if err := json.Unmarshal(body.TemplateKwargs, &kwargs); err != nil {
				return "", nil, fault.Wrap(err, fault.Internal, "malformed arguments of the template")
			}
		}
		if _, given := kwargs["reasoning_effort"]; !given {
			kwargs["reasoning_effort"] = effort
		}
		if _, given := kwargs["enable_thinking"]; !given && effort == "none" {
			kwargs["enable_thinking"] = false
		}
		body.TemplateKwargs, _ = json.Marshal(kwargs) //nolint:errchkjson // it comes from JSON
	}
	sent, err := withExtra(body, g.Options.Extra)
	return path, sent, err
}

func (llamacpp) health() string { return "/health" }

func (llamacpp) capabilities(ctx context.Context, e *Engine) (port.EngineCapabilities, error) {
	var props struct {
		Settings struct {
			ContextTokens int `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Modalities struct {
			Vision *bool `json:"vision"`
		} `json:"modalities"`
		Slots int    `json:"total_slots"`
		Build string `json:"build_info"`
	}
	if err := e.get(ctx, "/props", &props); err != nil {
		return port.EngineCapabilities{}, err
	}
	var models struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
		Models []struct {
			Capabilities []string `json:"capabilities"`
		} `json:"models"`
	}
	if err := e.get(ctx, "/v1/models", &models); err != nil {
		return port.EngineCapabilities{}, err
	}
	c := port.EngineCapabilities{Version: props.Build, Slots: props.Slots, ContextTokens: props.Settings.ContextTokens, Images: props.Modalities.Vision}
	for _, m := range models.Data {
		c.Models = append(c.Models, m.ID)
	}
	for _, m := range models.Models {
		for _, word := range m.Capabilities {
			if w, known := workloads[word]; known {
				c.Workloads = append(c.Workloads, w)
			}
		}
	}
	return c, nil
}

// workloads maps the workloads in llama-server's list of models.
var workloads = map[string]port.Workload{
	"completion": port.WorkloadCompletion, "embedding": port.WorkloadEmbedding, "rerank": port.WorkloadRerank,
}

func (llamacpp) series() map[string]loadValue {
	return map[string]loadValue{
		"llamacpp:requests_processing":  running,
		"llamacpp:requests_deferred":    waiting,
		"llamacpp:kv_cache_usage_ratio": kvCache,
	}
}

// slots counts the slots with a request. A server reports them unless it was started with
// --no-slots.
func (llamacpp) slots(ctx context.Context, e *Engine) (port.EngineLoad, error) {
	resp, err := e.report(ctx, e.base.JoinPath("/slots"))
	if err != nil || resp == nil {
		return port.EngineLoad{}, err
	}
	var slots []struct {
		Processing bool `json:"is_processing"`
	}
	if err := decode(ctx, resp, &slots); err != nil {
		return port.EngineLoad{}, err
	}
	n := 0
	for _, slot := range slots {
		if slot.Processing {
			n++
		}
	}
	return port.EngineLoad{Running: &n}, nil
}

func (llamacpp) refusal(r refusal) *fault.Fault {
	if r.status == http.StatusServiceUnavailable {
		return fault.New(fault.PoolUnavailable, "the engine is not ready: %s", r.message)
	}
	return nil
}
