package stack

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
)

// serveGate makes a part on loopback reachable for containers. The API sees a forwarded
// request, so it requires a token even where requests on loopback need no token. In JSON
// documents it replaces addresses by those that containers can reach.
func (s *Stack) serveGate(listener net.Listener, target string, addresses map[string]string) {
	s.serveOn(listener, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: target})
			r.SetXForwarded()
			r.Out.Host = target // the host in the signature of presigned URLs
			if strings.HasPrefix(r.In.Header.Get("Authorization"), "AWS4-") {
				r.Out.Host = r.In.Host // the host in the worker's signature
			}
		},
		ModifyResponse: func(answer *http.Response) error { return translate(answer, addresses) },
		FlushInterval:  -1, // streams of events and logs
	})
}

// translateLimit limits a document for translation, in bytes.
const translateLimit = 1 << 20

// translate replaces the addresses in a JSON response. Larger or streamed responses stay
// unchanged.
func translate(answer *http.Response, addresses map[string]string) error {
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), "application/json") || answer.ContentLength <= 0 || answer.ContentLength > translateLimit {
		return nil
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil {
		return err
	}
	for old, other := range addresses {
		text = bytes.ReplaceAll(text, []byte("//"+old), []byte("//"+other))
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	answer.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}
