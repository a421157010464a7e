package inference_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// written is the server's end of a connection in memory, without a buffer for unread data.
type written struct {
	net.Conn

	first func() // called before the first write
}

func (c written) Write(p []byte) (int, error) {
	c.first()
	return c.Conn.Write(p)
}

// pipes is a listener of connections in memory.
type pipes struct {
	net.Listener

	conns chan net.Conn
}

func (l pipes) Accept() (net.Conn, error) {
	c, open := <-l.conns
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

// unread opens the stream of a task. It returns the connection when the server begins to write
// to it.
func (l pipes) unread(t *testing.T, task string) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	begun := make(chan struct{})
	l.conns <- written{server, sync.OnceFunc(func() { close(begun) })}
	if _, err := fmt.Fprintf(client, "GET /v1/tasks/%s/stream HTTP/1.1\r\nHost: localhost\r\n\r\n", task); err != nil {
		t.Fatal(err)
	}
	<-begun
	return client
}

// TestSlowReadersDelayNoOther has fifty readers of a task, one that reads late and one that
// does not read. The clock does not advance until the task has ended.
func TestSlowReadersDelayNoOther(t *testing.T) {
	t.Parallel()
	stage := setup(t, func(s *apitest.Settings) { s.Unchecked = true }) // the document has no events of streams
	dispatcher := stage.System.Dispatcher
	at := pipes{stage.Server.Listener, make(chan net.Conn)}
	inMemory := &http.Server{Handler: stage.Server.Config.Handler, ReadHeaderTimeout: time.Minute}
	var running sync.WaitGroup
	running.Go(func() { _ = inMemory.Serve(at) })
	accepted, _ := apitest.Decoded[contract.TaskAccepted](t, stage, "POST", "/v1/tasks", `{"model_ref":"mock","prompt":"a","max_tokens":300}`, 202)
	task := accepted.TaskID
	late, never := at.unread(t, task), at.unread(t, task)

	const count = 50
	texts := make([]string, count)
	var reading sync.WaitGroup
	for i := range count {
		reading.Go(func() { texts[i] = stage.Call(t, "GET", "/v1/tasks/"+task+"/stream", "").Body })
	}
	ctx, stop := context.WithCancel(t.Context())
	running.Go(func() { dispatcher.Run(ctx) })
	t.Cleanup(func() {
		stop()
		close(at.conns)
		_ = inMemory.Close()
		running.Wait()
	})
	<-dispatcher.Ready()
	if err := dispatcher.Advance(ctx, stage.Run(t, task).Ref()); err != nil {
		t.Fatal(err)
	}
	reading.Wait()
	if tokens := strings.Count(texts[0], "event: token\n"); tokens != 300 || strings.Count(texts[0], "event: end\n") != 1 || !strings.HasPrefix(texts[0], "id: 1.1\nevent: started\n") {
		t.Fatalf("got %d tokens in %.2000s, want a start, 300 tokens and an end", tokens, texts[0])
	}
	for i, text := range texts {
		if text != texts[0] {
			t.Errorf("reader %d: got another text than the first one:\n%s", i, text)
		}
	}
	answer, err := http.ReadResponse(bufio.NewReader(late), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || string(text) != texts[0] {
		t.Errorf("got %s (%v) late, want what the others got", text, err)
	}
	if now := stage.Clock.Now(); !now.Equal(apitest.Began) {
		t.Errorf("got the time %s, want it unchanged until here", now)
	}
	stage.Clock.Advance(20 * time.Second)
	stage.AwaitRequests(t, count+3)
	if text, err := io.ReadAll(never); strings.Contains(string(text), "event: end") {
		t.Errorf("got %s (%v), want a connection that was cut off", text, err)
	}
	if again := stage.Call(t, "GET", "/v1/tasks/"+task+"/stream", ""); again.Body != texts[0] {
		t.Errorf("got %s after the cut, want what the others got", again.Body)
	}
}
