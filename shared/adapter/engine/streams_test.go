package engine_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/engine"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// raw returns an engine whose server passes each connection to answer, and then closes it.
func raw(t *testing.T, answer func(net.Conn)) *engine.Engine {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				answer(conn)
			}()
		}
	}()
	e, err := engine.New(engine.Config{Kind: platform.EngineVLLM, URL: "http://" + listener.Addr().String(), Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// receive reads a request, and reports whether its client uses the connection only for it.
func receive(conn net.Conn) (alone bool) {
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, r.Body)
	return err == nil && r.Close
}

// TestAnswersOfServers sends responses that servers and proxies before them may send.
func TestAnswersOfServers(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	const events = "data: " + piece + "\n\ndata: " + last + "\n\n"
	tests := []struct {
		name, answer string
		want         fault.Code // empty for a whole answer
		says         string
	}{
		{"until the end of the connection", head + "\r\n" + events, "", ""},
		{"HTTP/1.0", strings.Replace(head, "1.1", "1.0", 1) + "\r\n" + events, "", ""},
		{"chunks", head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(events), events), "", ""},
		{"chunk that is cut", head + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s", len(events), events[:60]), fault.WorkerReset, "after 1 pieces"},
		{"length", head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(events), events), "", ""},
		{"interim answers", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n" + head + "\r\n" + events, "", ""},
		{"no answer", "", fault.PoolUnavailable, "ended before an answer"},
		{"half a header", head, fault.PoolUnavailable, "ended before an answer"},
		{"no HTTP", "SSH-2.0-x\r\n", fault.PoolUnavailable, "malformed HTTP"},
		{"endless header", head + strings.Repeat("X: "+strings.Repeat("x", 1000)+"\r\n", 1100), fault.PoolUnavailable, "more than 1048576 bytes"},
		{"endless interim answers", strings.Repeat("HTTP/1.1 103 Early Hints\r\nX: "+strings.Repeat("x", 1000)+"\r\n\r\n", 1100), fault.PoolUnavailable, "more than 1048576 bytes"},
		{"redirect", "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\n\r\n", fault.PoolUnavailable, "status 307"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			e := raw(t, func(conn net.Conn) {
				if !receive(conn) {
					t.Error("got no request with Connection: close")
				}
				_, _ = io.WriteString(conn, test.answer)
			})
			text, _, err := generate(t.Context(), e)
			if test.want == "" && (text != "ab" || err != nil) {
				t.Errorf("got %q, %v, want ab", text, err)
			}
			if test.want != "" && (!fault.Is(err, test.want) || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v, want %s with %q", err, test.want, test.says)
			}
		})
	}
}

// TestRefusalBeforeTheRequest responds to a long request before reading it.
func TestRefusalBeforeTheRequest(t *testing.T) {
	t.Parallel()
	e := raw(t, func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo long")
	})
	_, err := e.Generate(t.Context(), port.Generation{Model: "tiny", Prompt: strings.Repeat("x", 16<<20), MaxTokens: 8}, func(port.Piece) error { return nil })
	if !fault.Is(err, fault.InvalidParams) || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v, want InvalidParams with the message of the server", err)
	}
}

// TestConnectionEndsWithItsStream checks that a server sees the end of the connection when the
// reader has closed it, even if the server has more to send or has not responded.
func TestConnectionEndsWithItsStream(t *testing.T) {
	t.Parallel()
	gone := errors.New("the caller has gone")
	for name, begins := range map[string]string{
		"during the answer": "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: " + piece + "\n\n",
		"before the answer": "",
	} {
		ctx, leave := context.WithCancelCause(t.Context())
		ended := make(chan error, 1)
		e := raw(t, func(conn net.Conn) {
			receive(conn)
			_, _ = io.WriteString(conn, begins)
			if begins == "" {
				leave(gone)
			}
			_, err := conn.Read(make([]byte, 1))
			ended <- err
		})
		_, err := e.Generate(ctx, port.Generation{Model: "tiny", Prompt: "x", MaxTokens: 8}, func(port.Piece) error { leave(gone); return nil })
		if !errors.Is(err, gone) {
			t.Errorf("%s: got %v, want the cause of the end", name, err)
		}
		if err := <-ended; err == nil {
			t.Errorf("%s: got another byte from the client, want the end of its connection", name)
		}
	}
}

// TestStreamsUseTLS: the certificate of the server is checked before it gets the request.
func TestStreamsUseTLS(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("got a request behind a certificate that is not trusted")
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	e, err := engine.New(engine.Config{Kind: platform.EngineVLLM, URL: server.URL, Clock: clock.System{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := generate(t.Context(), e); !fault.Is(err, fault.PoolUnavailable) || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("got %v, want PoolUnavailable for the certificate", err)
	}
}
