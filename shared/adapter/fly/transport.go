package fly

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/superfly/fly-go/tokens"

	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/run"
)

// transport redirects the client to the base URL, which the client reads only
// from the environment, once, and without a path. It sends a new body with each
// try: the client rewinds one reader for its retries while the transport may
// still read it, and after a fast 502 the request would be broken.
//
// It also sets the current token: the client has one token for its whole life.
type transport struct {
	base  *url.URL
	next  http.RoundTripper
	token func(ctx context.Context) (string, error) // nil for the client's
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	port.CountCall(req.Context(), run.RunnerFly)
	req = req.Clone(req.Context())
	if t.token != nil {
		token, err := t.token(req.Context())
		if err != nil {
			return nil, fmt.Errorf("cannot read the token: %w", err)
		}
		req.Header.Set("Authorization", tokens.Parse(token).FlapsHeader())
	}
	req.URL.Scheme, req.URL.Host = t.base.Scheme, t.base.Host
	req.URL.Path = strings.TrimSuffix(t.base.Path, "/") + req.URL.Path
	req.URL.RawPath = ""
	req.Host = ""
	if req.Body == nil || req.Body == http.NoBody {
		return t.next.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, fmt.Errorf("cannot read the request: %w", err)
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body = io.NopCloser(bytes.NewReader(body))
	return t.next.RoundTrip(req)
}

// newTransport sets no timeout for the first byte of an answer: the client
// would repeat a creation that Fly may have done.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        256,
		MaxIdleConnsPerHost: 128,
		IdleConnTimeout:     90 * time.Second,
	}
}
