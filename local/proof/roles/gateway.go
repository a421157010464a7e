package roles

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

// gateway is the REST API. It invokes the function of a route with each request.
type gateway struct {
	lambda *lambda
	// stage is the first segment of each path.
	stage  string
	routes map[string]string
}

// ServeHTTP implements http.Handler.
func (g gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, staged := strings.CutPrefix(r.URL.EscapedPath(), "/"+g.stage)
	function := g.function(r.Method, path)
	if !staged || function == "" {
		http.Error(w, `{"message":"Missing Authentication Token"}`, http.StatusForbidden)
		return
	}
	event, err := g.event(r, path)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	begun := false
	// The function does not notice that its caller has disconnected.
	err = g.lambda.stream(context.WithoutCancel(r.Context()), function, event, func(kind string, body io.Reader) error {
		begun = true
		if kind == "application/vnd.awslambda.http-integration-response" {
			return streamed(w, body)
		}
		return buffered(w, body)
	})
	switch {
	case err != nil && begun:
		panic(http.ErrAbortHandler)
	case err != nil:
		http.Error(w, `{"message":"Internal server error"}`, http.StatusBadGateway)
	}
}

// function returns the function of a request. A literal segment takes precedence over a
// parameter.
func (g gateway) function(method, path string) string {
	best, found := -1, ""
	for route, function := range g.routes {
		of, pattern, _ := strings.Cut(route, " ")
		literal, ok := match(pattern, path)
		if !ok || of != method && of != "ANY" {
			continue
		}
		if literal *= 2; of == method {
			literal++
		}
		if literal > best {
			best, found = literal, function
		}
	}
	return found
}

// match reports whether a path matches a pattern, and the number of literal segments. {proxy+}
// matches one or more segments at the end.
func match(pattern, path string) (literal int, ok bool) {
	parts, given := strings.Split(pattern, "/"), strings.Split(path, "/")
	last := len(parts) - 1
	greedy := parts[last] == "{proxy+}"
	if len(parts) != len(given) && (!greedy || len(given) < len(parts)) {
		return 0, false
	}
	for i, part := range parts {
		switch {
		case part == given[i]:
			literal++
		case !strings.HasPrefix(part, "{") || given[i] == "":
			return 0, false
		}
	}
	return literal, true
}

// event returns the event of a request in payload format 1.0.
func (g gateway) event(r *http.Request, path string) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("cannot read a request: %w", err)
	}
	header := r.Header.Clone()
	header.Set("Host", r.Host)
	e := events.APIGatewayProxyRequest{
		Path: path, HTTPMethod: r.Method, MultiValueHeaders: header, MultiValueQueryStringParameters: r.URL.Query(),
		Body: base64.StdEncoding.EncodeToString(body), IsBase64Encoded: true,
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return nil, fmt.Errorf("cannot read an address: %w", err)
	}
	e.RequestContext = events.APIGatewayProxyRequestContext{Path: "/" + g.stage + path, Stage: g.stage, Protocol: r.Proto, DomainName: r.Host}
	e.RequestContext.Identity.SourceIP = host
	return json.Marshal(e)
}

// buffered writes the response of a function that does not stream.
func buffered(w http.ResponseWriter, body io.Reader) error {
	var response events.APIGatewayProxyResponse
	if err := json.NewDecoder(body).Decode(&response); err != nil {
		return fmt.Errorf("malformed response: %w", err)
	}
	text := []byte(response.Body)
	if response.IsBase64Encoded {
		var err error
		if text, err = base64.StdEncoding.DecodeString(response.Body); err != nil {
			return fmt.Errorf("malformed response: %w", err)
		}
	}
	head(w, response.StatusCode, response.MultiValueHeaders)
	_, _ = w.Write(text) // the client may have left
	return nil
}

// separator ends the header of a streamed response.
var separator = make([]byte, 8)

// streamed writes a function's response while it arrives.
func streamed(w http.ResponseWriter, body io.Reader) error {
	reader := bufio.NewReader(body)
	var text []byte
	for !bytes.HasSuffix(text, separator) {
		b, err := reader.ReadByte()
		if err != nil {
			return errors.New("malformed stream: it ends in its head")
		}
		text = append(text, b)
	}
	var response struct {
		StatusCode        int                 `json:"statusCode"`
		MultiValueHeaders map[string][]string `json:"multiValueHeaders"`
		Headers           map[string]string   `json:"headers"`
	}
	if err := json.Unmarshal(bytes.TrimSuffix(text, separator), &response); err != nil {
		return fmt.Errorf("malformed stream: %w", err)
	}
	head(w, response.StatusCode, response.MultiValueHeaders)
	part := make([]byte, 32<<10)
	for {
		n, err := reader.Read(part)
		_, _ = w.Write(part[:n]) // the client may have disconnected
		if flusher, ok := w.(http.Flusher); ok {
			flusher.Flush()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func head(w http.ResponseWriter, status int, header map[string][]string) {
	for name, values := range header {
		for _, value := range values {
			w.Header().Add(name, value)
		}
	}
	w.WriteHeader(status)
}

// socketEvent returns an event of the WebSocket API. The token may be empty.
func socketEvent(kind, connection, token string, query url.Values) ([]byte, error) {
	e := events.APIGatewayWebsocketProxyRequest{MultiValueHeaders: map[string][]string{}, MultiValueQueryStringParameters: query}
	if token != "" {
		e.MultiValueHeaders["Authorization"] = []string{"Bearer " + token}
	}
	e.RequestContext.ConnectionID, e.RequestContext.EventType = connection, kind
	e.RequestContext.Identity.SourceIP = "127.0.0.1"
	return json.Marshal(e)
}
