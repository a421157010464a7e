package httpkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Listener returns a listener that replaces the errors that net/http writes itself, before any
// handler, by problem documents: 400, 417, 431, 501 and 505.
func Listener(l net.Listener, newID func() string) net.Listener { return problemListener{l, newID} }

type problemListener struct {
	net.Listener
	newID func() string
}

// Accept implements net.Listener.
func (l problemListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
		return &problemConn{tcp, l.newID}, nil
	}
	return conn, err
}

// problemConn replaces net/http's own errors. It embeds the TCP connection because net/http
// uses its other methods.
type problemConn struct {
	*net.TCPConn
	newID func() string
}

// Write implements net.Conn. net/http writes each of its own errors with a single call.
func (c *problemConn) Write(p []byte) (int, error) {
	status := ownError(p)
	if status == 0 {
		return c.TCPConn.Write(p)
	}
	if _, err := c.TCPConn.Write(rawProblem(status, c.newID())); err != nil {
		return 0, err
	}
	return len(p), nil
}

// The headers of net/http's own errors, and the start of its 417 response.
var (
	ownHeader   = []byte("\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n")
	expectation = []byte("HTTP/1.1 417 ")
)

// ownError returns the status if p is an error written by net/http itself, and 0 otherwise.
func ownError(p []byte) int {
	if bytes.HasPrefix(p, expectation) {
		return http.StatusExpectationFailed
	}
	first, rest, ok := bytes.Cut(p, []byte("\r\n"))
	if !ok || !bytes.HasPrefix(first, []byte("HTTP/1.1 ")) || len(first) < 12 || !bytes.HasPrefix(append([]byte("\r\n"), rest...), ownHeader) {
		return 0
	}
	status, err := strconv.Atoi(string(first[9:12]))
	if err != nil || status < http.StatusBadRequest {
		return 0
	}
	return status
}

// ownErrors describes net/http's own errors. Other statuses mean malformed requests.
var ownErrors = map[int]struct{ code, detail string }{
	http.StatusExpectationFailed:           {"EXPECTATION_FAILED", "unsupported Expect header, want 100-continue or none"},
	http.StatusRequestHeaderFieldsTooLarge: {"HEADERS_TOO_LARGE", "the request's header is too large"},
	http.StatusNotImplemented:              {"NOT_IMPLEMENTED", "unsupported transfer encoding, want chunked or none"},
	http.StatusHTTPVersionNotSupported:     {"VERSION_NOT_SUPPORTED", "unsupported HTTP version, want 1.1"},
}

// rawProblem returns a complete response with the problem for a status.
func rawProblem(status int, id string) []byte {
	own, known := ownErrors[status]
	if !known {
		own.code, own.detail = string(fault.InvalidRequest), "malformed HTTP request"
	}
	body, err := json.Marshal(contract.Problem{
		Type: problemURN(own.code), Title: http.StatusText(status), Status: status, Detail: own.detail, Code: own.code, CorrelationID: id,
	})
	if err != nil { // cannot fail: a struct of strings and numbers
		body = []byte(`{}`)
	}
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nCache-Control: no-store\r\n"+
		"X-Content-Type-Options: nosniff\r\nX-Correlation-Id: %s\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), problemType, len(body), id, body)
}
