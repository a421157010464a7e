package control_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/functions/control"
	"github.com/sortie-dev/sortie/functions/jobs"
	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/functions/runs"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const llamas = "/v1/pools/llamas"

// engineStage has the model llama of vllm and the mock, and the model gemma. It permits
// addresses of the host.
func engineStage(t *testing.T) *apitest.Stage {
	t.Helper()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route {
		return slices.Concat(control.Routes(s.Pools), registry.CatalogRoutes(s.Models), runs.Routes(s.Definitions, s.Explanations), jobs.Routes(s.Jobs, s.Queries, s.Explanations))
	}, func(s *apitest.Settings) {
		var err error
		if s.Service.Engines, err = s.Service.Engines.WithPlainLoopback().WithRules("127.0.0.1"); err != nil {
			t.Fatal(err)
		}
	})
	for _, body := range []string{
		`{"id": "llama", "engines": ["vllm", "mock"], "context_tokens": 4096, "workloads": ["completion", "embedding"]}`, `{"id": "gemma", "engines": ["vllm"], "context_tokens": 100000}`,
	} {
		apitest.Decoded[contract.Model](t, stage, "POST", "/v1/catalog/models", body, 201)
	}
	return stage
}

// llamaPool is a pool of two replicas with four slots each.
const llamaPool = `{"engine": {"kind": "vllm", "model": "llama", "slots": 4, "replicas": [{"url": "http://127.0.0.1:8001"}, {"id": "b", "url": "https://llama.example"}]}}`

// TestDeadlineOfAPoolIsStored puts a pool with a deadline, and then without one.
func TestDeadlineOfAPoolIsStored(t *testing.T) {
	t.Parallel()
	stage := engineStage(t)
	p, _ := apitest.Decoded[contract.Pool](t, stage, "PUT", llamas, strings.Replace(llamaPool, `"slots"`, `"deadlineMs": 20000, "slots"`, 1), 201)
	if p.Engine.DeadlineMS == nil || *p.Engine.DeadlineMS != 20_000 {
		t.Errorf("got the engine %+v, want a deadline of 20000 ms", p.Engine)
	}
	if p, _ = apitest.Decoded[contract.Pool](t, stage, "PUT", llamas, llamaPool, 200); p.Engine.DeadlineMS != nil {
		t.Errorf("got a deadline of %d ms, want none", *p.Engine.DeadlineMS)
	}
}

func TestPoolOfAnEngineIsStored(t *testing.T) {
	t.Parallel()
	stage := engineStage(t)
	for _, status := range []int{201, 200} {
		p, _ := apitest.Decoded[contract.Pool](t, stage, "PUT", llamas, llamaPool, status)
		want := []contract.PoolReplica{{ID: "r1", URL: "http://127.0.0.1:8001"}, {ID: "b", URL: "https://llama.example"}}
		if p.Version != 1 || p.Limit != 8 || p.Engine == nil || p.Engine.Kind != "vllm" || p.Engine.Model != "llama" || *p.Engine.Slots != 4 || !slices.Equal(p.Engine.Replicas, want) {
			t.Fatalf("got %+v with the engine %+v", p, p.Engine)
		}
	}
	if p, _ := apitest.Decoded[contract.Problem](t, stage, "DELETE", "/v1/catalog/models/llama", "", 409); p.Code != "MODEL_IN_USE" {
		t.Errorf("got %+v for the model of the pool, want MODEL_IN_USE", p)
	}
	for _, row := range []struct {
		status      int
		body, field string
	}{
		{400, `{}`, "limit"},
		{400, `{"engine": {"kind": "vllm", "model": "llama", "replicas": []}}`, "engine.replicas"},
		{400, `{"engine": {"kind": "gpt", "model": "llama", "replicas": [{"url": "https://a.example"}]}}`, "engine.kind"},
		{400, `{"engine": {"kind": "vllm", "model": "llama", "replicas": [{"url": "http://llama.example"}]}}`, "engine.replicas.0.url"},
		{400, `{"engine": {"kind": "vllm", "model": "llama", "replicas": [{"url": "https://10.0.0.1"}]}}`, "engine.replicas.0.url"},
		{400, `{"engine": {"kind": "vllm", "model": "llama", "slots": 2, "deterministic": true, "replicas": [{"url": "https://a.example"}]}}`, "engine.slots"},
		{400, strings.Replace(llamaPool, `"slots"`, `"deadlineMs": 0, "slots"`, 1), "engine.deadlineMs"},
		{400, strings.Replace(llamaPool, `"slots"`, `"deadlineMs": 86400001, "slots"`, 1), "engine.deadlineMs"},
		{400, strings.Replace(llamaPool, `"slots"`, `"maxDeadlineMs": 86400001, "slots"`, 1), "engine.maxDeadlineMs"},
		{400, strings.Replace(llamaPool, `"slots"`, `"maxDeadlineMs": 0, "slots"`, 1), "engine.maxDeadlineMs"},
		{400, strings.Replace(llamaPool, `"slots"`, `"deadlineMs": 2000, "maxDeadlineMs": 1000, "slots"`, 1), "engine.maxDeadlineMs"},
		{400, `{"limit": 9, ` + llamaPool[1:], "limit"},
		{400, `{"runner": "fly", ` + llamaPool[1:], "runner"},
		{400, `{"warm": {"max": 1}, ` + llamaPool[1:], "warm"},
		{400, `{"fallback": [{"pool": "default", "on": ["image"]}], ` + llamaPool[1:], "fallback.0.on.0"},
		{422, strings.Replace(llamaPool, `"llama"`, `"none"`, 1), "engine.model"},
		{422, `{"engine": {"kind": "mock", "model": "llama", "replicas": [{}]}}`, "engine.kind"},
		{422, `{"engine": {"kind": "tgi", "model": "llama", "replicas": [{"url": "https://a.example"}]}}`, "engine.kind"},
	} {
		if f, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", "/v1/pools/other", row.body, row.status); f.Field != row.field {
			t.Errorf("%s: got field %q (%s), want %s", row.body, f.Field, f.Detail, row.field)
		}
	}
	if f, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", "/v1/pools/default", llamaPool, 422); f.Field != "engine" {
		t.Errorf("the default pool: got field %q (%s), want engine", f.Field, f.Detail)
	}
	if p, _ := apitest.Decoded[contract.Pool](t, stage, "PUT", llamas, `{"limit": 3}`, 200); p.Engine != nil || p.Limit != 3 {
		t.Errorf("got %+v, want a pool of a runner", p)
	}
}

// TestPoolOfAServiceIsStored puts a pool of a service with OpenAI's API, and attacks with its address
// and its secret. No answer repeats a part of an address that can be secret.
func TestPoolOfAServiceIsStored(t *testing.T) {
	t.Parallel()
	stage := engineStage(t)
	apitest.Decoded[contract.Model](t, stage, "POST", "/v1/catalog/models", `{"id": "cloud", "engines": ["openai"], "context_tokens": 4096}`, 201)
	const valid = `{"engine": {"kind": "openai", "model": "cloud", "engineModel": "vendor/large", "secretRef": "provider-key", "slots": 4, "replicas": [{"url": "https://api.example.com/v1"}]}}`
	p, _ := apitest.Decoded[contract.Pool](t, stage, "PUT", "/v1/pools/cloud", valid, 201)
	if p.Limit != 4 || p.Engine.EngineModel != "vendor/large" || p.Engine.SecretRef != "provider-key" {
		t.Errorf("got %+v with the engine %+v, want the name of the model and of the secret", p, p.Engine)
	}
	with := func(from, to string) string { return strings.Replace(valid, from, to, 1) }
	const url = "https://api.example.com/v1"
	for _, row := range []struct{ body, field string }{
		{with(`"secretRef": "provider-key", `, ""), "engine.secretRef"},
		{with("provider-key", "../clients"), "engine.secretRef"},
		{with("provider-key", "a/b"), "engine.secretRef"},
		{with("provider-key", "sk-Live_s3cret"), "engine.secretRef"},
		{with(`"kind": "openai", "model": "cloud"`, `"kind": "vllm", "model": "llama"`), "engine.secretRef"},
		{with("vendor/large", "a\\u0000b"), "engine.engineModel"},
		{with(url, "http://api.example.com/v1"), "engine.replicas.0.url"},
		{with(url, "http://127.0.0.1:8001/v1"), "engine.replicas.0.url"},
		{with(url, "https://user:s3cret@api.example.com/v1"), "engine.replicas.0.url"},
		{with(url, "https://10.0.0.1/v1"), "engine.replicas.0.url"},
		{with(url, "https://169.254.169.254/latest"), "engine.replicas.0.url"},
		{with(url, "https://[fd00:ec2::254]/"), "engine.replicas.0.url"},
		{with(url, "https://[::ffff:10.0.0.1]/"), "engine.replicas.0.url"},
		{with(url, "https://0x7f.1/"), "engine.replicas.0.url"},
		{with(url, "https://metadata.google.internal/"), "engine.replicas.0.url"},
		{with(url, "https://api.example.com:22/v1"), "engine.replicas.0.url"},
		{with(url, url+"?key=s3cret"), "engine.replicas.0.url"},
		{with(url, url+"#s3cret"), "engine.replicas.0.url"},
		{with(`v1"}`, `v1", "metricsUrl": "https://api.example.com"}`), "engine.replicas.0.metricsUrl"},
		{with(`"replicas": [{"url": "`+url+`"}]`, `"machines": {"job": "server", "count": 1}`), "engine.machines"},
	} {
		f, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", "/v1/pools/other", row.body, 400)
		if f.Field != row.field {
			t.Errorf("%s: got field %q (%s), want %s", row.body, f.Field, f.Detail, row.field)
		}
		if strings.Contains(f.Detail, "user:") || !strings.Contains(row.body, "sk-") && strings.Contains(f.Detail, "s3cret") {
			t.Errorf("%s: got %s, want no secret of the address", row.body, f.Detail)
		}
	}
}

func TestPoolOfAnEngineRefusesMachines(t *testing.T) {
	t.Parallel()
	stage := engineStage(t)
	apitest.Decoded[contract.Pool](t, stage, "PUT", llamas, llamaPool, 201)
	for _, body := range []string{`{"image": "app", "pool": "llamas"}`} {
		if f, _ := apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/runs", body, 422); f.Field != "pool" || !strings.Contains(f.Detail, "vllm") {
			t.Errorf("%s: got field %q (%s), want pool", body, f.Field, f.Detail)
		}
	}
	apitest.Decoded[map[string]any](t, stage, "PUT", "/v1/jobs/nightly", `{"image": "app", "pool": "llamas"}`, 201)
	if f, _ := apitest.Decoded[contract.Problem](t, stage, "POST", "/v1/jobs/nightly/runs", "", 422); f.Field != "pool" {
		t.Errorf("a job: got field %q (%s), want pool", f.Field, f.Detail)
	}
	if f, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path, `{"limit": 1, "fallback": [{"pool": "llamas", "on": ["image"]}]}`, 422); f.Field != "fallback.0.pool" {
		t.Errorf("a fallback: got field %q (%s), want fallback.0.pool", f.Field, f.Detail)
	}
	apitest.Decoded[contract.Pool](t, stage, "PUT", path, `{"limit": 1}`, 201)
	apitest.Decoded[contract.RunAccepted](t, stage, "POST", "/v1/runs", `{"image": "app", "pool": "reports"}`, 202)
	if f, _ := apitest.Decoded[contract.Problem](t, stage, "PUT", path, llamaPool, 409); f.Code != "POOL_IN_USE" {
		t.Errorf("got %+v for an engine in a pool with runs, want POOL_IN_USE", f)
	}
}

func TestReloadOfAPool(t *testing.T) {
	t.Parallel()
	stage := engineStage(t)
	_, made := apitest.Decoded[contract.Pool](t, stage, "PUT", llamas, llamaPool, 201)
	apitest.Decoded[contract.Model](t, stage, "POST", "/v1/catalog/models", `{"id": "other", "engines": ["tgi"]}`, 201)
	reload := llamas + "/reload"
	for _, row := range []struct {
		status            int
		body, code, field string
	}{
		{400, `{"deadlineSeconds": 26}`, "INVALID_REQUEST", "deadlineSeconds"},
		{400, `{"deadlineSeconds": -1}`, "INVALID_REQUEST", "deadlineSeconds"},
		{400, `{"model": "a b"}`, "INVALID_REQUEST", "model"},
		{422, `{"model": "none"}`, "UNPROCESSABLE", "model"},
		{422, `{"model": "other"}`, "UNPROCESSABLE", "model"},
	} {
		if f, _ := apitest.Decoded[contract.Problem](t, stage, "POST", reload, row.body, row.status); f.Code != row.code || f.Field != row.field {
			t.Errorf("%s: got %s of %q (%s), want %s of %s", row.body, f.Code, f.Field, f.Detail, row.code, row.field)
		}
	}
	apitest.Decoded[contract.Pool](t, stage, "POST", llamas+"/drain", "", 202)
	p, answer := apitest.Decoded[contract.Pool](t, stage, "POST", reload, `{"model": "gemma"}`, 200)
	if p.Draining || p.Engine.Model != "gemma" || *p.Engine.Slots != 4 || answer.Get("ETag") == made.Get("ETag") {
		t.Errorf("got %+v with the engine %+v, want a pool of gemma that admits tasks", p, p.Engine)
	}
	if p, _ := apitest.Decoded[contract.Pool](t, stage, "POST", reload, "", 200); p.Engine.Model != "gemma" {
		t.Errorf("got the model %s after a reload without one, want gemma", p.Engine.Model)
	}
	if h, _ := apitest.Decoded[contract.PoolHealth](t, stage, "GET", llamas+"/health", "", 200); !h.Ready {
		t.Errorf("got %+v after a reload, want a pool that is ready", h)
	}
	if answer := stage.Call(t, "POST", reload, "", "If-Match", made.Get("ETag")); answer.Status != 412 {
		t.Errorf("got %d with an older tag, want 412", answer.Status)
	}
}

func TestCapabilitiesAreThoseOfThePools(t *testing.T) {
	t.Parallel()
	stage := engineStage(t)
	get := func() contract.Capabilities {
		found, _ := apitest.Decoded[contract.Capabilities](t, stage, "GET", "/v1/capabilities", "", 200)
		return found
	}
	if got := get(); got.APIVersion != contract.APIVersion || len(got.Engines) != 0 {
		t.Errorf("got %+v without pools, want no engine", got)
	}
	apitest.Decoded[contract.Pool](t, stage, "PUT", llamas, llamaPool, 201)
	apitest.Decoded[contract.Pool](t, stage, "PUT", "/v1/pools/gemmas", `{"engine": {"kind": "vllm", "model": "gemma", "deterministic": true, "replicas": [{"url": "https://g.example"}]}}`, 201)
	want := contract.EngineCapability{
		Engine: "vllm", CtxMax: 100_000, SupportedWorkloads: []string{"completion", "embedding"}, Features: contract.EngineFeatures{Deterministic: true, EngineOptions: inference.EngineExtras(platform.EngineVLLM)},
		Concurrency: 9, Models: []string{"gemma", "llama"}, Pools: []string{"gemmas", "llamas"},
	}
	for _, f := range inference.EngineFeatures(platform.EngineVLLM) {
		want.Features.Request = append(want.Features.Request, string(f))
	}
	if diff := cmp.Diff([]contract.EngineCapability{want}, get().Engines); diff != "" {
		t.Errorf("want -, got +\n%s", diff)
	}
	apitest.Decoded[contract.Model](t, stage, "POST", "/v1/catalog/models/gemma/state", `{"state": "Retired"}`, 200)
	want.CtxMax, want.Features.Deterministic, want.Concurrency, want.Models, want.Pools = 4096, false, 8, []string{"llama"}, []string{"llamas"}
	if diff := cmp.Diff([]contract.EngineCapability{want}, get().Engines); diff != "" {
		t.Errorf("without gemma: want -, got +\n%s", diff)
	}
	apitest.Decoded[contract.Pool](t, stage, "POST", llamas+"/drain", "", 202)
	if got := get(); len(got.Engines) != 0 {
		t.Errorf("got %+v with a draining pool, want no engine", got)
	}
	for _, method := range []string{"GET", "HEAD", "POST"} {
		if answer := stage.Call(t, method, "/v1/replicasets", ""); answer.Status != 404 {
			t.Errorf("%s /v1/replicasets: got %d, want 404", method, answer.Status)
		}
	}
}
