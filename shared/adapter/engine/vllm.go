package engine

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// vllm is vLLM's server. It refuses connections while it loads. After its engine has died it
// returns 500, and 503 at /health. A 503 of another path means that its queue is full.
type vllm struct{ openai }

// generation requests one more of the most likely tokens: the list of a conversation begins with the
// generated token, which then may be none of them.
func (vllm) generation(g port.Generation) (string, any, error) {
	path, body := completionOf(g)
	if g.Options == nil {
		return path, body, nil
	}
	if top := body.TopLogprobs; top != nil {
		*top = min(*top+1, vllmLogprobs)
	}
	body.RepetitionPenalty, body.ReasoningEffort = g.Options.Sampling.RepetitionPenalty, g.Options.ReasoningEffort
	sent, err := withExtra(body, g.Options.Extra)
	return path, sent, err
}

// vllmLogprobs is the largest number of most likely tokens that a server returns by default.
const vllmLogprobs = 20

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
	c.Slots, c.KVTokens = vllmSlots(ctx, e), vllmMemory(ctx, e)
	return c, ctx.Err()
}

// vllmSlots returns max_num_seqs. Only a server in development mode reports it; otherwise it
// returns 0.
func vllmSlots(ctx context.Context, e *Engine) int {
	at := e.base.JoinPath("/server_info")
	at.RawQuery = "config_format=json"
	resp, err := e.report(ctx, at)
	if err != nil || resp == nil {
		return 0
	}
	var info struct {
		Config struct {
			Scheduler struct {
				Slots int `json:"max_num_seqs"`
			} `json:"scheduler_config"`
		} `json:"vllm_config"`
	}
	if decode(ctx, resp, &info) != nil {
		return 0 // earlier versions send the configuration as a text
	}
	return info.Config.Scheduler.Slots
}

// vllmMemory returns the tokens of the KV cache, which are labels of a metric; 0 if it is
// unknown.
func vllmMemory(ctx context.Context, e *Engine) (tokens int) {
	families, err := e.families(ctx)
	if err != nil {
		return 0
	}
	for _, m := range families["vllm:cache_config_info"].GetMetric() {
		labels := map[string]int{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()], _ = strconv.Atoi(l.GetValue()) // None is 0, which means unknown
		}
		tokens += cmp.Or(max(labels["kv_cache_size_tokens"], 0), max(labels["num_gpu_blocks"]*labels["block_size"], 0))
	}
	return tokens
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
