package outside

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/httpkit/apicheck"
)

// document is the parsed OpenAPI document.
var document = sync.OnceValues(func() (*apicheck.Document, error) { return apicheck.Load(contract.OpenAPI()) })

// wire leaves responses as they are sent.
var wire = func() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
	transport.DisableCompression = true
	transport.MaxIdleConnsPerHost = 64
	return transport
}()

// checkedTransport checks requests and responses against the OpenAPI document.
type checkedTransport struct{ client *Client }

// RoundTrip implements http.RoundTripper. The check sees neither the path
// prefix of the API nor the gateway's headers.
func (h checkedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	described, err := document()
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(h.client.URL)
	if err != nil {
		return nil, err
	}
	short := *r
	short.URL = &url.URL{
		Path:    strings.TrimPrefix(r.URL.Path, base.Path),
		RawPath: strings.TrimPrefix(r.URL.RawPath, base.EscapedPath()), RawQuery: r.URL.RawQuery,
	}
	pass := func(seen *http.Request) (*http.Response, error) {
		sent := *r
		sent.Body = seen.Body
		answer, err := wire.RoundTrip(&sent)
		if err != nil {
			return nil, err
		}
		for _, name := range h.client.Gateway {
			answer.Header.Del(name)
		}
		restoreHeaders(answer.Header)
		// A Location in the API starts with the stage, without the emulator's
		// prefix.
		for _, prefix := range []string{base.Path, "/" + path.Base(base.Path)} {
			if to, ok := strings.CutPrefix(answer.Header.Get("Location"), prefix+"/"); ok {
				answer.Header.Set("Location", "/"+to)
			}
		}
		return answer, nil
	}
	return described.Transport(roundTripperFunc(pass), func(err error) { h.client.T.Error(err) }).RoundTrip(&short)
}

// restoreHeaders restores the names of headers that API Gateway has renamed,
// unless it sends its own header of that name: it streams without
// Content-Length.
func restoreHeaders(header http.Header) {
	for name, values := range header {
		own, changed := strings.CutPrefix(name, "X-Amzn-Remapped-")
		if !changed {
			continue
		}
		delete(header, name)
		if _, sent := header[own]; !sent {
			header[own] = values
		}
	}
}

// roundTripperFunc makes a function an http.RoundTripper.
type roundTripperFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
