package engine

import (
	"cmp"
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Config is a replica of an inference server.
type Config struct {
	Kind platform.EngineKind
	// URL is the address of the server: http or https, without a query. MetricsURL is the
	// address of its metrics if it is another one, as for Triton.
	URL, MetricsURL string
	// Key returns the key, which is sent as a bearer token. It is called for each request, so that
	// a key can be changed; nil is for a server that requires none. Its fault has no secret.
	Key func(ctx context.Context) (string, error)
	// Policy has the addresses that a service may have. RootCAs replaces the certificates of the
	// host in tests. Both are for platform.EngineOpenAI alone.
	Policy  guard.Policy
	RootCAs *x509.CertPool
	// Slots and ContextTokens are used if the server does not report them; 0 means unknown.
	Slots, ContextTokens int
	// Clock is required. It times the limits of requests.
	Clock clock.Clock
}

// Engine is a replica. New creates it. It is safe for concurrent use.
type Engine struct {
	cfg     Config
	dialect dialect
	base    *url.URL
	metrics *url.URL
	client  *http.Client
	// streams is for requests whose answer is a stream.
	streams *http.Client
	// readyUntil is the time until which a service counts as ready, in nanoseconds.
	readyUntil atomic.Int64
}

var _ port.Engine = (*Engine)(nil)

// dialect implements what differs between the servers.
type dialect interface {
	// generation returns the path and the body of a request for a completion.
	generation(g port.Generation) (path string, body any, err error)
	// read adds an event of the response to the answer: a piece or the end.
	read(data []byte, a *answer) error
	// health is the path that returns 200 while the server accepts requests.
	health() string
	// capabilities reads the capabilities of the server.
	capabilities(ctx context.Context, e *Engine) (port.EngineCapabilities, error)
	// series maps the names of the server's metrics to values of the load.
	series() map[string]loadValue
	// refusal returns the fault for a status other than 200 that has a special meaning for this
	// server, or nil to apply the general rule.
	refusal(r refusal) *fault.Fault
	// vectors reports whether the server has OpenAI's embeddings and a rerank path.
	vectors() bool
}

var dialects = map[platform.EngineKind]dialect{
	platform.EngineLlamaCpp: llamacpp{},
	platform.EngineVLLM:     vllm{},
	platform.EngineTGI:      tgi{},
	platform.EngineTriton:   triton{},
}

// idle is shorter than the five seconds after which llama-server closes a connection.
const idle = 4 * time.Second

// connBuffer is the size of the buffers of a connection, in bytes.
const connBuffer = 1 << 10

// New returns the replica at cfg.URL. It does not contact the server.
func New(cfg Config) (*Engine, error) {
	d, known := dialects[cfg.Kind]
	if cfg.Kind == platform.EngineOpenAI {
		return newService(cfg)
	}
	if !known {
		return nil, fault.Invalid("engine", "unknown engine %q, want %s", cfg.Kind, platform.EngineNames(platform.EngineServers()))
	}
	base, err := address("url", cfg.URL)
	if err != nil {
		return nil, err
	}
	metrics, err := address("metricsUrl", cmp.Or(cfg.MetricsURL, cfg.URL))
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, dialect: d, base: base, metrics: metrics}
	e.client, e.streams = clients(base.Scheme)
	return e, nil
}

// clients returns the clients for requests and for streams. With TLS both are the same: a TLS
// handshake for each stream would take longer than the first token of many engines.
func clients(scheme string) (client, streamed *http.Client) {
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	client = &http.Client{
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: 5 * time.Second,
			IdleConnTimeout:     idle,
			MaxIdleConnsPerHost: 64,
			// A connection keeps its buffers while it waits for the next token, which is small.
			ReadBufferSize: connBuffer, WriteBufferSize: connBuffer,
			DisableCompression: true, // a compressed stream waits for more
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	if scheme != "http" {
		return client, client
	}
	return client, &http.Client{Transport: streams{dialer}, CheckRedirect: client.CheckRedirect}
}

// address parses the URL of a server.
func address(field, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fault.Invalid(field, "want an http or https URL such as http://127.0.0.1:8081")
	case u.User != nil:
		return nil, fault.Invalid(field, "want a URL without a user; the key has a field of its own")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fault.Invalid(field, "want a URL without query and fragment")
	}
	return u, nil
}

// Close closes the connections that are not in use.
func (e *Engine) Close() { e.client.CloseIdleConnections() }

// Health reports whether the server accepts requests.
func (e *Engine) Health(ctx context.Context) (port.EngineHealth, error) {
	probe := e.probe
	if e.cfg.Kind == platform.EngineOpenAI {
		probe = e.probeService
	}
	h, err := probe(ctx, e.dialect.health())
	if ctx.Err() != nil {
		return port.EngineHealth{}, ctx.Err()
	}
	if err != nil {
		return port.EngineHealth{Reason: fault.Of(err).Message}, nil
	}
	return h, nil
}

// Capabilities reads the capabilities of the server. Configured values replace those that it
// does not report.
func (e *Engine) Capabilities(ctx context.Context) (port.EngineCapabilities, error) {
	c, err := e.dialect.capabilities(ctx, e)
	if err != nil {
		return port.EngineCapabilities{}, err
	}
	c.Slots, c.ContextTokens = cmp.Or(c.Slots, e.cfg.Slots), cmp.Or(c.ContextTokens, e.cfg.ContextTokens)
	return c, nil
}
