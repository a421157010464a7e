package outside

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apicheck"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// document is the parsed OpenAPI document.
var document = sync.OnceValues(func() (*apicheck.Document, error) { return apicheck.Load(contract.OpenAPI()) })

// CheckSchema checks a JSON text against a schema of the OpenAPI document.
func CheckSchema(name string, text []byte) error {
	described, err := document()
	if err != nil {
		return err
	}
	return described.CheckSchema(name, text)
}

// wire is a transport that leaves responses unchanged. Its connections end before servers close
// them: LocalStack does after 5 s, and a POST on a connection that closes fails.
var wire = func() http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
	transport.DisableCompression = true
	transport.MaxIdleConnsPerHost = 64
	transport.IdleConnTimeout = 2 * time.Second
	return transport
}()

// checkedTransport checks requests and responses against the OpenAPI document.
type checkedTransport struct{ client *Client }

// RoundTrip implements http.RoundTripper. The check does not see the API's path prefix and the
// gateway's headers.
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
		if err := restoreHeaders(answer.Header, h.client.Remapped); err != nil {
			h.client.T.Errorf("%s %s: %v", r.Method, r.URL.Path, err)
		}
		// A Location of the API starts with the stage, but not with the emulator's prefix.
		for _, prefix := range []string{base.Path, "/" + path.Base(base.Path)} {
			if to, ok := strings.CutPrefix(answer.Header.Get("Location"), prefix+"/"); ok {
				answer.Header.Set("Location", "/"+to)
			}
		}
		return answer, nil
	}
	return described.Transport(roundTripperFunc(pass), func(err error) { h.client.T.Error(err) }).RoundTrip(&short)
}

// Browser returns a transport for a client that follows redirects of the API with this URL. A
// Location starts with the stage, but not with the prefix of an emulator.
func Browser(api string) (http.RoundTripper, error) {
	base, err := url.Parse(api)
	if err != nil {
		return nil, err
	}
	prefix, stage := path.Split(base.Path)
	return roundTripperFunc(func(r *http.Request) (*http.Response, error) {
		answer, err := wire.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if below, ok := strings.CutPrefix(answer.Header.Get("Location"), "/"+stage+"/"); ok && stage != "" {
			answer.Header.Set("Location", prefix+stage+"/"+below)
		}
		return answer, nil
	}), nil
}

// remappedPrefix is API Gateway's prefix of a header that it renames.
const remappedPrefix = "X-Amzn-Remapped-"

// connection are headers of one connection. API Gateway sends its own.
var connection = []string{"Connection", "Content-Length", "Date", "Server"}

// restoreHeaders restores the names of headers that API Gateway has renamed, unless it sends
// its own header with that name: it streams without Content-Length. Clients see the renamed
// headers. So it returns an error for each renamed header that is not in remapped, and for each
// header in remapped that is not renamed.
func restoreHeaders(header http.Header, remapped []string) error {
	var problems []error
	for _, own := range remapped {
		if _, sent := header[own]; sent {
			problems = append(problems, fmt.Errorf("got header %s, want %s", own, remappedPrefix+own))
		}
	}
	for name, values := range header {
		own, changed := strings.CutPrefix(name, remappedPrefix)
		if !changed {
			continue
		}
		if !slices.Contains(remapped, own) && !slices.Contains(connection, own) {
			problems = append(problems, fmt.Errorf("got header %s, which the target does not declare", name))
		}
		delete(header, name)
		if _, sent := header[own]; !sent {
			header[own] = values
		}
	}
	return errors.Join(problems...)
}

// roundTripperFunc is a function that implements http.RoundTripper.
type roundTripperFunc func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
