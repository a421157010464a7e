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

// document is read once.
var document = sync.OnceValues(func() (*apicheck.Document, error) { return apicheck.Load(contract.OpenAPI()) })

// wire takes answers as they are sent.
var wire = func() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
	transport.DisableCompression = true
	transport.MaxIdleConnsPerHost = 64
	return transport
}()

// held is a transport that holds what passes to the document.
type held struct{ client *Client }

// RoundTrip sends the request. The document sees it without what stands before
// Sortie: the path of the API, and the gateway's headers.
func (h held) RoundTrip(r *http.Request) (*http.Response, error) {
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
		rename(answer.Header)
		// A reference to the API has the stage before it, and not what leads to
		// the stage in an emulator.
		for _, prefix := range []string{base.Path, "/" + path.Base(base.Path)} {
			if to, ok := strings.CutPrefix(answer.Header.Get("Location"), prefix+"/"); ok {
				answer.Header.Set("Location", "/"+to)
			}
		}
		return answer, nil
	}
	return described.Transport(exchange(pass), func(err error) { h.client.T.Error(err) }).RoundTrip(&short)
}

// rename gives headers their names back that API Gateway has changed, where it
// sends none of its own under them: it streams without Content-Length.
func rename(header http.Header) {
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

// exchange is a function that is a transport.
type exchange func(*http.Request) (*http.Response, error)

// RoundTrip calls it.
func (f exchange) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
