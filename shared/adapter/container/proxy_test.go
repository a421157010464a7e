package container_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
)

// proxy forwards calls to an engine. It can fail the creation of containers, or every call.
type proxy struct {
	url string
	mu  sync.Mutex
	// next is the fault of the next creation of each machine name.
	next map[string]porttest.RunnerFault
	// down means that no call reaches the engine.
	down bool
}

// newProxy serves a proxy for the engine at an address.
func newProxy(t *testing.T, address string) *proxy {
	p := &proxy{next: map[string]porttest.RunnerFault{}}
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	if target.Scheme == "unix" {
		socket := target.Path
		target = &url.URL{Scheme: "http", Host: "engine"}
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	t.Cleanup(transport.CloseIdleConnections)
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.isDown() {
			panic(http.ErrAbortHandler)
		}
		how := porttest.RunnerFault("")
		if strings.HasSuffix(r.URL.Path, "/containers/create") {
			how = p.take(r.URL.Query().Get("name"))
		}
		switch how {
		case porttest.RunnerThrottles:
			refuse(w, http.StatusTooManyRequests, "too many requests")
		case porttest.RunnerIsFull:
			refuse(w, http.StatusInternalServerError, "mkdir /var/lib/docker/overlay2/1: no space left on device")
		case porttest.RunnerLosesRequest:
			panic(http.ErrAbortHandler)
		case porttest.RunnerLosesAnswer:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(web.Close)
	p.url = "tcp://" + strings.TrimPrefix(web.URL, "http://")
	return p
}

func (p *proxy) fail(name string, how porttest.RunnerFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[name] = how
}

// cut sets whether calls reach the engine.
func (p *proxy) cut(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

func (p *proxy) isDown() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.down
}

// take returns the fault of a container's name.
func (p *proxy) take(container string) porttest.RunnerFault {
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, how := range p.next {
		if strings.HasSuffix(container, "-"+name) {
			delete(p.next, name)
			return how
		}
	}
	return ""
}
