package suite

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/engines"
	"github.com/sortie-dev/sortie/local/proof/suite/clients"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func services() []Test {
	return []Test{{Name: "service with OpenAI's API answers for an engine that is gone", Requires: []Capability{MockEngine}, Run: serviceAnswers}}
}

// service serves OpenAI's API over TLS to requests with the suite's key. Its model is vendor/large.
func (c *Case) service() (url string) {
	mock := mockengine.New(mockengine.Config{Clock: clock.System{}, Model: "vendor/large"})
	key := clients.Secrets()[clients.ServiceSecret]
	server := httptest.NewUnstartedServer(engines.Keyed(engines.Handler(platform.EngineOpenAI, mock), func(got string) bool { return got == key }))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*c.Target.Certificate}}
	server.StartTLS()
	c.T.Cleanup(server.Close)
	return server.URL + "/v1"
}

// serviceAnswers has a pool of an engine that does not answer. Its fallback is a pool of a service,
// and a pool whose secret is missing is not ready.
func serviceAnswers(c *Case) {
	url, local, cloud := c.service(), c.Batch("gone"), c.Batch("cloud")
	for model, kind := range map[string]string{local: "vllm", cloud: "openai"} {
		send[contract.Model](c, http.MethodPost, "/v1/catalog/models", fmt.Sprintf(`{"id":%q,"engines":[%q],"context_tokens":4096}`, model, kind), http.StatusCreated)
	}
	engine := func(model, secret string) document {
		return document{"engine": document{
			"kind": "openai", "model": model, "engineModel": "vendor/large", "secretRef": secret, "slots": 2, "replicas": []document{{"url": url}},
		}}
	}
	cloudPath, spare := c.pool("cloud", engine(cloud, clients.ServiceSecret))
	keyless, _ := c.pool("keyless", engine(cloud, "no-such-secret"))
	localPath, _ := c.pool("gone", document{
		"engine":   document{"kind": "vllm", "model": local, "replicas": []document{{"url": "https://127.0.0.1:1"}}},
		"fallback": []document{{"pool": spare, "on": []string{"error"}}},
	})
	task := c.inState(c.ask(local, `,"max_tokens":7`), "Completed")
	if tokens := tokensOf(c.streamed(task.TaskID, "")); tokens != 7 || task.Pool != spare || len(task.FellBack) != 1 {
		c.T.Errorf("got %d tokens of %+v, want 7 of a task that fell back to %s", tokens, task, spare)
	}
	for path, want := range map[string]string{cloudPath: "", keyless: "does not exist"} {
		health := outside.Get[contract.PoolHealth](c.Client, path+"/health")
		if len(health.Replicas) != 1 || health.Replicas[0].Ready != (want == "") || !strings.Contains(health.Replicas[0].Reason, want) {
			c.T.Errorf("%s: got %+v, want a replica with the reason %q", path, health.Replicas, want)
		}
	}
	c.eventually("pool without tasks", func() bool { return outside.Get[contract.Pool](c.Client, cloudPath).Held == 0 })
	for _, path := range []string{localPath, cloudPath, keyless} {
		c.removePool(path)
	}
}
