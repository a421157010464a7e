// Package engines serves the HTTP protocols of the inference servers llama-server, vLLM, TGI
// and Triton, and of services with OpenAI's API, without a model. Paths, events, errors and failures are as observed on the real
// servers, or for TGI as read in its router's source. A mock engine generates the answers.
package engines

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// Handler serves the protocol of the engine kind with the answers of the mock engine.
func Handler(kind platform.EngineKind, of *mockengine.Engine) http.Handler {
	s := &server{kind: kind, mock: of}
	mux := http.NewServeMux()
	switch kind {
	case platform.EngineLlamaCpp:
		s.openai(mux)
		mux.HandleFunc("GET /health", s.ready(`{"status":"ok"}`))
		mux.HandleFunc("GET /props", s.llamaProps)
		mux.HandleFunc("GET /v1/models", s.llamaModels)
		mux.HandleFunc("GET /slots", s.llamaSlots)
		mux.HandleFunc("GET /metrics", s.metrics("llamacpp:requests_processing %d\nllamacpp:requests_deferred 0\n"))
	case platform.EngineVLLM:
		s.openai(mux)
		mux.HandleFunc("GET /health", s.ready(""))
		mux.HandleFunc("GET /version", s.vllmVersion)
		mux.HandleFunc("GET /v1/models", s.vllmModels)
		mux.HandleFunc("GET /metrics", s.metrics("vllm:num_requests_running{engine=\"0\"} %d\nvllm:num_requests_waiting{engine=\"0\"} 0\nvllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n"))
	case platform.EngineOpenAI:
		s.openai(mux)
		mux.HandleFunc("GET /v1/models", s.ready(`{"object":"list","data":[]}`))
	case platform.EngineTGI:
		mux.HandleFunc("POST /generate_stream", s.tgiStream)
		mux.HandleFunc("GET /health", s.ready(""))
		mux.HandleFunc("GET /info", s.tgiInfo)
		mux.HandleFunc("GET /metrics", s.metrics("tgi_batch_current_size %d\ntgi_queue_size 0\n"))
	case platform.EngineTriton:
		mux.HandleFunc("POST /v2/models/{model}/generate_stream", s.tritonStream)
		mux.HandleFunc("GET /v2/health/ready", s.tritonReady)
		mux.HandleFunc("GET /v2", s.tritonServer)
		mux.HandleFunc("POST /v2/repository/index", s.tritonIndex)
		mux.HandleFunc("GET /metrics", s.metrics("nv_inference_request_success{model=\"mock\"} %d\nnv_inference_pending_request_count{model=\"mock\"} 0\n"))
	default:
		panic("engines: no protocol of " + string(kind))
	}
	return mux
}

// Keyed serves the handler to requests with one of the keys, and refuses others as OpenAI does: its
// answer repeats a part of the key.
func Keyed(handler http.Handler, valid func(key string) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !valid(key) {
			reply(w, http.StatusUnauthorized, fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`, "Incorrect API key provided: "+key+"."))
			return
		}
		handler.ServeHTTP(w, r)
	})
}

type server struct {
	kind platform.EngineKind
	mock *mockengine.Engine
}

// ready answers 200 with a body, or 503 while the model is loaded.
func (s *server) ready(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h, err := s.mock.Health(r.Context())
		switch {
		case err != nil || !h.Ready && s.kind == platform.EngineLlamaCpp:
			reply(w, http.StatusServiceUnavailable, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`)
		case !h.Ready:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			reply(w, http.StatusOK, body)
		}
	}
}

// metrics answers with format, in which it inserts the number of running requests.
func (s *server) metrics(format string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		load, err := s.mock.Load(r.Context())
		if err != nil {
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		fmt.Fprintf(w, format, *load.Running)
	}
}

// stream is the answer to a request for a completion.
type stream struct {
	w     http.ResponseWriter
	begun bool
}

// event writes the data of an event, after the header.
func (s *stream) event(data any) error {
	text, isText := data.(string)
	if !isText {
		encoded, err := json.Marshal(data)
		if err != nil {
			return err
		}
		text = string(encoded)
	}
	s.open()
	if _, err := fmt.Fprintf(s.w, "data: %s\n\n", text); err != nil {
		return err
	}
	return http.NewResponseController(s.w).Flush()
}

func (s *stream) open() {
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
}

// fail ends an answer that may have begun: with a broken connection, an error event, or a
// regular end without the final event. done is the text that the protocol sends at a regular
// end.
func (s *stream) fail(err error, errorEvent any, done string) {
	s.open()
	switch mockengine.Planned(err) {
	case mockengine.FailError:
		s.ignore(s.event(errorEvent))
	case mockengine.FailEarly:
	default:
		s.ignore(http.NewResponseController(s.w).Flush())
		panic(http.ErrAbortHandler)
	}
	if done != "" {
		s.ignore(s.event(done))
	}
}

// ignore drops the error of a write: the client has gone.
func (*stream) ignore(error) {}

// reply sends a JSON body.
func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprint(w, body) //nolint:gosec // G705: JSON for a client that is no browser
}

// answer sends a value as JSON.
func answer(w http.ResponseWriter, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	reply(w, http.StatusOK, string(body))
}

// message returns the message of a fault without its code.
func message(err error) string {
	return strings.ReplaceAll(fault.Of(err).Message, `"`, `'`)
}
