package fly

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// transport sends requests to the base URL, with the current token.
type transport struct {
	base  *url.URL
	next  http.RoundTripper
	token func(ctx context.Context) (string, error)
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	port.CountCall(req.Context(), platform.RunnerFly)
	req = req.Clone(req.Context())
	token, err := t.token(req.Context())
	if err != nil {
		return nil, fmt.Errorf("cannot read the token: %w", err)
	}
	req.Header.Set("Authorization", Authorization(token))
	req.URL.Scheme, req.URL.Host = t.base.Scheme, t.base.Host
	req.URL.Path = strings.TrimSuffix(t.base.Path, "/") + req.URL.Path
	req.URL.RawPath = ""
	req.Host = ""
	return t.next.RoundTrip(req)
}

// newTransport returns a transport without a timeout for the first byte of a response. Fly may
// take long for a creation and still complete it.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 128,
		IdleConnTimeout:     90 * time.Second,
		// The connections of a function that was frozen may be dead without a notice. A ping
		// detects that before a request waits for its timeout.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second},
	}
}
