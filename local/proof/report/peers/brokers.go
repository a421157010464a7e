package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dunglas/mercure"
	"github.com/golang-jwt/jwt/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// sortieEvents are the events of runs in Sortie's stream.
type sortieEvents struct{ sortie }

// perPublish: accepted, queued or admitted, machine created, started, ended, completed.
func (*sortieEvents) perPublish() int { return 5 }

func (s *sortieEvents) publish(ctx context.Context, n int) error {
	run, err := s.submit(ctx, work{os.TempDir(), "0"}, "")
	if err != nil {
		return err
	}
	if n < 1000 {
		return nil // the latency is that of the first event
	}
	return s.wait(ctx, run)
}

func (s *sortieEvents) submit(ctx context.Context, _ work, _ string) (string, error) {
	var accepted struct {
		TaskID string `json:"taskId"`
	}
	err := s.call(ctx, http.MethodPost, "/v1/runs", map[string]any{"image": "exec:/bin/true"}, &accepted)
	return accepted.TaskID, err
}

func (s *sortieEvents) subscribe(ctx context.Context, after string, got func(id, cursor string)) error {
	return readSSE(ctx, s.url+"/v1/events/stream", s.token, after, got)
}

// jetStream is a NATS server with one stream on disk.
type jetStream struct {
	process *process
	url     string
	mu      sync.Mutex
	conn    *nats.Conn
	stream  jetstream.JetStream
}

func (*jetStream) name() string       { return "NATS JetStream" }
func (j *jetStream) server() *process { return j.process }
func (j *jetStream) stop()            { j.conn.Close(); j.process.stop() }
func (*jetStream) perPublish() int    { return 1 }

func (j *jetStream) start(ctx context.Context, folder string) error {
	path, err := program("nats-server")
	if err != nil {
		return err
	}
	config := filepath.Join(folder, "nats.conf")
	if j.url == "" {
		port, err := freePort()
		if err != nil {
			return err
		}
		j.url = fmt.Sprintf("nats://127.0.0.1:%d", port)
		text := fmt.Sprintf("listen: 127.0.0.1:%d\njetstream { store_dir: %q, sync_interval: always }\n", port, filepath.Join(folder, "nats"))
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if j.process, err = launch(folder, nil, path, "-c", config); err != nil {
		return err
	}
	if j.conn != nil {
		j.conn.Close()
	}
	err = until(ctx, "nats accepts connections", time.Minute, func() bool {
		j.conn, err = nats.Connect(j.url, nats.MaxReconnects(-1))
		return err == nil
	})
	if err != nil {
		return err
	}
	if j.stream, err = jetstream.New(j.conn); err != nil {
		return err
	}
	return until(ctx, "the stream is there", time.Minute, func() bool {
		_, err = j.stream.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"events"}, Storage: jetstream.FileStorage})
		return err == nil
	})
}

func (j *jetStream) publish(ctx context.Context, n int) error {
	_, err := j.stream.Publish(ctx, "events", payload(n), jetstream.WithRetryAttempts(0))
	return err
}

// payload is as large as an event of Sortie.
func payload(n int) []byte {
	text, _ := json.Marshal(map[string]string{"id": strconv.Itoa(n), "text": strings.Repeat("x", 1000)})
	return text
}

func (j *jetStream) subscribe(ctx context.Context, after string, got func(id, cursor string)) error {
	conn, err := nats.Connect(j.url, nats.NoReconnect())
	if err != nil {
		return err
	}
	defer conn.Close()
	stream, err := jetstream.New(conn)
	if err != nil {
		return err
	}
	first := uint64(1)
	if after != "" {
		last, err := strconv.ParseUint(after, 10, 64)
		if err != nil {
			return err
		}
		first = last + 1
	}
	consumer, err := stream.OrderedConsumer(ctx, "EVENTS", jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: first})
	if err != nil {
		return err
	}
	reading, err := consumer.Consume(func(message jetstream.Msg) {
		about, err := message.Metadata()
		if err != nil {
			return
		}
		cursor := strconv.FormatUint(about.Sequence.Stream, 10)
		got(cursor, cursor)
	})
	if err != nil {
		return err
	}
	defer reading.Stop()
	for ctx.Err() == nil && conn.IsConnected() {
		time.Sleep(20 * time.Millisecond)
	}
	return errors.New("the connection has ended")
}

// mercureHub is Mercure's hub on a Bolt file.
type mercureHub struct {
	process *process
	address string
	token   string
}

const mercurePath, mercureTopic = "/.well-known/mercure", "https://example.org/events"

// mercureServer serves the hub. The key is drawn by its parent.
func mercureServer(address, folder string) error {
	key := []byte(os.Getenv("MERCURE_KEY"))
	subscribed := mercure.NewSubscriberList(mercure.DefaultSubscriberListCacheSize)
	transport, err := mercure.NewBoltTransport(subscribed, nil, filepath.Join(folder, "mercure.db"), "", 0, 0)
	if err != nil {
		return err
	}
	hub, err := mercure.NewHub(context.Background(), mercure.WithTransport(transport), mercure.WithAnonymous(), mercure.WithPublisherJWT(key, "HS256"))
	if err != nil {
		return err
	}
	http.Handle(mercurePath, hub)
	return http.ListenAndServe(address, nil)
}

func (*mercureHub) name() string       { return "Mercure" }
func (m *mercureHub) server() *process { return m.process }
func (m *mercureHub) stop()            { m.process.stop() }
func (*mercureHub) perPublish() int    { return 1 }

func (m *mercureHub) start(ctx context.Context, folder string) error {
	if m.address == "" {
		port, err := freePort()
		if err != nil {
			return err
		}
		m.address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	key := rand.Text() + rand.Text()
	claims := jwt.MapClaims{"mercure": map[string]any{"publish": []string{"*"}}}
	var err error
	if m.token, err = jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(key)); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if m.process, err = launch(folder, []string{"MERCURE_KEY=" + key}, self, "mercure-server", m.address, folder); err != nil {
		return err
	}
	return until(ctx, "mercure accepts requests", time.Minute, func() bool {
		answer, err := http.Get("http://" + m.address + "/")
		if err != nil {
			return false
		}
		answer.Body.Close()
		return true
	})
}

func (m *mercureHub) publish(ctx context.Context, n int) error {
	form := url.Values{"topic": {mercureTopic}, "data": {string(payload(n))}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+m.address+mercurePath, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+m.token)
	response, err := clients.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("mercure: %s", response.Status)
	}
	return nil
}

func (m *mercureHub) subscribe(ctx context.Context, after string, got func(id, cursor string)) error {
	address := "http://" + m.address + mercurePath + "?topic=" + url.QueryEscape(mercureTopic)
	if after == "" {
		after = "earliest"
	}
	return readSSE(ctx, address, "", after, got)
}
