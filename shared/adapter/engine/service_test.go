package engine_test

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/engines"
	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

const serviceKey = "sk-key-of-the-service"

func fixed(key string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return key, nil }
}

// loopback permits 127.0.0.1.
func loopback(t testing.TB) guard.Policy {
	t.Helper()
	policy, err := guard.Policy{}.WithRules("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func trusting(server *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	return pool
}

// secure serves a handler over TLS and returns the engine for it.
func secure(t testing.TB, c clock.Clock, handler http.Handler, key func(context.Context) (string, error)) (*engine.Engine, *httptest.Server) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	e, err := engine.New(engine.Config{
		Kind: platform.EngineOpenAI, URL: server.URL + "/v1", Slots: 2, ContextTokens: 4096, Clock: c,
		Key: key, Policy: loopback(t), RootCAs: trusting(server),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, server
}

func chat(ctx context.Context, e *engine.Engine, g port.Generation) (text string, end port.GenerationEnd, err error) {
	g.Model, g.Messages = "cloud", []port.Message{{Role: "user", Content: "hello"}}
	end, err = e.Generate(ctx, g, func(p port.Piece) error { text += p.Text; return nil })
	return text, end, err
}

// TestAddressesOfServices has the addresses that a service may not have.
func TestAddressesOfServices(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"http://api.example.com/v1", "https://user:pass@api.example.com/v1", "https://10.0.0.1/v1", "https://127.0.0.2/v1", "https://169.254.169.254/v1",
		"https://[::1]/v1", "https://localhost/v1", "https://api.internal/v1", "https://api.example.com:8443/v1", "https://api.example.com/v1?key=1",
		"https://api.example.com/v1#a", "ftp://api.example.com", "https://2130706433/v1", "",
	} {
		_, err := engine.New(engine.Config{Kind: platform.EngineOpenAI, URL: url, Policy: loopback(t), Clock: clock.System{}})
		if f := fault.Of(err); f == nil || f.Code != fault.InvalidRequest || f.Field != "url" || strings.Contains(f.Message, "pass") {
			t.Errorf("%q: got %v, want its address refused", url, err)
		}
	}
}

// TestServiceAtAPrivateAddress uses a public name whose address is not.
func TestServiceAtAPrivateAddress(t *testing.T) {
	t.Parallel()
	called := atomic.Bool{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Store(true) }))
	defer server.Close()
	named, err := guard.Policy{}.WithPorts(strings.TrimPrefix(server.URL, "https://127.0.0.1:"))
	if err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(server.URL, "127.0.0.1", "localhost.localdomain", 1)
	e, err := engine.New(engine.Config{Kind: platform.EngineOpenAI, URL: url, Policy: named, Clock: clock.System{}, Key: fixed(serviceKey), RootCAs: trusting(server)})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, _, err := chat(t.Context(), e, port.Generation{MaxTokens: 1}); !fault.Is(err, fault.PoolUnavailable) || called.Load() {
		t.Errorf("got %v (called: %v), want PoolUnavailable without a request", err, called.Load())
	}
}

// TestServiceNeedsItsCertificate checks that a server with another certificate gets no key.
func TestServiceNeedsItsCertificate(t *testing.T) {
	t.Parallel()
	called := atomic.Bool{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Store(true) }))
	defer server.Close()
	e, err := engine.New(engine.Config{
		Kind: platform.EngineOpenAI, URL: server.URL, Policy: loopback(t), Clock: clock.System{}, Key: fixed(serviceKey), RootCAs: x509.NewCertPool(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	_, _, err = chat(t.Context(), e, port.Generation{MaxTokens: 1})
	if !fault.Is(err, fault.PoolUnavailable) || !strings.Contains(err.Error(), "certificate") || called.Load() {
		t.Errorf("got %v (called: %v), want the certificate refused", err, called.Load())
	}
}

// TestRedirectOfAServiceIsNotFollowed checks that no other server gets the key.
func TestRedirectOfAServiceIsNotFollowed(t *testing.T) {
	t.Parallel()
	stolen := make(chan string, 8)
	other := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") }))
	defer other.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		e, _ := secure(t, clock.System{}, http.RedirectHandler(other.URL, status), fixed(serviceKey))
		if _, _, err := chat(t.Context(), e, port.Generation{MaxTokens: 1}); !fault.Is(err, fault.PoolUnavailable) {
			t.Errorf("%d: got %v, want PoolUnavailable", status, err)
		}
		if h, err := e.Health(t.Context()); err != nil || h.Ready {
			t.Errorf("%d: got %+v, %v, want a service that is not ready", status, h, err)
		}
	}
	if len(stolen) > 0 {
		t.Errorf("got a request with %q at another server, want none", <-stolen)
	}
}

// TestKeyOfAServiceIsRotated changes the key between two requests. A refused key is a failure of the
// pool, and in no message, although the service repeats it.
func TestKeyOfAServiceIsRotated(t *testing.T) {
	t.Parallel()
	var sent, valid atomic.Value
	sent.Store("old-key-0123")
	valid.Store("old-key-0123")
	mock := mockengine.New(mockengine.Config{Clock: clock.System{}, Model: "cloud"})
	handler := engines.Keyed(engines.Handler(platform.EngineOpenAI, mock), func(key string) bool { return key == valid.Load() })
	e, _ := secure(t, clock.System{}, handler, func(context.Context) (string, error) { return sent.Load().(string), nil })
	if text, end, err := chat(t.Context(), e, port.Generation{MaxTokens: 5}); err != nil || text == "" || !end.Counted {
		t.Fatalf("got %q, %+v, %v, want an answer with its usage", text, end, err)
	}
	valid.Store("new-key-4567")
	_, _, err := chat(t.Context(), e, port.Generation{MaxTokens: 5})
	f := fault.Of(err)
	if f == nil || f.Code != fault.PoolUnavailable || f.Retryable || strings.Contains(fmt.Sprintf("%v %+v", err, f), "old-key") {
		t.Errorf("got %v, want a failure of the pool without its key", err)
	}
	if h, err := e.Health(t.Context()); err != nil || !h.Live || h.Ready || strings.Contains(h.Reason, "old-key") {
		t.Errorf("got %+v, %v, want a service that is not ready", h, err)
	}
	sent.Store("new-key-4567")
	if text, _, err := chat(t.Context(), e, port.Generation{MaxTokens: 5}); err != nil || text == "" {
		t.Errorf("got %q, %v after the rotation, want an answer", text, err)
	}
}

// TestErrorsOfServices has the errors of services, with the key in their messages.
func TestErrorsOfServices(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		status      int
		after, body string
		want        fault.Code
		pause       time.Duration
		field       string
	}{
		"limit of requests": {429, "7", `{"error":{"message":"Rate limit reached for %s","type":"requests","code":"rate_limit_exceeded"}}`, fault.ReplicaExhausted, 7 * time.Second, ""},
		"date of a limit":   {429, start.Add(time.Minute).Format(http.TimeFormat), `{}`, fault.ReplicaExhausted, time.Minute, ""},
		"long pause":        {503, "999999", `{"error":{"message":"overloaded %s"}}`, fault.PoolUnavailable, 10 * time.Minute, ""},
		"no quota":          {429, "", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, fault.PoolUnavailable, 0, ""},
		"no credit":         {402, "", `{"error":{"message":"Insufficient Balance"}}`, fault.PoolUnavailable, 0, ""},
		"refused key":       {401, "", `{"error":{"message":"Incorrect API key provided: %s"}}`, fault.PoolUnavailable, 0, ""},
		"no permission":     {403, "", `{"error":{"message":"%s may not"}}`, fault.PoolUnavailable, 0, ""},
		"unknown model":     {404, "", `{"error":{"message":"The model does not exist","code":"model_not_found"}}`, fault.ModelUnknown, 0, ""},
		"unknown path":      {404, "", `nothing here`, fault.PoolUnavailable, 0, ""},
		"late":              {408, "", `{"error":{"message":"%s"}}`, fault.PoolUnavailable, 0, ""},
		"refused request":   {400, "", `{"error":{"message":"bad %s"}}`, fault.InvalidParams, 0, ""},
		"long prompt":       {400, "", `{"error":{"message":"too many tokens","code":"context_length_exceeded"}}`, fault.InvalidParams, 0, "prompt"},
		"failure":           {500, "", `{"error":{"message":"%s"}}`, fault.PoolUnavailable, 0, ""},
		"overloaded":        {529, "", `{"error":{"message":"%s"}}`, fault.PoolUnavailable, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, _ := secure(t, clock.NewVirtual(start), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if row.after != "" {
					w.Header().Set("Retry-After", row.after)
				}
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, strings.ReplaceAll(row.body, "%s", serviceKey))
			}), fixed(serviceKey))
			_, _, err := chat(t.Context(), e, port.Generation{MaxTokens: 1})
			f := fault.Of(err)
			if f == nil || f.Code != row.want || f.Field != row.field || strings.Contains(err.Error(), serviceKey) {
				t.Errorf("got %v, want %s of %q without the key", err, row.want, row.field)
			}
			if answer, ok := err.(port.EngineAnswer); !ok || answer.RetryAfter != row.pause || answer.Status != row.status { //nolint:errorlint // it is not wrapped
				t.Errorf("got %+v, want a pause of %v", err, row.pause)
			}
		})
	}
}

// TestErrorInTheStreamOfAService repeats the key in an event.
func TestErrorInTheStreamOfAService(t *testing.T) {
	t.Parallel()
	e, _ := secure(t, clock.System{}, streamed(`data: {"error":{"message":"failed with `+serviceKey+`","code":500}}`+"\n\n"), fixed(serviceKey))
	if _, _, err := chat(t.Context(), e, port.Generation{MaxTokens: 1}); !fault.Is(err, fault.PoolUnavailable) || strings.Contains(err.Error(), serviceKey) {
		t.Errorf("got %v, want PoolUnavailable without the key", err)
	}
}

// TestLimitOfTokensOfAService checks the member with the limit: a model that refuses one gets the
// other, and a client without a limit leaves it to the service.
func TestLimitOfTokensOfAService(t *testing.T) {
	t.Parallel()
	bodies := make(chan map[string]any, 8)
	e, _ := secure(t, clock.System{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		bodies <- body
		if body["max_tokens"] != nil {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`)
			return
		}
		streamed("data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n")(w, r)
	}), fixed(serviceKey))
	for _, g := range []port.Generation{{MaxTokens: 5}, {MaxTokens: 6}, {MaxTokens: 100000, OpenEnd: true}} {
		if text, _, err := chat(t.Context(), e, g); err != nil || text != "a" {
			t.Fatalf("%+v: got %q, %v, want an answer", g, text, err)
		}
	}
	close(bodies)
	var limits []any
	for body := range bodies {
		limits = append(limits, body["max_tokens"], body["max_completion_tokens"])
		if options, ok := body["stream_options"].(map[string]any); !ok || options["include_usage"] != true || body["stream"] != true || body["model"] != "cloud" {
			t.Errorf("got %v, want a stream with its usage", body)
		}
	}
	if got, want := fmt.Sprint(limits), fmt.Sprint([]any{5, nil, nil, 5, nil, 6, nil, nil}); got != want {
		t.Errorf("got the limits %s, want %s", got, want)
	}
}

// TestHealthOfAServiceIsRemembered counts the requests for the list of models.
func TestHealthOfAServiceIsRemembered(t *testing.T) {
	t.Parallel()
	calls, status, now := atomic.Int32{}, atomic.Int32{}, clock.NewVirtual(start)
	status.Store(http.StatusNotFound) // some services have no list
	e, _ := secure(t, now, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1); r.Method != http.MethodGet || r.URL.Path != "/v1/models" {
			t.Errorf("got %s %s, want the list of models", r.Method, r.URL.Path)
		}
		w.WriteHeader(int(status.Load()))
	}), fixed(serviceKey))
	for range 3 {
		if h, err := e.Health(t.Context()); err != nil || !h.Ready {
			t.Errorf("got %+v, %v, want a ready service", h, err)
		}
	}
	now.Advance(time.Minute)
	status.Store(http.StatusInternalServerError)
	for range 2 {
		if h, err := e.Health(t.Context()); err != nil || !h.Live || h.Ready || h.Reason == "" {
			t.Errorf("got %+v, %v, want a service that is not ready", h, err)
		}
	}
	if got := calls.Load(); got != 3 {
		t.Errorf("got %d requests, want 1 while it is ready and 2 after it", got)
	}
	load, err := e.Load(t.Context())
	if err != nil || load != (port.EngineLoad{}) || calls.Load() != 3 {
		t.Errorf("got %+v, %v, want no load and no request", load, err)
	}
}

type noSecrets map[string]string

func (s noSecrets) Secret(_ context.Context, tenant, name string) (string, error) {
	switch value := s[tenant+"/"+name]; value {
	case "":
		return "", fmt.Errorf("%w: secret %s", port.ErrNotFound, name)
	case "later":
		return "", fault.New(fault.Unavailable, "the secret %q cannot be read now", name)
	default:
		return value, nil
	}
}

// TestKeysOfServicesAreThoseOfTheirTenants reads the key of each request from the secrets.
func TestKeysOfServicesAreThoseOfTheirTenants(t *testing.T) {
	t.Parallel()
	keys := make(chan string, 1)
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { keys <- r.Header.Get("Authorization") }))
	defer server.Close()
	secrets := noSecrets{"a/provider": "key-of-a\n", "b/provider": "key-of-b", "a/other": "other-of-a", "a/spaced": "my key", "a/late": "later"}
	replicas := engine.NewReplicas(clock.System{}, engine.Services{Secrets: secrets, Policy: loopback(t), RootCAs: trusting(server)}, nil)
	for _, row := range []struct{ tenant, secret, want, says string }{
		{"a", "provider", "key-of-a", ""},
		{"b", "provider", "key-of-b", ""},
		{"a", "other", "other-of-a", ""},
		{"b", "other", "", "does not exist"},
		{"a", "spaced", "", "not a key"},
		{"a", "late", "", "cannot be read now"},
	} {
		e, err := replicas.Of(row.tenant, platform.EnginePlace{Kind: platform.EngineOpenAI, SecretRef: row.secret}, platform.EngineReplica{ID: "r1", URL: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		h, err := e.Health(t.Context())
		switch {
		case row.want != "":
			if got := <-keys; got != "Bearer "+row.want || err != nil || !h.Ready {
				t.Errorf("%+v: got %q, %+v, %v, want the key of the tenant", row, got, h, err)
			}
		case err != nil, h.Ready, !strings.Contains(h.Reason, row.says), strings.Contains(h.Reason, "my key"), len(keys) > 0:
			t.Errorf("%+v: got %+v, %v, want no request and its reason", row, h, err)
		}
	}
}
