package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/sortie-dev/sortie/events/eventtype"
	functionstream "github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// serveStreams serves a stream of events in SQLite, and appends to it on request.
func serveStreams() (code int) {
	if err := streamServer(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		return 1
	}
	return 0
}

func streamServer(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	db, err := sqlite.Open(ctx, filepath.Join(folder, "sortie.db"))
	if err != nil {
		return err
	}
	feed, err := sqlite.NewFeed(ctx, db, sqlite.FeedConfig{Clock: clock.System{}, Retention: time.Hour})
	if err != nil {
		return err
	}
	w, err := streamtest.New(feed, access.Default, clock.System{})
	if err != nil {
		return err
	}
	streams := stream.New(feed, clock.System{}, slog.New(slog.DiscardHandler), rand.Float64, stream.Config{Life: time.Hour, Readers: 2 * streamReaders})
	api, err := httpkit.New(httpkit.Config{
		Loopback: true, Local: port.Identity{Tenant: access.Default, Scopes: access.Scopes()},
		Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), NewID: uuid.NewString,
	}, functionstream.Routes(streams, clock.System{})...)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.HandleFunc("POST /append", func(answer http.ResponseWriter, r *http.Request) {
		if err := appendTo(r, w); err != nil {
			http.Error(answer, err.Error(), http.StatusInternalServerError)
			return
		}
		answer.WriteHeader(http.StatusNoContent)
	})
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}

func appendTo(r *http.Request, w *streamtest.Writer) error {
	n, err := strconv.Atoi(r.URL.Query().Get("n"))
	if err != nil {
		return err
	}
	const batch = 100
	for types := range slices.Chunk(slices.Repeat([]eventtype.Type{eventtype.Queued}, n), batch) {
		if err := w.Add(r.Context(), false, types...); err != nil {
			return err
		}
	}
	return nil
}
