package engine

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// triton is Triton with a model that streams (a decoupled model with text_input and
// text_output). The end of its stream is not marked, so the model must send the output
// finish_reason with its last text. Errors have status 400 to 500 and {"error": "..."}. If the
// first event of the model is an error, it has status 400.
type triton struct{}

// tritonName matches the names of models that a path can contain.
var tritonName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

func (triton) generation(g port.Generation) (string, any, error) {
	switch {
	case len(g.Messages) > 0:
		return "", nil, fault.New(fault.InvalidParams, "messages: the engine triton continues a prompt, it takes no messages")
	case !tritonName.MatchString(g.Model):
		return "", nil, fault.New(fault.InvalidParams, "model: the engine triton needs the name of a model: letters, digits, and ._- after the first")
	}
	body := map[string]any{"text_input": g.Prompt, "max_tokens": g.MaxTokens, "stream": true}
	if g.Seed != nil {
		body["seed"] = *g.Seed
	}
	if g.Temperature != nil {
		body["temperature"] = *g.Temperature
	}
	if g.TopP != nil {
		body["top_p"] = *g.TopP
	}
	if len(g.Stop) > 0 {
		body["stop_words"] = g.Stop
	}
	return "/v2/models/" + g.Model + "/generate_stream", body, nil
}

func (triton) read(data []byte, a *answer) error {
	var e struct {
		Text   string `json:"text_output"`
		Finish string `json:"finish_reason"`
		Error  string `json:"error"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return fault.Wrap(err, fault.WorkerReset, "the engine sent an unexpected event after %d pieces", a.pieces)
	}
	if e.Error != "" {
		return a.failed(short(e.Error), fault.PoolUnavailable)
	}
	a.text = e.Text
	if e.Finish == "" {
		return nil
	}
	a.done = true
	return a.end(e.Finish)
}

func (triton) health() string { return "/v2/health/ready" }

func (triton) capabilities(ctx context.Context, e *Engine) (port.EngineCapabilities, error) {
	var server struct {
		Version string `json:"version"`
	}
	if err := e.get(ctx, "/v2", &server); err != nil {
		return port.EngineCapabilities{}, err
	}
	var index []struct {
		Name  string `json:"name"`
		State string `json:"state"`
	}
	if err := e.post(ctx, "/v2/repository/index", struct{}{}, &index); err != nil {
		return port.EngineCapabilities{}, err
	}
	c := port.EngineCapabilities{Version: server.Version, Workloads: []port.Workload{port.WorkloadCompletion}}
	for _, m := range index {
		if m.State == "READY" {
			c.Models = append(c.Models, m.Name)
		}
	}
	if len(c.Models) == 1 { // of several models, those that are parts of another one do not count
		c.Slots = tritonSlots(ctx, e, c.Models[0])
	}
	return c, ctx.Err()
}

// tritonSlots returns the number of requests that the instances of a model take into their batches;
// 0 for a model that batches itself, as those of the vLLM backend, and if it is unknown.
func tritonSlots(ctx context.Context, e *Engine, model string) int {
	var config struct {
		Batch     int `json:"max_batch_size"`
		Instances []struct {
			Count int   `json:"count"` // on each of GPUs
			GPUs  []int `json:"gpus"`
		} `json:"instance_group"`
	}
	if e.get(ctx, "/v2/models/"+url.PathEscape(model)+"/config", &config) != nil || config.Batch <= 0 {
		return 0
	}
	instances := 0
	for _, group := range config.Instances {
		instances += max(group.Count, 0) * max(len(group.GPUs), 1)
	}
	return min(config.Batch, platform.MaxReplicaSlots) * min(max(instances, 1), platform.MaxReplicaSlots)
}

func (triton) series() map[string]loadValue {
	return map[string]loadValue{
		"nv_inference_pending_request_count": waiting,
		"nv_gpu_utilization":                 gpu,
		"nv_gpu_memory_used_bytes":           vram,
	}
}

func (triton) refusal(r refusal) *fault.Fault {
	switch {
	case r.status == http.StatusNotFound && strings.Contains(r.message, "no available versions"):
		return fault.New(fault.PoolUnavailable, "the engine has unloaded the model: %s", r.message)
	case r.status == http.StatusNotFound && strings.Contains(r.message, "unknown model"):
		return fault.New(fault.ModelUnknown, "the engine does not have the model: %s", r.message)
	case r.status == http.StatusBadRequest && strings.Contains(r.message, "not ready"), r.status == http.StatusServiceUnavailable:
		return fault.New(fault.PoolUnavailable, "the engine is not ready: %s", r.message)
	}
	return nil
}

func (triton) vectors() bool { return false }
