package container_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
)

// engine is the part of the Docker Engine API that the Runner uses, in process. Its containers
// are goroutines of porttest.RunnerProgram. The same suite runs on a real engine (make
// test-containers). This one injects faults that a real engine does not have.
type engine struct {
	t    *testing.T
	mu   sync.Mutex
	next int
	all  []*guest
	// images are the images of the engine, remote those of its registry.
	images, remote []string
	// log is the output of every program.
	log []byte
	// frame is the size of a frame of the log, in bytes.
	frame int
	// failStart refuses the next start with an internal error.
	failStart bool
	// oom ends the next program as the kernel does.
	oom      bool
	programs sync.WaitGroup
}

// guest is a container of the fake engine.
type guest struct {
	id, name          string
	request           createRequest
	state             string
	code              int
	oom               bool
	created, finished time.Time
	terminated        chan struct{}
	killed            chan struct{}
}

type createRequest struct {
	Image      string
	Env, Cmd   []string
	Labels     map[string]string
	HostConfig map[string]any
}

func newEngine(t *testing.T) *engine {
	e := &engine{t: t, images: []string{"docker.io/library/program:v1"}, log: []byte("one\ntwo\n"), frame: 4}
	t.Cleanup(func() {
		e.mu.Lock()
		for _, g := range e.all {
			g.signal("SIGKILL")
		}
		e.mu.Unlock()
		e.programs.Wait()
	})
	return e
}

func (e *engine) serve() string {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"NCPU": 2, "SwapLimit": true, "InitBinary": "docker-init"})
	})
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, map[string]any{}) })
	mux.HandleFunc("GET /networks/bridge", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"IPAM": map[string]any{"Config": []any{map[string]any{"Subnet": "172.17.0.0/16", "Gateway": "172.17.0.1"}}}})
	})
	mux.HandleFunc("GET /images/{name...}", e.image)
	mux.HandleFunc("POST /images/create", e.pull)
	mux.HandleFunc("POST /containers/create", e.create)
	mux.HandleFunc("GET /containers/json", e.list)
	mux.HandleFunc("GET /containers/{id}/json", e.on(func(w http.ResponseWriter, _ *http.Request, g *guest) { answer(w, http.StatusOK, g.inspected()) }))
	mux.HandleFunc("POST /containers/{id}/start", e.on(e.start))
	mux.HandleFunc("POST /containers/{id}/kill", e.on(func(w http.ResponseWriter, r *http.Request, g *guest) {
		if g.state != "running" {
			refuse(w, http.StatusConflict, "container %s is not running", g.id)
			return
		}
		g.signal(r.URL.Query().Get("signal"))
		w.WriteHeader(http.StatusNoContent)
	}))
	mux.HandleFunc("POST /containers/{id}/rename", e.on(func(w http.ResponseWriter, r *http.Request, g *guest) {
		g.name = r.URL.Query().Get("name")
		w.WriteHeader(http.StatusNoContent)
	}))
	mux.HandleFunc("GET /containers/{id}/logs", e.on(func(w http.ResponseWriter, _ *http.Request, _ *guest) {
		for i := 0; i < len(e.log); i += e.frame { // frames of the standard output and error in turn
			text := e.log[i:min(i+e.frame, len(e.log))]
			frame := binary.BigEndian.AppendUint32([]byte{byte(1 + i/e.frame%2), 0, 0, 0}, uint32(len(text)))
			_, _ = w.Write(append(frame, text...))
		}
	}))
	mux.HandleFunc("DELETE /containers/{id}", e.on(func(w http.ResponseWriter, _ *http.Request, g *guest) {
		e.remove(g.id)
		w.WriteHeader(http.StatusNoContent)
	}))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		if r.URL.Path == "/_ping" {
			return
		}
		if !strings.HasPrefix(r.URL.Path, "/v1.41/") {
			e.t.Errorf("got a request to %s, want the negotiated version", r.URL.Path)
		}
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/v1.41")
		mux.ServeHTTP(w, r)
	}))
	e.t.Cleanup(web.Close)
	return web.URL
}

// remove kills and removes a container. The caller holds the lock.
func (e *engine) remove(id string) {
	e.all = slices.DeleteFunc(e.all, func(g *guest) bool {
		if g.id == id {
			g.signal("SIGKILL")
		}
		return g.id == id
	})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, status int, format string, args ...any) {
	answer(w, status, map[string]string{"message": fmt.Sprintf(format, args...)})
}

// on calls a handler with the container of the path, by its id or name.
func (e *engine) on(handle func(http.ResponseWriter, *http.Request, *guest)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		id := r.PathValue("id")
		for _, g := range e.all {
			if g.id == id || g.name == id {
				handle(w, r, g)
				return
			}
		}
		refuse(w, http.StatusNotFound, "No such container: %s", id)
	}
}

func (e *engine) image(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := strings.TrimSuffix(r.PathValue("name"), "/json")
	if !slices.Contains(e.images, name) {
		refuse(w, http.StatusNotFound, "No such image: %s", name)
		return
	}
	answer(w, http.StatusOK, map[string]any{"Id": "sha256:1"})
}

// pull responds with status 200 before the registry has responded, as an engine does.
func (e *engine) pull(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := r.URL.Query().Get("fromImage") + ":" + r.URL.Query().Get("tag")
	switch {
	case strings.Contains(name, "limited"):
		answer(w, http.StatusOK, map[string]any{"errorDetail": map[string]any{"message": "toomanyrequests: You have reached your pull rate limit"}, "error": "toomanyrequests"})
	case !slices.Contains(e.remote, name):
		answer(w, http.StatusOK, map[string]any{"errorDetail": map[string]any{"message": "manifest for " + name + " not found"}, "error": "not found"})
	default:
		e.images = append(e.images, name)
		answer(w, http.StatusOK, map[string]any{"status": "Downloaded newer image"})
	}
}

func (e *engine) create(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	name := r.URL.Query().Get("name")
	for _, g := range e.all {
		if g.name == name {
			refuse(w, http.StatusConflict, "Conflict. The container name %q is already in use by container %q.", "/"+name, g.id)
			return
		}
	}
	var request createRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	e.next++
	g := &guest{
		id: fmt.Sprintf("%064x", e.next), name: name, request: request, state: "created", created: time.Now().UTC(),
		terminated: make(chan struct{}), killed: make(chan struct{}),
	}
	e.all = append(e.all, g)
	answer(w, http.StatusCreated, map[string]any{"Id": g.id, "Warnings": []string{}})
}

func (e *engine) start(w http.ResponseWriter, _ *http.Request, g *guest) {
	if g.state != "created" {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if slices.Contains(g.request.Cmd, "missing") {
		refuse(w, http.StatusBadRequest, "OCI runtime create failed: exec: \"missing\": executable file not found in $PATH")
		return
	}
	if e.failStart {
		e.failStart = false
		refuse(w, http.StatusInternalServerError, "the engine is restarting")
		return
	}
	g.state = "running"
	oom := e.oom
	e.oom = false
	e.programs.Go(func() {
		code := porttest.RunnerProgram(g.env, g.terminated, g.killed)
		if oom {
			code = 137
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		g.state, g.code, g.oom, g.finished = "exited", code, oom, time.Now().UTC()
	})
	w.WriteHeader(http.StatusNoContent)
}

// list answers with the containers that have the label of the filter.
func (e *engine) list(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var filters struct{ Label map[string]bool }
	if err := json.Unmarshal([]byte(r.URL.Query().Get("filters")), &filters); err != nil {
		refuse(w, http.StatusBadRequest, "%v", err)
		return
	}
	list := []any{}
	for _, g := range e.all {
		for label := range filters.Label {
			if key, value, _ := strings.Cut(label, "="); g.request.Labels[key] == value {
				list = append(list, map[string]any{"Id": g.id, "Names": []string{"/" + g.name}, "Labels": g.request.Labels, "State": g.state, "Created": g.created.Unix()})
			}
		}
	}
	answer(w, http.StatusOK, list)
}

func (g *guest) env(key string) string {
	for _, pair := range g.request.Env {
		if name, value, _ := strings.Cut(pair, "="); name == key {
			return value
		}
	}
	return ""
}

func (g *guest) signal(name string) {
	to := g.terminated
	if name == "SIGKILL" {
		to = g.killed
	}
	select {
	case <-to:
	default:
		close(to)
	}
}

func (g *guest) inspected() map[string]any {
	return map[string]any{
		"Id": g.id, "Name": "/" + g.name, "Created": g.created.Format(time.RFC3339Nano),
		"State": map[string]any{
			"Status": g.state, "Running": g.state == "running", "ExitCode": g.code, "OOMKilled": g.oom,
			"StartedAt": g.created.Format(time.RFC3339Nano), "FinishedAt": g.finished.Format(time.RFC3339Nano),
		},
		"Config":          map[string]any{"Labels": g.request.Labels, "Image": g.request.Image},
		"NetworkSettings": map[string]any{"Networks": map[string]any{"a": map[string]any{"IPAddress": ""}, "b": map[string]any{"IPAddress": "172.17.0.9"}}},
	}
}
