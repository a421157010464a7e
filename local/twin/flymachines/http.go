package flymachines

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
)

// apiError is an error in Fly's shape: a gRPC code and a text.
type apiError struct {
	status int
	text   string
	code   string // Fly's "status" field, if the error has one
}

// Error returns the text that the client receives.
func (e *apiError) Error() string { return e.text }

func refuse(status int, format string, args ...any) *apiError {
	return &apiError{status: status, text: fmt.Sprintf(format, args...)}
}

// mostBody is the largest accepted request body, in bytes.
const mostBody = 4 << 20

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Fly-Request-Id", s.newULID(s.cfg.Clock.Now())+"-local")
	if !s.authorized(r.Header.Get("Authorization")) {
		s.fail(w, r, refuse(http.StatusUnauthorized, "unauthorized"))
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostBody)
	s.routes.ServeHTTP(w, r)
}

func (s *Server) authorized(header string) bool {
	scheme, token, _ := strings.Cut(header, " ")
	if (scheme != "Bearer" && scheme != "FlyV1") || token == "" {
		return false
	}
	return s.cfg.Token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.cfg.Token)) == 1
}

// newRoutes returns the routes of the API, and those that Fly does not have: faults, and a
// machine's output.
func (s *Server) newRoutes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, h func(http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := h(w, r); err != nil {
				s.fail(w, r, err)
			}
		})
	}
	const machines, one = "/v1/apps/{app}/machines", "/v1/apps/{app}/machines/{id}"
	handle("POST "+machines, s.onApp(faults.Create, s.create))
	handle("GET "+machines, s.onApp(faults.List, s.list))
	handle("GET "+one, s.onMachine(faults.Get, s.get))
	handle("GET "+one+"/wait", s.onMachine(faults.Wait, s.wait))
	handle("GET "+one+"/events", s.onMachine(faults.Get, s.getEvents))
	handle("GET "+one+"/logs", s.onMachine("", s.getLogs))
	handle("POST "+one, s.onMachine(faults.Update, s.update))
	handle("POST "+one+"/start", s.onMachine(faults.Start, s.start))
	handle("POST "+one+"/stop", s.onMachine(faults.Stop, s.stop))
	handle("POST "+one+"/restart", s.onMachine(faults.Restart, s.restart))
	handle("POST "+one+"/signal", s.onMachine(faults.Signal, s.postSignal))
	handle("DELETE "+one, s.onMachine(faults.Destroy, s.remove))
	handle("GET "+one+"/metadata", s.onMachine(faults.Metadata, s.getMetadata))
	handle("POST "+one+"/metadata/{key}", s.onMachine(faults.Metadata, s.setMetadata))
	handle("DELETE "+one+"/metadata/{key}", s.onMachine(faults.Metadata, s.setMetadata))

	handle("GET /v1/apps", s.listApps)
	handle("POST /v1/apps", s.createApp)
	handle("GET /v1/apps/{app}", s.getApp)
	handle("GET /v1/platform/regions", s.getRegions)
	handle("GET /_local/faults", s.getFaults)
	handle("PUT /_local/faults", s.putFaults)
	handle("DELETE /_local/faults", s.putFaults)
	handle("/", func(http.ResponseWriter, *http.Request) error {
		return refuse(http.StatusNotFound, "not_found: this server has no such endpoint")
	})
	return mux
}

// fail answers with an error. It logs internal errors and hides them from the client.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	answer, ok := errors.AsType[*apiError](err)
	switch {
	case ok:
	case errors.Is(err, errClosing):
		answer = refuse(http.StatusServiceUnavailable, "unavailable: %v", errClosing)
	default:
		s.log.Error("a request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		answer = refuse(http.StatusInternalServerError, "internal: something went wrong; see the server's log")
	}
	body := map[string]string{"error": answer.text}
	if answer.code != "" {
		body["status"] = answer.code
	}
	s.answer(w, answer.status, body)
}

func (s *Server) answer(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		s.log.Error("cannot encode an answer", "error", err)
		status, data = http.StatusInternalServerError, []byte(`{"error":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if _, err := w.Write(data); err != nil {
		s.log.Debug("a client left before its answer", "error", err)
	}
}

// ok answers an action that has no result.
func (s *Server) ok(w http.ResponseWriter) error {
	s.answer(w, http.StatusOK, map[string]bool{"ok": true})
	return nil
}

// readBody decodes a JSON body. An empty body leaves v unchanged.
func readBody(r *http.Request, v any) error {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return refuse(http.StatusBadRequest, "invalid_argument: cannot read the body: %v", err)
	}
	if len(data) == 0 {
		return nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return refuse(http.StatusBadRequest, "invalid_argument: %v", err)
	}
	return nil
}
