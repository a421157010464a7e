package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// Request returns the HTTP request of an event. It fails if the event is not from a REST API or
// its body is not valid base64.
func Request(ctx context.Context, e *events.APIGatewayProxyRequest) (*http.Request, error) {
	if e.HTTPMethod == "" || !strings.HasPrefix(e.Path, "/") {
		return nil, errors.New("the event has no method or path, want an event of a REST API")
	}
	body, err := bodyOf(e)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, e.HTTPMethod, "/", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("malformed method %q", e.HTTPMethod)
	}
	if len(body) == 0 {
		r.Body = http.NoBody
	}
	r.URL = target(e)
	r.RequestURI = r.URL.RequestURI()
	r.Header = headers(e)
	r.Host = cmp.Or(r.Header.Get("Host"), e.RequestContext.DomainName)
	r.Header.Del("Host") // as net/http does
	r.RemoteAddr = net.JoinHostPort(e.RequestContext.Identity.SourceIP, "0")
	if major, minor, ok := http.ParseHTTPVersion(e.RequestContext.Protocol); ok {
		r.Proto, r.ProtoMajor, r.ProtoMinor = e.RequestContext.Protocol, major, minor
	}
	return r, nil
}

func bodyOf(e *events.APIGatewayProxyRequest) ([]byte, error) {
	if !e.IsBase64Encoded {
		return []byte(e.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(e.Body)
	if err != nil {
		return nil, errors.New("the event's body is not base64")
	}
	return body, nil
}

// target returns the path and the query. API Gateway passes the path unchanged but decodes the
// query. So target encodes the query again: sorted by name, with the values of a name in their
// order.
func target(e *events.APIGatewayProxyRequest) *url.URL {
	u := &url.URL{Path: e.Path}
	if path, err := url.PathUnescape(e.Path); err == nil {
		u.Path, u.RawPath = path, e.Path
	}
	query := url.Values(e.MultiValueQueryStringParameters)
	if len(query) == 0 {
		query = url.Values{}
		for name, value := range e.QueryStringParameters {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	return u
}

// headers returns the headers of the client and its proxies. It omits those about the framing
// of the body, because the event contains the whole body.
func headers(e *events.APIGatewayProxyRequest) http.Header {
	header := http.Header{}
	for name, values := range e.MultiValueHeaders {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	if len(e.MultiValueHeaders) == 0 {
		for name, value := range e.Headers {
			header.Add(name, value)
		}
	}
	for _, name := range hopByHop {
		header.Del(name)
	}
	header.Del("Content-Length")
	return header
}

// hopByHop lists the headers that apply to one connection (RFC 9110, §7.6.1).
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// malformed returns the error of a payload that is not an event.
func malformed(err error) error { return fmt.Errorf("%w: %w", ErrMalformed, err) }

// ErrMalformed is the error for a payload that is not an event.
var ErrMalformed = errors.New("cannot read the event")
