package proof_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sortie-dev/sortie/local/sortie/client"
	"github.com/sortie-dev/sortie/local/twin/proof"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

const token = "token-of-the-folder"

var key, otherKey = bytes.Repeat([]byte{1}, proof.KeySize), bytes.Repeat([]byte{2}, proof.KeySize)

// recorder is a server that records whether it receives the token.
type recorder struct {
	mu  sync.Mutex
	got []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text, _ := io.ReadAll(q.Body)
	r.got = append(r.got, q.Method+" "+q.URL.Path)
	for name, values := range q.Header {
		text = append(text, name+strings.Join(values, " ")...)
	}
	if strings.Contains(string(text)+q.URL.String(), token) {
		r.got = append(r.got, "token")
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"tasks":[]}`)
}

// took reports whether the server received the token.
func (r *recorder) took() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.got, "token")
}

func serve(t *testing.T, handler http.Handler) (address string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// list calls a server with a token. known is the key that the client has.
func list(t *testing.T, address string, known []byte) error {
	t.Helper()
	transport := proof.Transport(address, func() ([]byte, error) { return known, nil })
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(client.Config{URL: address, Token: token, Transport: transport, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Tasks(t.Context(), client.Page{Limit: 1})
	return err
}

// relayTo forwards challenges to another server and serves all other requests itself. If
// replace is true, it sets the address in the challenge to the address of the other server.
func relayTo(address string, replace bool, rest http.Handler) http.Handler {
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: address})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != proof.Path {
			rest.ServeHTTP(w, r)
			return
		}
		if query := r.URL.Query(); replace {
			query.Set("address", address)
			r.URL.RawQuery = query.Encode()
		}
		forward.ServeHTTP(w, r)
	})
}

// TestTokenIsSentToTheFoldersServerOnly runs each impostor at the address that the client
// calls.
func TestTokenIsSentToTheFoldersServerOnly(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		known []byte
		make  func(t *testing.T, seen http.Handler) http.Handler
		sent  bool
		says  string
	}{
		"the server":                      {key, func(_ *testing.T, seen http.Handler) http.Handler { return proof.Handler(key, seen) }, true, ""},
		"a program that takes everything": {key, func(_ *testing.T, seen http.Handler) http.Handler { return seen }, false, "key"},
		"a program without the route": {key, func(_ *testing.T, seen http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == proof.Path {
					http.NotFound(w, r)
					return
				}
				seen.ServeHTTP(w, r)
			})
		}, false, "404"},
		"a server of another folder": {key, func(_ *testing.T, seen http.Handler) http.Handler { return proof.Handler(otherKey, seen) }, false, "key"},
		"a folder without a key":     {nil, func(_ *testing.T, seen http.Handler) http.Handler { return proof.Handler(key, seen) }, false, "no key"},
		"a key of nothing":           {nil, func(_ *testing.T, seen http.Handler) http.Handler { return proof.Handler(nil, seen) }, false, "no key"},
		"a relay": {key, func(t *testing.T, seen http.Handler) http.Handler {
			return relayTo(serve(t, proof.Handler(key, http.NotFoundHandler())), false, seen)
		}, false, "403"},
		"a relay that changes the address": {key, func(t *testing.T, seen http.Handler) http.Handler {
			return relayTo(serve(t, proof.Handler(key, http.NotFoundHandler())), true, seen)
		}, false, "key"},
		"a replayed answer": {key, func(_ *testing.T, seen http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != proof.Path {
					seen.ServeHTTP(w, r)
					return
				}
				answer := httptest.NewRecorder() // the server's answer to another challenge for this address
				other := r.Clone(r.Context())
				query := other.URL.Query()
				query.Set("nonce", strings.Repeat("0", 2*proof.KeySize))
				other.URL.RawQuery = query.Encode()
				proof.Handler(key, nil).ServeHTTP(answer, other)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer.Body.String())
			})
		}, false, "key"},
		"a redirect of the challenge": {key, func(t *testing.T, _ http.Handler) http.Handler {
			return http.RedirectHandler("http://"+serve(t, proof.Handler(key, http.NotFoundHandler()))+proof.Path, http.StatusTemporaryRedirect)
		}, false, "307"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := &recorder{}
			err := list(t, serve(t, row.make(t, seen)), row.known)
			if seen.took() != row.sent {
				t.Fatalf("got the token sent: %v, want %v (%v)", seen.took(), row.sent, err)
			}
			wrong, ok := errors.AsType[*proof.Error](err)
			if ok == row.sent || ok && (!strings.Contains(wrong.Reason, row.says) || !strings.Contains(err.Error(), "was not sent")) {
				t.Errorf("got %v, want an error with %q: %v", err, row.says, !row.sent)
			}
		})
	}
}

// TestRelayOfTheConnectionIsRefused forwards whole connections to the server. The client dialed
// another address than the one at which the server was reached.
func TestRelayOfTheConnectionIsRefused(t *testing.T) {
	t.Parallel()
	seen := &recorder{}
	behind := serve(t, proof.Handler(key, seen))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go pipe(t.Context(), listener, behind)
	err = list(t, listener.Addr().String(), key)
	if _, ok := errors.AsType[*proof.Error](err); !ok || seen.took() {
		t.Errorf("got %v and the token sent: %v, want neither", err, seen.took())
	}
}

// pipe forwards each connection of the listener to another address.
func pipe(ctx context.Context, listener net.Listener, to string) {
	for {
		from, err := listener.Accept()
		if err != nil {
			return
		}
		onward, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
		if err != nil {
			_ = from.Close()
			return
		}
		for _, each := range [][2]net.Conn{{from, onward}, {onward, from}} {
			go func() {
				_, _ = io.Copy(each[0], each[1])
				_ = each[0].Close()
			}()
		}
	}
}

// TestEachConnectionIsProved replaces the server by an impostor while the client has an idle
// connection.
func TestEachConnectionIsProved(t *testing.T) {
	t.Parallel()
	seen, impostor := &recorder{}, &recorder{}
	server := httptest.NewServer(proof.Handler(key, seen))
	address := server.Listener.Addr().String()
	transport := proof.Transport(address, func() ([]byte, error) { return key, nil })
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(client.Config{URL: address, Token: token, Transport: transport, Clock: clock.System{}})
	if err == nil {
		_, err = c.Tasks(t.Context(), client.Page{Limit: 1})
	}
	if err != nil || !seen.took() {
		t.Fatalf("got %v, want a call of the server", err)
	}
	server.Close()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Skipf("needs the address of a server that has ended: %v", err)
	}
	second := &httptest.Server{Listener: listener, Config: &http.Server{Handler: impostor}} //nolint:gosec // G112: a server on loopback for a test
	second.Start()
	t.Cleanup(second.Close)
	_, err = c.Tasks(t.Context(), client.Page{Limit: 1})
	if _, ok := errors.AsType[*proof.Error](err); !ok || impostor.took() {
		t.Errorf("got %v and the token sent: %v, want neither", err, impostor.took())
	}
}

// TestRedirectedDownloadHasNoToken follows a redirect of the server to another one.
func TestRedirectedDownloadHasNoToken(t *testing.T) {
	t.Parallel()
	seen := &recorder{}
	bucket := serve(t, seen)
	address := serve(t, proof.Handler(key, http.RedirectHandler("http://"+bucket+"/object", http.StatusTemporaryRedirect)))
	transport := proof.Transport(address, func() ([]byte, error) { return key, nil })
	t.Cleanup(transport.CloseIdleConnections)
	c, err := client.New(client.Config{URL: address, Token: token, Transport: transport, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.Open(t.Context(), "task", 0, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Body.Close(); err != nil || seen.took() || len(seen.got) != 1 {
		t.Errorf("got the calls %v, %v, want one without the token", seen.got, err)
	}
	if _, err := c.Tasks(t.Context(), client.Page{Limit: 1}); err == nil || seen.took() {
		t.Errorf("got %v and the token sent: %v, want a redirected call refused", err, seen.took())
	}
}

// TestProxyOfTheEnvironmentIsNotUsed sets a proxy that also applies to loopback names.
func TestProxyOfTheEnvironmentIsNotUsed(t *testing.T) {
	t.Parallel()
	transport := proof.Transport("127.0.0.1:1", nil)
	if transport.Proxy != nil {
		t.Error("got a proxy, want connections to the server itself")
	}
}

// TestMalformedChallengeIsRefused sends challenges that no client sends.
func TestMalformedChallengeIsRefused(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(proof.Handler(key, http.NotFoundHandler()))
	t.Cleanup(server.Close)
	own, nonce := server.Listener.Addr().String(), strings.Repeat("ab", proof.KeySize)
	_, port, err := net.SplitHostPort(own)
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		"nonce=" + nonce + "&address=" + own: 200, "": 400, "nonce=ab&address=" + own: 400, "nonce=" + nonce[1:] + "g&address=" + own: 400,
		"nonce=" + nonce: 403, "nonce=" + nonce + "&address=127.0.0.1:1": 403, "nonce=" + nonce + "&address=localhost:" + port: 403,
		"nonce=" + nonce + "&address=%5B::ffff:127.0.0.1%5D:" + port: 403,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+proof.Path+"?"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != want {
			t.Errorf("%q: got %d, %v, want %d", query, answer.StatusCode, err, want)
		}
	}
}
