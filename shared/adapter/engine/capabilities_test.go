package engine_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// TestSlotsAndMemoryOfEngines reads recorded answers about the slots and the context of a
// server. A path without an answer has status 404.
func TestSlotsAndMemoryOfEngines(t *testing.T) {
	t.Parallel()
	const cache = "# TYPE vllm:cache_config_info gauge\nvllm:cache_config_info{%s,engine=\"0\",cache_dtype=\"auto\"} 1.0\n"
	vllm := func(info, labels string) map[string]string {
		paths := map[string]string{"/version": `{"version":"0.32.0"}`, "/v1/models": `{"data":[{"id":"m","max_model_len":1024}]}`}
		if info != "" {
			paths["/server_info"] = info
		}
		if labels != "" {
			paths["/metrics"] = fmt.Sprintf(cache, labels)
		}
		return paths
	}
	triton := func(index, config string) map[string]string {
		return map[string]string{"/v2": `{"version":"2.59.0"}`, "/v2/repository/index": index, "/v2/models/m/config": config}
	}
	const one, several = `[{"name":"m","state":"READY"}]`, `[{"name":"m","state":"READY"},{"name":"n","state":"READY"}]`
	const tgi = `{"max_concurrent_requests":2,"max_total_tokens":2048,"model_id":"standin","version":"3.3.6"%s}`
	for name, row := range map[string]struct {
		kind           platform.EngineKind
		paths          map[string]string
		slots, context int
		memory         int
	}{
		"llama-server": {platform.EngineLlamaCpp, map[string]string{
			"/props": `{"default_generation_settings":{"n_ctx":1024},"total_slots":2,"build_info":"b1"}`, "/v1/models": `{"data":[]}`,
		}, 2, 1024, 0},
		"vLLM":                       {platform.EngineVLLM, vllm("", `block_size="16",num_gpu_blocks="661"`), 0, 1024, 10576},
		"vLLM with tokens":           {platform.EngineVLLM, vllm("", `block_size="16",num_gpu_blocks="661",kv_cache_size_tokens="10000"`), 0, 1024, 10000},
		"vLLM before its profile":    {platform.EngineVLLM, vllm("", `block_size="16",num_gpu_blocks="None"`), 0, 1024, 0},
		"vLLM in development mode":   {platform.EngineVLLM, vllm(`{"vllm_config":{"scheduler_config":{"max_num_seqs":64}}}`, ""), 64, 1024, 0},
		"vLLM with a text about it":  {platform.EngineVLLM, vllm(`{"vllm_config":"model='m'"}`, ""), 0, 1024, 0},
		"TGI":                        {platform.EngineTGI, map[string]string{"/info": fmt.Sprintf(tgi, "")}, 2, 2048, 0},
		"TGI with a batch":           {platform.EngineTGI, map[string]string{"/info": fmt.Sprintf(tgi, `,"max_batch_total_tokens":16000`)}, 2, 2048, 16000},
		"Triton":                     {platform.EngineTriton, triton(one, `{"max_batch_size":8,"instance_group":[{"count":2,"gpus":[0,1]},{"count":1}]}`), 40, 0, 0},
		"Triton that batches itself": {platform.EngineTriton, triton(one, `{"max_batch_size":0,"instance_group":[{"count":1}],"backend":"vllm"}`), 0, 0, 0},
		"Triton without a config":    {platform.EngineTriton, triton(one, ""), 0, 0, 0},
		"Triton with several models": {platform.EngineTriton, triton(several, `{"max_batch_size":8}`), 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, engine.Config{Kind: row.kind}, func(w http.ResponseWriter, r *http.Request) {
				if row.paths[r.URL.Path] == "" {
					w.WriteHeader(http.StatusNotFound)
				}
				fmt.Fprint(w, row.paths[r.URL.Path])
			})
			got, err := e.Capabilities(t.Context())
			if err != nil || got.Slots != row.slots || got.ContextTokens != row.context || got.KVTokens != row.memory {
				t.Errorf("got %+v and %v, want %d slots, a context of %d and memory for %d tokens", got, err, row.slots, row.context, row.memory)
			}
		})
	}
}
