package nats

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

const retention = 48 * time.Hour

// serve starts a server with JetStream, in the folder and on the port of the options.
func serve(t *testing.T, o server.Options) *server.Server {
	t.Helper()
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	if o.StoreDir == "" {
		o.StoreDir = t.TempDir()
	}
	o.Host, o.JetStream, o.NoLog, o.NoSigs = "127.0.0.1", true, true, true
	o.AuthTimeout, o.TLSTimeout = 60, 60 // seconds; the defaults of 2 are too short for a loaded host
	s, err := server.NewServer(&o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { stop(s) })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	return s
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}

// logged collects the log of a publisher.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// connect returns a connected publisher.
func connect(t *testing.T, c Config) *Publisher {
	t.Helper()
	c.Retention, c.Timeout = retention, time.Minute
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	p, err := Connect(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// connected waits for the connection.
func (p *Publisher) connected(t *testing.T) {
	t.Helper()
	status := p.conn.StatusChanged(client.CONNECTED)
	defer p.conn.RemoveStatusListener(status)
	for !p.conn.IsConnected() {
		select {
		case <-status:
		case <-time.After(time.Minute):
			t.Fatal("got no connection in a minute")
		}
	}
}

// stored returns the messages of a stream.
func stored(t *testing.T, s *server.Server, stream string) (all []*jetstream.RawStreamMsg) {
	t.Helper()
	found := lookUp(t, s, stream)
	info, err := found.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := info.State.FirstSeq; n <= info.State.LastSeq && n > 0; n++ {
		m, err := found.GetMsg(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	return all
}

func lookUp(t *testing.T, s *server.Server, stream string) jetstream.Stream {
	t.Helper()
	found, err := reader(t, s).Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func reader(t *testing.T, s *server.Server) jetstream.JetStream {
	t.Helper()
	conn, err := client.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// event returns an event of run n, or with n of 0 an event of a tenant's pool.
func event(tenant string, n int) port.PublishedEvent {
	e := events.Envelope{EventID: fmt.Sprint("urn:orch:event:", tenant, n), EventType: "policy.updated", TenantID: tenant, IdempotencyKey: "orch-policy.updated-pool/default-1"}
	if n > 0 {
		e.EventType, e.IdempotencyKey, e.Job = "job.completed", fmt.Sprintf("orch-job.completed-t%d-1", n), &events.Job{ID: fmt.Sprint("t", n)}
	}
	return port.PublishedEvent{Message: events.NewMessage(e, "e1", int64(n), []byte(`{"payload":"x"}`)), Position: int64(n)}
}

func publish(t *testing.T, p *Publisher, list ...port.PublishedEvent) {
	t.Helper()
	if failed, err := p.Publish(t.Context(), list); err != nil || failed != nil {
		t.Fatalf("got failed %v: %v, want success", failed, err)
	}
}

func TestPublisher(t *testing.T) {
	t.Parallel()
	porttest.Publisher(t, func(t *testing.T) porttest.PublisherHarness {
		t.Helper()
		s := serve(t, server.Options{})
		var messages jetstream.MessagesContext
		return porttest.PublisherHarness{
			Publisher: connect(t, Config{URL: s.ClientURL()}), TooLarge: 1 << 20,
			Listen: func(ctx context.Context) ([]porttest.Delivered, bool) {
				if messages == nil {
					consumer, err := lookUp(t, s, Stream).OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
					if err == nil {
						messages, err = consumer.Messages()
					}
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(messages.Stop)
				}
				m, err := messages.Next(jetstream.NextContext(ctx))
				if err != nil {
					return nil, false
				}
				return []porttest.Delivered{{Type: strings.TrimPrefix(m.Subject(), "orch.event."), Detail: m.Data()}}, true
			},
		}
	})
}

func TestStreamIsCreated(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{})
	publish(t, connect(t, Config{URL: s.ClientURL()}), event("acme", 1))
	info, err := lookUp(t, s, "ORCH_EVENT").Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c := info.Config; c.Duplicates != 24*time.Hour || c.MaxAge != retention || c.Storage != jetstream.FileStorage || fmt.Sprint(c.Subjects) != "[orch.event.>]" {
		t.Errorf("got %+v, want files of 48 h with duplicates of 24 h", c)
	}
	m := stored(t, s, Stream)[0]
	if m.Subject != "orch.event.job.completed" || m.Header.Get("Nats-Msg-Id") != "orch-job.completed-t1-1" || m.Header.Get("Content-Type") != "application/cloudevents+json" {
		t.Errorf("got %s with %v, want the type and the idempotency key", m.Subject, m.Header)
	}
	var content events.Message
	if err := json.Unmarshal(m.Data, &content); err != nil || content.ID != "urn:orch:event:acme1" {
		t.Errorf("got %s, %v, want the message", m.Data, err)
	}
}

// TestStreamOfTheOperatorIsUsed uses a stream with another name, to which the events are
// published. If it is deleted, a stream is created.
func TestStreamOfTheOperatorIsUsed(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{})
	js := reader(t, s)
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "AUDIT", Subjects: []string{"orch.>"}}); err != nil {
		t.Fatal(err)
	}
	p := connect(t, Config{URL: s.ClientURL()})
	publish(t, p, event("acme", 1))
	if got := stored(t, s, "AUDIT"); len(got) != 1 {
		t.Errorf("got %d messages, want 1", len(got))
	}
	if err := js.DeleteStream(t.Context(), "AUDIT"); err != nil {
		t.Fatal(err)
	}
	if failed, err := p.Publish(t.Context(), []port.PublishedEvent{event("acme", 2)}); len(failed) != 1 || !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got failed %v: %v, want Unavailable without a stream", failed, err)
	}
	publish(t, p, event("acme", 2))
	if got := stored(t, s, Stream); len(got) != 1 {
		t.Errorf("got %d messages in a new stream, want 1", len(got))
	}
}

// TestRepeatedEventIsStoredOnce repeats events of two tenants, and replays them.
func TestRepeatedEventIsStoredOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{})
	p := connect(t, Config{URL: s.ClientURL()})
	replayed := event("acme", 1)
	replayed.ReplayID = "r1"
	for range 3 {
		publish(t, p, event("acme", 0), event("other", 0), event("acme", 1), replayed)
	}
	var ids []string
	for _, m := range stored(t, s, Stream) {
		ids = append(ids, m.Header.Get("Nats-Msg-Id"))
	}
	if want := "[acme/orch-policy.updated-pool/default-1 other/orch-policy.updated-pool/default-1 orch-job.completed-t1-1 orch-job.completed-t1-1/r1]"; fmt.Sprint(ids) != want {
		t.Errorf("got %v, want %s", ids, want)
	}
}

// TestOutageDelaysEvents stops the server between events and starts it again with the same
// files.
func TestOutageDelaysEvents(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := serve(t, server.Options{StoreDir: folder})
	address := s.ClientURL()
	p := connect(t, Config{URL: address})
	publish(t, p, event("acme", 1), event("acme", 2))
	stop(s)
	list := []port.PublishedEvent{event("acme", 2), event("acme", 3)}
	if failed, err := p.Publish(t.Context(), list); fmt.Sprint(failed) != "[0 1]" || !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got failed %v: %v, want both Unavailable", failed, err)
	}
	var number int
	if _, err := fmt.Sscanf(address, "nats://127.0.0.1:%d", &number); err != nil {
		t.Fatal(err)
	}
	s = serve(t, server.Options{StoreDir: folder, Port: number})
	p.connected(t)
	publish(t, p, list...)
	var got []string
	for _, m := range stored(t, s, Stream) {
		got = append(got, m.Header.Get("Nats-Msg-Id"))
	}
	if want := "[orch-job.completed-t1-1 orch-job.completed-t2-1 orch-job.completed-t3-1]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestServerMayStartLater connects before the server is started.
func TestServerMayStartLater(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{})
	address := s.ClientURL()
	stop(s)
	p := connect(t, Config{URL: address})
	if _, err := p.Publish(t.Context(), []port.PublishedEvent{event("acme", 1)}); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("got %v, want Unavailable", err)
	}
	var number int
	if _, err := fmt.Sscanf(address, "nats://127.0.0.1:%d", &number); err != nil {
		t.Fatal(err)
	}
	serve(t, server.Options{Port: number})
	p.connected(t)
	publish(t, p, event("acme", 1))
}

func TestWithoutJetStreamNothingIsPublished(t *testing.T) {
	t.Parallel()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { stop(s) })
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server is not ready")
	}
	p := connect(t, Config{URL: s.ClientURL()})
	if failed, err := p.Publish(t.Context(), []port.PublishedEvent{event("acme", 1)}); len(failed) != 1 || !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "ORCH_EVENT") {
		t.Errorf("got failed %v: %v, want Unavailable with the stream", failed, err)
	}
}

// TestPasswordIsNotShown connects with the right and with a wrong password.
func TestPasswordIsNotShown(t *testing.T) {
	t.Parallel()
	s := serve(t, server.Options{Username: "sortie", Password: "s3cret-right"})
	with := func(password string) string {
		return strings.Replace(s.ClientURL(), "nats://", "nats://sortie:"+password+"@", 1)
	}
	var log logged
	logger := slog.New(slog.NewTextHandler(&log, nil))
	publish(t, connect(t, Config{URL: with("s3cret-right"), Log: logger}), event("acme", 1))
	_, err := connect(t, Config{URL: with("s3cret-wrong"), Log: logger}).Publish(t.Context(), []port.PublishedEvent{event("acme", 2)})
	if !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v with a wrong password, want Unavailable", err)
	}
	shown := log.String() + fmt.Sprint(err)
	for _, address := range []string{"nats://u:s3cret-x@ho st:1", "nats://u:s3cret-x@", "http://u:s3cret-x@h", "nats://u:s3cret-x@h:port", "s3cret-x", ""} {
		_, err := Connect(Config{URL: address, Log: logger})
		if err == nil {
			t.Errorf("%q: got success, want an error", address)
		}
		shown += fmt.Sprint(err)
	}
	if strings.Contains(shown, "s3cret") {
		t.Errorf("got a password in %q", shown)
	}
}

// TestCredentialsFile connects with the JWT and the key of a file.
func TestCredentialsFile(t *testing.T) {
	t.Parallel()
	operator, account, user := pair(t, nkeys.CreateOperator), pair(t, nkeys.CreateAccount), pair(t, nkeys.CreateUser)
	system := pair(t, nkeys.CreateAccount)
	systemJWT, systemErr := jwt.NewAccountClaims(public(t, system)).Encode(operator)
	accountClaims := jwt.NewAccountClaims(public(t, account))
	accountClaims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	accountJWT, accountErr := accountClaims.Encode(operator)
	userJWT, userErr := jwt.NewUserClaims(public(t, user)).Encode(account)
	seed, seedErr := user.Seed()
	file, fileErr := jwt.FormatUserConfig(userJWT, seed)
	resolver := &server.MemAccResolver{}
	stores := errors.Join(resolver.Store(public(t, account), accountJWT), resolver.Store(public(t, system), systemJWT))
	if err := errors.Join(systemErr, accountErr, userErr, seedErr, fileErr, stores); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bus.creds")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	operatorClaims := jwt.NewOperatorClaims(public(t, operator))
	s := serve(t, server.Options{TrustedOperators: []*jwt.OperatorClaims{operatorClaims}, AccountResolver: resolver, SystemAccount: public(t, system)})
	if _, err := connect(t, Config{URL: s.ClientURL()}).Publish(t.Context(), []port.PublishedEvent{event("acme", 1)}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v without credentials, want Unavailable", err)
	}
	publish(t, connect(t, Config{URL: s.ClientURL(), Credentials: path}), event("acme", 1))
}

func pair(t *testing.T, create func() (nkeys.KeyPair, error)) nkeys.KeyPair {
	t.Helper()
	k, err := create()
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func public(t *testing.T, k nkeys.KeyPair) string {
	t.Helper()
	text, err := k.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
