package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/twin/proof"
)

// impostor is a server that records the credentials that it receives. It forwards challenges to
// another server if it knows one.
type impostor struct {
	mu      sync.Mutex
	got     []string
	forward http.Handler
}

func (i *impostor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.forward != nil && r.URL.Path == proof.Path {
		i.forward.ServeHTTP(w, r)
		return
	}
	if given := r.Header.Get("Authorization"); given != "" {
		i.got = append(i.got, strings.TrimPrefix(given, "Bearer "))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"tasks":[]}`))
}

// sent returns the credentials since the last call.
func (i *impostor) sent() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	got := i.got
	i.got = nil
	return got
}

// at serves the impostor at the address.
func (i *impostor) at(t *testing.T, address string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: i}} //nolint:gosec // G112: a server on loopback for a test
	server.Start()
	t.Cleanup(server.Close)
}

// TestFoundTokenIsNotSentToAnImpostor kills the server of a folder. Another program takes its
// address. It answers like the server of another folder, or forwards challenges to the folder's
// next server on another port. The client sends it only a token that the user gives.
func TestFoundTokenIsNotSentToAnImpostor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startWith(t, dir, []string{"AUTH_TOKEN=token-of-the-test"}, "dev", "--json", "--addr", "127.0.0.1:0")
	var at struct{ URL, TokenFile string }
	if err := json.Unmarshal([]byte(server.stdout.next(t, "{")), &at); err != nil {
		t.Fatal(err)
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	server.exit(t)
	other := &impostor{}
	other.at(t, strings.TrimPrefix(at.URL, "http://"))
	refused := func(name string, env []string) {
		t.Helper()
		for _, args := range [][]string{{"runs"}, {"events", "tail"}, {"run", "exec:/bin/true"}, {"logs", "x", "--follow"}} {
			got := startWith(t, dir, env, append(args, "--url", at.URL)...)
			if code := got.exit(t); code != 3 || !strings.Contains(got.stderr.String(), "the folder's token was not sent") || !strings.Contains(got.stderr.String(), "--token-file") {
				t.Errorf("%s: %v: got exit code %d and %s, want 3 and what to do", name, args, code, got.stderr)
			}
			if sent := other.sent(); len(sent) > 0 {
				t.Errorf("%s: %v: got the credentials %q sent", name, args, sent)
			}
		}
	}
	refused("a dead server", []string{"HTTP_PROXY=" + at.URL, "http_proxy=" + at.URL, "ALL_PROXY=" + at.URL})
	text, err := os.ReadFile(at.TokenFile)
	if err != nil {
		t.Fatal(err)
	}
	given := filepath.Join(t.TempDir(), "given")
	write(t, filepath.Dir(given), "given", "a-given-token-of-16\n")
	for _, args := range [][]string{{"runs", "--url", at.URL, "--token-file", given}, {"runs", "--url", at.URL}} {
		env := []string{"SORTIE_TOKEN=a-given-token-of-16"}
		if len(args) > 3 {
			env = []string{"SORTIE_TOKEN=" + strings.TrimSpace(string(text))} // the flag comes first
		}
		startWith(t, dir, env, args...).exit(t)
		if sent := other.sent(); len(sent) != 1 || sent[0] != "a-given-token-of-16" {
			t.Errorf("%v: got %q sent, want the token that was given", args, sent)
		}
	}
	if got := startWith(t, dir, nil, "runs", "--url", at.URL, "--token-file", filepath.Join(dir, "none")); got.exit(t) != 2 {
		t.Errorf("a missing file: got %s, want a usage error", got.stderr)
	}
	next := startWith(t, dir, []string{"AUTH_TOKEN=token-of-the-test"}, "dev", "--json", "--addr", "127.0.0.1:0")
	var moved struct{ URL string }
	if err := json.Unmarshal([]byte(next.stdout.next(t, "{")), &moved); err != nil || moved.URL == at.URL {
		t.Fatalf("got the address %s again, %v, want another one", moved.URL, err)
	}
	target, err := url.Parse(moved.URL)
	if err != nil {
		t.Fatal(err)
	}
	other.mu.Lock()
	other.forward = httputil.NewSingleHostReverseProxy(target)
	other.mu.Unlock()
	if got := start(t, dir, "runs", "--url", moved.URL); got.exit(t) != 0 {
		t.Errorf("the next server: got %s, want the list", got.stderr)
	}
	if got := start(t, dir, "runs", "--url", at.URL); got.exit(t) != 0 || len(other.sent()) > 0 {
		t.Errorf("the address of the server before: got %s, want a call without a token", got.stderr)
	}
}
