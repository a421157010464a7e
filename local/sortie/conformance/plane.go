package conformance

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// endpointCallback is the endpoint of the export contract's CALLBACK_URL.
const endpointCallback = "callback"

// bucketName is the bucket of a worker that has credentials.
const bucketName = limit.UploadsBucket

// Call is one request of a worker.
type Call struct {
	At     time.Time
	Method string
	Path   string
	// Endpoint is started, heartbeat, logs, completed, callback or put; empty for
	// anything else.
	Endpoint string
	Header   http.Header
	Body     []byte
	// Fields is the body; nil if it is not a JSON object.
	Fields map[string]any
	// Status is the status of the answer; 0 without an answer.
	Status int
	// Token is the valid token at the arrival of the call.
	Token string
}

// Answer is the answer to a call.
type Answer struct {
	Status int
	// Body is sent as JSON, with additional members that a worker must ignore.
	Body map[string]any
	// Drop closes the connection without an answer.
	Drop bool
}

// Plane simulates the control plane, the bucket and the entity API for one worker. It is safe
// for concurrent use.
type Plane struct {
	clock  clock.Clock
	server *httptest.Server
	// special returns the answer to the n-th call of an endpoint, from 0; nil means the usual
	// one.
	special func(c *Call, n int) *Answer
	source  http.Handler

	// address is the base URL. key and keyID are the credentials of the bucket.
	address, callbackURL, keyID, key string

	mu       sync.Mutex
	envelope contract.TaskEnvelope
	token    string
	calls    []*Call
	objects  map[string][]byte
	secrets  []string
}

const maxBody = 8 << 20

// NewPlane starts a Plane on a free port and sets the URLs and the token of the envelope.
// answer, which may be nil, returns the answer to the n-th call of an endpoint, from 0, or nil
// for the usual one. The caller must call Close.
func NewPlane(clock clock.Clock, envelope contract.TaskEnvelope, answer func(c *Call, n int) *Answer) (*Plane, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("cannot listen for the worker: %w", err)
	}
	p := &Plane{clock: clock, special: answer, source: http.StripPrefix("/source", samples.Sample().Handler(clock)), objects: map[string][]byte{}}
	p.server = &httptest.Server{
		Listener: listener,
		Config:   &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute},
	}
	address := "http://" + listener.Addr().String()
	p.address, p.keyID, p.key = address, "check-key-id", p.secret("bucket-key-")
	p.callbackURL = address + "/callback/" + url.PathEscape(envelope.TaskID) + "?token=" + p.secret("callback.")
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
	if envelope.TraceParent == "" {
		envelope.TraceParent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	}
	p.envelope = envelope
	p.server.Start()
	return p, nil
}

// Close stops the server and waits for the calls in flight.
func (p *Plane) Close() { p.server.CloseClientConnections(); p.server.Close() }

// Variable returns the environment entry with the envelope.
func (p *Plane) Variable() (string, error) {
	var members map[string]any
	text, err := json.Marshal(p.envelope)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	members["memberOfANewerVersion"] = map[string]any{"nested": true}
	if text, err2 := json.Marshal(members); err == nil && err2 == nil {
		return contract.EnvelopeVariable + "=" + string(text), nil
	}
	return "", errors.New("cannot encode the envelope")
}

// Envelope returns the envelope of the worker.
func (p *Plane) Envelope() contract.TaskEnvelope { return p.envelope }

// Renew creates a new token and returns the answer members that announce it. The old token
// remains valid.
func (p *Plane) Renew() map[string]any {
	token := p.secret("renewed.")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token = token
	return map[string]any{"taskToken": token, "tokenExpiresAt": p.clock.Now().Add(time.Hour).Format(time.RFC3339)}
}

// issued reports whether an Authorization header has a token of this plane.
func (p *Plane) issued(header string) bool {
	token, ok := strings.CutPrefix(header, "Bearer ")
	return ok && (token == p.envelope.TaskToken || token == p.newest())
}

func (p *Plane) newest() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.token
}

// Calls returns the calls so far, in order.
func (p *Plane) Calls() []*Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*Call(nil), p.calls...)
}

// Object returns the object that was stored under a key.
func (p *Plane) Object(key string) ([]byte, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	body, ok := p.objects[key]
	return body, ok
}

// Output returns the accepted output of a stream. An empty stream means both, in the order of
// arrival. A repeated chunk counts once.
func (p *Plane) Output(stream string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text strings.Builder
	taken := map[any]bool{}
	for _, c := range p.calls {
		if c.Endpoint != "logs" || c.Status != http.StatusOK || taken[c.Fields["sequence"]] || stream != "" && c.Fields["stream"] != stream {
			continue
		}
		taken[c.Fields["sequence"]] = true
		data, _ := c.Fields["data"].(string)
		content, err := base64.StdEncoding.DecodeString(data)
		if err == nil {
			text.Write(content)
		}
	}
	return text.String()
}

func (p *Plane) secret(prefix string) string {
	s := prefix + strings.ToLower(rand.Text())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secrets = append(p.secrets, s)
	return s
}

func (p *Plane) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/source/") {
		p.source.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, "truncated body", http.StatusBadRequest)
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

// endpoint names the endpoint of a request.
func (p *Plane) endpoint(r *http.Request) string {
	if key, ok := strings.CutPrefix(r.URL.Path, "/bucket/"); ok && r.Method == http.MethodPut &&
		(key == p.envelope.Output.Key || key == p.envelope.Log.Key) {
		return "put"
	}
	if strings.HasPrefix(r.URL.Path, "/s3/"+bucketName+"/") && r.Method == http.MethodPut {
		return "put"
	}
	if r.URL.RequestURI() == strings.TrimPrefix(p.callbackURL, p.address) {
		return endpointCallback
	}
	for _, name := range []string{"started", "heartbeat", "logs", "completed"} {
		if r.Method == http.MethodPost && r.URL.Path == "/edge/v1/tasks/"+p.envelope.TaskID+"/"+name {
			return name
		}
	}
	return ""
}

// answer returns the special answer, or else the usual one. A wrong token always gets 401.
func (p *Plane) answer(c *Call, n int) Answer {
	switch {
	case c.Endpoint == "":
		return Answer{Status: http.StatusNotFound, Body: map[string]any{"error": "not_found"}}
	case c.Endpoint == "put":
		p.mu.Lock()
		path, _, _ := strings.Cut(c.Path, "?")
		if unescaped, err := url.PathUnescape(path); err == nil {
			path = unescaped
		}
		p.objects[strings.TrimPrefix(strings.TrimPrefix(path, "/bucket/"), "/s3/"+bucketName+"/")] = c.Body
		p.mu.Unlock()
		return Answer{Status: http.StatusOK}
	case c.Endpoint != endpointCallback && !p.issued(c.Header.Get("Authorization")):
		if c.Endpoint == "completed" && p.special != nil {
			p.special(c, n) // the scenario has to know that the worker is done
		}
		return Answer{Status: http.StatusUnauthorized, Body: map[string]any{"error": "unauthenticated"}}
	}
	if p.special != nil {
		if a := p.special(c, n); a != nil {
			return *a
		}
	}
	body := map[string]any{"acknowledged": true}
	switch c.Endpoint {
	case "heartbeat":
		body["shouldCancel"] = false
	case "logs":
		body["shouldCancel"], body["followed"] = false, false
	case endpointCallback:
		body = map[string]any{"received": true}
	case "completed":
		body["finalState"] = c.Fields["outcome"]
	}
	return Answer{Status: http.StatusOK, Body: body}
}
