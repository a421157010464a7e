package stack_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsclient "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/nats"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

// natsServer starts a NATS server with JetStream. A negative number selects a free port.
func natsServer(t *testing.T, folder string, number int) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: number, JetStream: true, StoreDir: folder, NoLog: true, NoSigs: true, AuthTimeout: 60})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	return s
}

// subscriber returns a function that reads the next message of the server's stream, from its
// start.
func subscriber(t *testing.T, address string) func() jetstream.Msg {
	t.Helper()
	conn, err := natsclient.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "TEST", Subjects: []string{nats.Subjects}}); err != nil {
		t.Fatal(err)
	}
	consumer, err := js.OrderedConsumer(t.Context(), "TEST", jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(messages.Stop)
	return func() jetstream.Msg {
		t.Helper()
		m, err := messages.Next(jetstream.NextMaxWait(time.Minute))
		if err != nil {
			t.Fatalf("got %v, want a message", err)
		}
		return m
	}
}

// TestBusGetsEventsAfterAnOutage runs programs before, during and after an outage of the
// server. The bus gets each event once, signed, and in order (EE-5.1).
func TestBusGetsEventsAfterAnOutage(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	bus := natsServer(t, folder, server.RANDOM_PORT)
	address := bus.ClientURL()
	next := subscriber(t, address)
	g := start(t, served{Settings: map[string]string{"SORTIE_BUS": address}})
	g.Token = g.stack.Token()
	program := func() string {
		task := g.accept("/v1/runs", `{"image": "exec:/bin/sh", "command": ["-c", "true"]}`)
		g.End(task)
		return task
	}
	keys, err := events.ParseKeys(g.Call(http.MethodGet, "/.well-known/jwks.json", "").Body)
	if err != nil {
		t.Fatal(err)
	}
	position := 0
	until := func(task string) {
		t.Helper()
		for last := ""; last != task; {
			m := next()
			e, _, err := keys.OpenMessage(t.Context(), m.Data())
			if err != nil {
				t.Fatalf("%s: got %v, want a signed event", m.Data(), err)
			}
			position++
			if want := fmt.Sprintf(`"sequence":"%020d"`, position); m.Subject() != "orch.event."+string(e.EventType) || !strings.Contains(string(m.Data()), want) {
				t.Fatalf("got %s with %s, want %s", m.Subject(), m.Data(), want)
			}
			if e.EventType == "job.completed" {
				last = e.Job.ID
			}
		}
	}
	until(program())
	var number int
	if _, err := fmt.Sscanf(address, "nats://127.0.0.1:%d", &number); err != nil {
		t.Fatal(err)
	}
	bus.Shutdown()
	bus.WaitForShutdown()
	during := program()
	natsServer(t, folder, number)
	until(during)
	until(program())
}

func TestBusSettings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "sortie-dev-events": "", "nats://127.0.0.1:4222": "", "tls://a:1,tls://b:2": "",
		"http://127.0.0.1:4222": `SORTIE_BUS: scheme "http" of a NATS server, want nats or tls`, "nats://": "without a host", "nats://u:secret@a:x": "malformed URL",
	} {
		c, err := stack.SettingsFrom(setting.Map(map[string]string{"SORTIE_BUS": text, "SORTIE_BUS_CREDENTIALS": "f"}), nil)
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
		if has := strings.Contains(text, "://") && err == nil; (c.Bus.URL != "") != has || has && c.Bus.Credentials != "f" {
			t.Errorf("%q: got %+v", text, c.Bus)
		}
	}
}
