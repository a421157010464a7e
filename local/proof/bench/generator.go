package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/local/proof/engines"
	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
)

// generator is an inference server without a model.
type generator struct {
	server *httptest.Server
	// ended receives the time at which a generation ended or its client disconnected.
	ended chan time.Time
}

// startGenerator starts a generator with the protocol of an engine that needs every per token; 0
// means no delay.
func startGenerator(kind platform.EngineKind, every time.Duration, slots int) *generator {
	mock := mockengine.New(mockengine.Config{Clock: clock.System{}, Slots: slots, TokenEvery: every})
	g := &generator{ended: make(chan time.Time, 10000)}
	protocol := engines.Handler(kind, mock)
	g.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			context.AfterFunc(r.Context(), func() { g.ended <- time.Now() })
		}
		protocol.ServeHTTP(w, r)
	}))
	return g
}

func (g *generator) url() string { return g.server.URL }

func (g *generator) close() {
	g.server.CloseClientConnections()
	g.server.Close()
}

// serveProxy runs Go's reverse proxy in front of a server. It prints its address.
func serveProxy(to string) int {
	target, err := url.Parse(to)
	if err != nil {
		return failed(err)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return failed(err)
	}
	fmt.Println(listener.Addr())
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1,
		ErrorLog: log.New(io.Discard, "", 0), // the measurement sees what fails
	}
	server := &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}
	return failed(server.Serve(listener))
}
