package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// browser follows events with a page in Chromium while the server is stopped and killed.
func browser(ctx context.Context, k *kit) error {
	chromium, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		return missing{fmt.Errorf("%w; apt install chromium-headless-shell", err)}
	}
	s, err := k.start(ctx, "browser", "")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	ticket, err := s.ticket(ctx)
	if err != nil {
		return err
	}
	received, lines := io.Pipe()
	front, err := k.front(s.URL, lines)
	if err != nil {
		return err
	}
	defer front.CloseClientConnections()
	defer func() { _ = received.Close() }() // it never fails
	query := url.Values{"after": {"earliest"}, "as": {"message"}, "ticket": {ticket}}
	if _, err := k.spawn(ctx, []string{
		chromium, "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--user-data-dir=" + filepath.Join(k.work, "chromium"),
		front.URL + "/?" + query.Encode(),
	}); err != nil {
		return err
	}
	return k.cut(ctx, s, []*reader{{Reader: bufio.NewReader(received)}}, []os.Signal{syscall.SIGINT, syscall.SIGKILL})
}

// front serves the page and the API with one origin. It writes the events that the page
// receives to lines.
func (k *kit) front(api string, lines io.Writer) (*httptest.Server, error) {
	target, err := url.Parse(api)
	if err != nil {
		return nil, fmt.Errorf("cannot read the server's address: %w", err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, 0),
		// A browser reconnects only after a network error.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	mux := http.NewServeMux()
	mux.Handle("GET /v1/", proxy)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, k.config("testdata/clients/page.html"))
	})
	mux.HandleFunc("POST /received", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(lines, r.Body) // the reader detects missing lines
	})
	return httptest.NewServer(mux), nil
}
