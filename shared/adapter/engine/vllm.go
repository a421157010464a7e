package engine

import (
	"context"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// vllm is vLLM's server. It refuses connections while it loads. After its engine has died it
// returns 500, and 503 at /health. A 503 of another path means that its queue is full.
type vllm struct{ openai }

func (vllm) generation(g port.Generation) (string, any, error) {
	path, body := completionOf(g)
	if g.Options == nil {
		return path, body, nil
	}
	body.RepetitionPenalty, body.ReasoningEffort = g.Options.Sampling.RepetitionPenalty, g.Options.ReasoningEffort
	sent, err := withExtra(body, g.Options.Extra)
	return path, sent, err
}

func (vllm) health() string { return "/health" }

func (vllm) capabilities(ctx context.Context, e *Engine) (port.EngineCapabilities, error) {
	var version struct {
		Version string `json:"version"`
	}
	if err := e.get(ctx, "/version", &version); err != nil {
		return port.EngineCapabilities{}, err
	}
	var models struct {
		Data []struct {
			ID            string `json:"id"`
			ContextTokens int    `json:"max_model_len"`
		} `json:"data"`
	}
	if err := e.get(ctx, "/v1/models", &models); err != nil {
		return port.EngineCapabilities{}, err
	}
	c := port.EngineCapabilities{Version: version.Version, Workloads: []port.Workload{port.WorkloadCompletion}}
	for _, m := range models.Data {
		c.Models, c.ContextTokens = append(c.Models, m.ID), max(c.ContextTokens, m.ContextTokens)
	}
	return c, nil
}

func (vllm) series() map[string]loadValue {
	return map[string]loadValue{
		"vllm:num_requests_running": running,
		"vllm:num_requests_waiting": waiting,
		"vllm:kv_cache_usage_perc":  kvCache, // a ratio, in spite of its name
		"vllm:gpu_cache_usage_perc": kvCache, // the name of earlier versions
	}
}

func (vllm) refusal(r refusal) *fault.Fault {
	switch {
	case r.status == http.StatusServiceUnavailable:
		return isBusy(r.message)
	case r.status == http.StatusNotFound && r.kind == "NotFoundError":
		return fault.New(fault.ModelUnknown, "the engine does not have the model: %s", r.message)
	case r.status == http.StatusNotFound && (strings.HasSuffix(r.path, embeddingsPath) || strings.HasSuffix(r.path, rerankPath)):
		return refusedParams("it does not have " + r.path) // a server has only the paths that its model can serve
	}
	return nil
}
