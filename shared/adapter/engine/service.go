package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// service is a service with OpenAI's API that is reached over TLS with a key. Its URL is the base
// URL that OpenAI's libraries take, such as https://api.example.com/v1. It reports neither its
// slots nor its context, and has no metrics.
type service struct {
	openai

	// renamed has the models that have max_completion_tokens in place of max_tokens.
	renamed sync.Map
}

// The times of the connections of a service, and how long one that was ready counts as ready.
const (
	serviceIdle     = 30 * time.Second
	serviceReadyFor = time.Minute
)

// newService returns the engine for a service. It connects only to addresses that the policy
// permits, without a proxy, and follows no redirect.
func newService(cfg Config) (*Engine, error) {
	target, err := cfg.Policy.Target(cfg.URL)
	switch {
	case err != nil:
		return nil, fault.Invalid("url", "%v", err)
	case target.Plain():
		return nil, fault.Invalid("url", "an address without TLS, want https")
	case target.URL.RawQuery != "":
		return nil, fault.Invalid("url", "URL with a query, want one without")
	}
	e := &Engine{cfg: cfg, dialect: &service{}, base: target.URL, metrics: target.URL}
	e.client = serviceClient(cfg, target)
	e.streams = e.client
	return e, nil
}

func serviceClient(cfg Config, target guard.Target) *http.Client {
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: cfg.Policy.Control(target)}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
			TLSHandshakeTimeout: 5 * time.Second,
			IdleConnTimeout:     serviceIdle,
			MaxIdleConnsPerHost: 64,
			ReadBufferSize:      connBuffer, WriteBufferSize: connBuffer,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// generation requests no limit of tokens for a conversation whose client has set none: the rest of
// the context can be more than a model generates.
func (d *service) generation(g port.Generation) (string, any, error) {
	path, body := completionOf(g)
	if g.OpenEnd && len(g.Messages) > 0 {
		body.MaxTokens = 0
	}
	if _, is := d.renamed.Load(g.Model); is {
		body.MaxTokens, body.MaxCompletionTokens = 0, body.MaxTokens
	}
	if g.Options == nil {
		return path, body, nil
	}
	body.ReasoningEffort = g.Options.ReasoningEffort
	sent, err := withExtra(body, g.Options.Extra)
	return path, sent, err
}

// renames reports whether the service refuses max_tokens for a model and names its new member. The
// service has generated nothing, so the request is sent once more with it.
func (d *service) renames(model string, err error) bool {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok || f.Code != fault.InvalidParams || !strings.Contains(f.Message, "max_completion_tokens") || !strings.Contains(f.Message, "max_tokens") {
		return false
	}
	_, known := d.renamed.LoadOrStore(model, true)
	return !known
}

// health is the list of models, which costs no tokens.
func (*service) health() string { return "/v1/models" }

// probeService is probe for a service. It needs a valid key, but not the path, which some services
// lack. A service that was ready is not asked again for serviceReadyFor.
func (e *Engine) probeService(ctx context.Context, path string) (port.EngineHealth, error) {
	now := e.cfg.Clock.Now()
	if now.UnixNano() < e.readyUntil.Load() {
		return port.EngineHealth{Live: true, Ready: true}, nil
	}
	resp, err := e.open(ctx, e.client, http.MethodGet, e.at(path), nil)
	if err != nil {
		return port.EngineHealth{}, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK, http.StatusNotFound, http.StatusMethodNotAllowed:
		_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // keeps the connection, if the list is short
		e.readyUntil.Store(now.Add(serviceReadyFor).UnixNano())
		return port.EngineHealth{Live: true, Ready: true}, nil
	}
	return port.EngineHealth{Live: true, Reason: fault.Of(e.refused(ctx, resp)).Message}, nil
}

// capabilities sends no request: a service reports none. The catalog has the context of its model.
func (*service) capabilities(ctx context.Context, _ *Engine) (port.EngineCapabilities, error) {
	return port.EngineCapabilities{Workloads: []port.Workload{port.WorkloadCompletion, port.WorkloadEmbedding}}, ctx.Err()
}

func (*service) series() map[string]loadValue { return nil }

func (*service) refusal(r refusal) *fault.Fault {
	switch r.status {
	case http.StatusPaymentRequired:
		return noCredit(r.status)
	case http.StatusRequestTimeout:
		return fault.New(fault.PoolUnavailable, "the engine answered with status %d: %s", r.status, r.message)
	case http.StatusNotFound:
		return notFound(r)
	}
	return nil
}

// notFound returns the fault for a model or a path that the service does not have.
func notFound(r refusal) *fault.Fault {
	if r.code == "model_not_found" || strings.Contains(strings.ToLower(r.message), "model") {
		return fault.New(fault.ModelUnknown, "the engine does not have the model: %s", r.message)
	}
	for _, path := range []string{embeddingsPath, rerankPath, "/v1/completions"} {
		path = strings.TrimPrefix(path, "/v1")
		if strings.HasSuffix(r.path, path) && !strings.HasSuffix(r.path, "/chat"+path) {
			return refusedParams("it does not have " + path)
		}
	}
	return nil
}

// noCredit returns the fault for an account of a service that may send no more requests.
func noCredit(status int) *fault.Fault {
	f := fault.New(fault.PoolUnavailable, "the account of the engine has no quota left (status %d)", status)
	f.Retryable = false
	return f
}
