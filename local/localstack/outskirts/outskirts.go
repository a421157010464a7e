// Package outskirts is what stands around a deployment in LocalStack: the
// Machines API that its functions call, whose machines are processes of this
// host, and the sample collection that workers read.
//
// A deployment is told both addresses before anybody listens there. What ends
// with Stop is all: the machines and their folder's use, both listeners.
package outskirts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sortie-dev/sortie/local/collection"
	"github.com/sortie-dev/sortie/local/flymachines"
	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// App is where the deployed functions make their machines, Image what they ask
// for; the defaults of both.
const (
	App   = "arke-mods-export-worker"
	Image = "registry.fly.io/arke-mods-export-worker:latest"
)

// Config is what there is to say.
type Config struct {
	// Machines and Source are the addresses to listen on, as host:port.
	Machines, Source string
	// Token is what the Machines API asks for.
	Token string
	// Dir is the machines' folder.
	Dir string
	// Worker is the program of the worker's image and its first arguments,
	// Supervisor the program and arguments that keep a machine.
	Worker, Supervisor []string
	Clock              orchestrator.Clock
	Log                *slog.Logger
}

// Outskirts are running. Start makes them.
type Outskirts struct {
	machines *flymachines.Server
	servers  []*http.Server
	serving  sync.WaitGroup
}

// Start serves both. What was begun when it fails is stopped again.
func Start(ctx context.Context, c Config) (*Outskirts, error) {
	machines, err := flymachines.Open(flymachines.Config{
		Dir: c.Dir, Token: c.Token, Apps: []string{App}, Images: map[string][]string{Image: c.Worker},
		Starter: flymachines.Processes{Command: c.Supervisor, Clock: c.Clock}, Clock: c.Clock, Log: c.Log, KeepMost: 10_000,
	})
	if err != nil {
		return nil, err
	}
	o := &Outskirts{machines: machines}
	for _, each := range []struct {
		what, addr string
		handler    http.Handler
	}{
		{"the Machines API", c.Machines, machines},
		{"the sample collection", c.Source, collection.Sample().Handler(c.Clock)},
	} {
		listener, err := net.Listen("tcp", each.addr)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot serve %s: %w", each.what, err), o.Stop(ctx))
		}
		server := &http.Server{Handler: each.handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn)}
		o.servers = append(o.servers, server)
		o.serving.Go(func() {
			if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
				c.Log.Error("a server has ended", "server", each.what, "error", err)
			}
		})
	}
	return o, nil
}

// Stop ends the machines, with their grace or, when ctx ends, at once, and then
// both servers.
func (o *Outskirts) Stop(ctx context.Context) error {
	failed := []error{o.machines.Stop(ctx)}
	for _, server := range o.servers {
		failed = append(failed, server.Close())
	}
	o.serving.Wait()
	return errors.Join(failed...)
}
