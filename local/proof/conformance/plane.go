package conformance

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/contract"
)

// Call is one request of a worker.
type Call struct {
	At     time.Time
	Method string
	Path   string
	// Endpoint is started, heartbeat, completed or put; empty for anything else.
	Endpoint string
	Header   http.Header
	Body     []byte
	// Fields is the body as JSON; nil where it is no object.
	Fields map[string]any
	// Status is the answer's; 0 where there was none.
	Status int
	// Token is the one that was due when the call came in.
	Token string
}

// Answer is what a call gets.
type Answer struct {
	Status int
	// Body is written as JSON. Members that no worker knows are added.
	Body map[string]any
	// Drop closes the connection without an answer.
	Drop bool
}

// Plane plays the control plane and the bucket for one worker.
type Plane struct {
	clock  clock.Clock
	server *httptest.Server
	// decide gives the answer to the n-th call of an endpoint, from 0; nil is the
	// good one. It is called by one goroutine at a time.
	decide func(c *Call, n int) *Answer

	mu       sync.Mutex
	envelope contract.TaskEnvelope
	token    string
	calls    []*Call
	objects  map[string][]byte
	secrets  []string
}

const maxBody = 8 << 20

// NewPlane starts one on a port of its own, with an envelope whose addresses are
// its own. decide may be nil. Close is due.
func NewPlane(clock clock.Clock, envelope contract.TaskEnvelope, decide func(c *Call, n int) *Answer) (*Plane, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot play the control plane: %w", err)
	}
	p := &Plane{clock: clock, decide: decide, objects: map[string][]byte{}}
	p.server = &httptest.Server{
		Listener: listener,
		Config:   &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute},
	}
	address := "http://" + listener.Addr().String()
	signature := p.secret("signature-")
	p.token = p.secret("token.")
	envelope.CallbackBaseURL = address + "/edge"
	envelope.TaskToken, envelope.TokenExpiresAt = p.token, clock.Now().Add(time.Hour)
	for _, to := range []struct {
		upload **contract.Upload
		key    string
	}{
		{&envelope.Output, "exports/" + envelope.TaskID + "/output"}, {&envelope.Log, "logs/" + envelope.TaskID},
	} {
		*to.upload = &contract.Upload{
			URL: address + "/bucket/" + to.key + "?X-Amz-Signature=" + signature, Key: to.key, ExpiresAt: clock.Now().Add(time.Hour),
		}
	}
	p.envelope = envelope
	p.server.Start()
	return p, nil
}

// Close ends it.
func (p *Plane) Close() { p.server.CloseClientConnections(); p.server.Close() }

// Variable is the environment entry that starts a worker.
func (p *Plane) Variable() (string, error) {
	var members map[string]any
	text, err := json.Marshal(p.envelope)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	members["memberOfANewerVersion"] = map[string]any{"nobody": "knows"}
	if text, err2 := json.Marshal(members); err == nil && err2 == nil {
		return contract.EnvelopeVariable + "=" + string(text), nil
	}
	return "", errors.New("the envelope cannot be written")
}

// Envelope is what the worker is given.
func (p *Plane) Envelope() contract.TaskEnvelope { return p.envelope }

// Renew makes a new token and gives the members that tell it. The old one is no
// longer good for calls that come in later.
func (p *Plane) Renew() map[string]any {
	token := p.secret("renewed.")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token = token
	return map[string]any{"taskToken": token, "tokenExpiresAt": p.clock.Now().Add(time.Hour).Format(time.RFC3339)}
}

// Calls gives what came in so far, in order.
func (p *Plane) Calls() []*Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*Call(nil), p.calls...)
}

// Object gives what was put under a key.
func (p *Plane) Object(key string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, ok := p.objects[key]
	return body, ok
}

func (p *Plane) secret(prefix string) string {
	s := prefix + strings.ToLower(rand.Text())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secrets = append(p.secrets, s)
	return s
}

func (p *Plane) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "the body broke off", http.StatusBadRequest)
		return
	}
	p.mu.Lock()
	c := &Call{
		At: p.clock.Now(), Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(),
		Body: body, Endpoint: p.endpoint(r), Token: p.token,
	}
	_ = json.Unmarshal(body, &c.Fields)
	n := 0
	for _, before := range p.calls {
		if before.Endpoint == c.Endpoint {
			n++
		}
	}
	p.calls = append(p.calls, c)
	p.mu.Unlock()
	a := p.answer(c, n)
	p.mu.Lock()
	c.Status = a.Status
	p.mu.Unlock()
	if a.Drop {
		panic(http.ErrAbortHandler) // closes the connection
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.Status)
	if a.Body != nil {
		a.Body["serverTime"] = p.clock.Now().UTC().Format(time.RFC3339Nano)
		a.Body["memberOfANewerVersion"] = []int{1}
		if text, err := json.Marshal(a.Body); err == nil {
			_, _ = w.Write(text)
		}
	}
}

// endpoint names what a request is for.
func (p *Plane) endpoint(r *http.Request) string {
	if key, ok := strings.CutPrefix(r.URL.Path, "/bucket/"); ok && r.Method == http.MethodPut &&
		(key == p.envelope.Output.Key || key == p.envelope.Log.Key) {
		return "put"
	}
	for _, name := range []string{"started", "heartbeat", "completed"} {
		if r.Method == http.MethodPost && r.URL.Path == "/edge/v1/tasks/"+p.envelope.TaskID+"/"+name {
			return name
		}
	}
	return ""
}

// answer is the decided one, else the good one. A wrong token gets 401 whatever
// was decided.
func (p *Plane) answer(c *Call, n int) Answer {
	switch {
	case c.Endpoint == "":
		return Answer{Status: http.StatusNotFound, Body: map[string]any{"error": "not_found"}}
	case c.Endpoint == "put":
		p.mu.Lock()
		p.objects[strings.TrimPrefix(strings.SplitN(c.Path, "?", 2)[0], "/bucket/")] = c.Body
		p.mu.Unlock()
		return Answer{Status: http.StatusOK}
	case c.Header.Get("Authorization") != "Bearer "+c.Token:
		if c.Endpoint == "completed" && p.decide != nil {
			p.decide(c, n) // the scenario has to know that the worker is done
		}
		return Answer{Status: http.StatusUnauthorized, Body: map[string]any{"error": "unauthenticated"}}
	}
	if p.decide != nil {
		if a := p.decide(c, n); a != nil {
			return *a
		}
	}
	body := map[string]any{"acknowledged": true}
	switch c.Endpoint {
	case "heartbeat":
		body["shouldCancel"] = false
	case "completed":
		body["finalState"] = c.Fields["outcome"]
	}
	return Answer{Status: http.StatusOK, Body: body}
}
