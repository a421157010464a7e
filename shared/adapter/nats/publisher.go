// Package nats publishes events to a stream of NATS JetStream.
//
// Each event is one message with the subject "orch.event." and its type, such as
// "orch.event.job.completed". Its content is the message of the event: a CloudEvent with the
// signed event. The header Nats-Msg-Id is port.PublishedEvent.DedupID. The stream drops a
// message whose header it has stored within a day.
//
// The package uses the stream of the subject "orch.event.>", with any name and limits. Without
// such a stream it creates ORCH_EVENT: in files, one replica, messages for the retention and at
// least a day, Duplicates of a day, no other limit.
//
// During an outage of the server a call fails at once. The client reconnects in the background,
// without a limit. Errors and logs contain no credentials.
package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// Stream is the stream that is created if none has the subjects of events.
	Stream = "ORCH_EVENT"
	// Subjects are the subjects of all events.
	Subjects = subject + ">"
	// Duplicates is how long the stream detects and drops repeated messages.
	Duplicates = 24 * time.Hour

	subject = "orch.event."
	// callTime is the default of Config.Timeout.
	callTime = 10 * time.Second
	// The pauses between attempts to connect.
	firstPause, longestPause = 250 * time.Millisecond, 10 * time.Second
	contentType              = "application/cloudevents+json"
)

// Config configures a Publisher.
type Config struct {
	// URL is "nats://" or "tls://", the user and password or the token if the server requires
	// them, a host and a port. The servers of a cluster are separated by commas.
	URL string
	// Credentials is the path of a file with a JWT and its key; empty for no file.
	Credentials string
	// Retention is how long a new stream keeps messages.
	Retention time.Duration
	// Timeout limits a try to connect, a question about the stream, and the wait until the
	// server has stored a message; 0 means 10 s.
	Timeout time.Duration
	Log     *slog.Logger
}

// Check returns an error for an invalid URL. The error does not contain the URL.
func (c Config) Check() error {
	for server := range strings.SplitSeq(c.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(server))
		switch {
		case err != nil:
			return errors.New("malformed URL of a NATS server, want nats://host:port")
		case u.Scheme != "nats" && u.Scheme != "tls":
			return fmt.Errorf("scheme %.20q of a NATS server, want nats or tls", u.Scheme)
		case u.Hostname() == "":
			return errors.New("URL of a NATS server without a host, want nats://host:port")
		}
	}
	return nil
}

// Publisher publishes to one stream. It is safe for concurrent use.
type Publisher struct {
	conn      *client.Conn
	js        jetstream.JetStream
	retention time.Duration

	mu sync.Mutex
	// ready means that the stream exists.
	ready bool
}

var _ port.Publisher = (*Publisher)(nil)

// Connect returns a Publisher. The server need not be reachable yet. The caller must close the
// Publisher.
func Connect(c Config) (*Publisher, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	limit := cmp.Or(c.Timeout, callTime)
	options := []client.Option{
		client.Name("sortie"), client.Timeout(limit), client.RetryOnFailedConnect(true), client.MaxReconnects(-1), client.IgnoreAuthErrorAbort(),
		client.ReconnectBufSize(-1), // a message is published now, or fails
		client.CustomReconnectDelay(func(attempts int) time.Duration { return min(firstPause<<min(attempts, 10), longestPause) }),
		client.ConnectHandler(func(*client.Conn) { c.Log.Info("connected to the bus") }),
		client.ReconnectHandler(func(*client.Conn) { c.Log.Info("connected to the bus again") }),
		client.DisconnectErrHandler(func(_ *client.Conn, err error) {
			c.Log.Warn("the connection to the bus ended", "error", fmt.Sprint(err))
		}),
		client.ErrorHandler(func(_ *client.Conn, _ *client.Subscription, err error) {
			c.Log.Warn("the bus reports an error", "error", fmt.Sprint(err))
		}),
	}
	if c.Credentials != "" {
		options = append(options, client.UserCredentials(c.Credentials))
	}
	conn, err := client.Connect(c.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("cannot use the NATS server: %w", err)
	}
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncTimeout(limit), jetstream.WithDefaultTimeout(limit))
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("cannot use JetStream: %w", err)
	}
	return &Publisher{conn: conn, js: js, retention: max(c.Retention, Duplicates)}, nil
}

// Close closes the connection. It does not wait for calls of Publish.
func (p *Publisher) Close() { p.conn.Close() }

// Publish implements port.Publisher. A message that is larger than the server or the
// stream allows fails with InvalidRequest, any other failure is Unavailable.
func (p *Publisher) Publish(ctx context.Context, events []port.PublishedEvent) (failed []int, err error) {
	if len(events) == 0 {
		return nil, nil
	}
	reasons := make([]error, len(events))
	if err := p.prepare(ctx); err != nil {
		for i := range reasons {
			reasons[i] = err
		}
	} else {
		p.publish(ctx, events, reasons)
	}
	for i, event := range events {
		reason := reasons[i]
		if reason == nil {
			continue
		}
		if errors.Is(reason, jetstream.ErrNoStreamResponse) {
			p.setReady(false) // the stream was deleted; the next call creates it
		}
		failed = append(failed, i)
		err = errors.Join(err, fmt.Errorf("event %s: %w", event.ID, faultOf(reason)))
	}
	return failed, err
}

// publish publishes events, and sets the errors of those that were not stored.
func (p *Publisher) publish(ctx context.Context, events []port.PublishedEvent, reasons []error) {
	acks := make([]jetstream.PubAckFuture, len(events))
	for i, event := range events {
		var content []byte
		if content, reasons[i] = event.Encode(); reasons[i] != nil {
			continue
		}
		m := client.NewMsg(subject + event.Type)
		m.Data = content
		m.Header.Set("Content-Type", contentType)
		acks[i], reasons[i] = p.js.PublishMsgAsync(m, jetstream.WithMsgID(event.DedupID()))
	}
	for i, ack := range acks {
		if ack == nil {
			continue
		}
		select {
		case <-ack.Ok():
		case reasons[i] = <-ack.Err():
		case <-ctx.Done():
			reasons[i] = ctx.Err()
		}
	}
}

// prepare creates the stream if no stream has the subjects of events.
func (p *Publisher) prepare(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !p.conn.IsConnected() {
		return client.ErrDisconnected
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ready {
		return nil
	}
	_, err := p.js.StreamNameBySubject(ctx, Subjects)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		_, err = p.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: Stream, Description: "signed events of Sortie", Subjects: []string{Subjects}, Storage: jetstream.FileStorage, Replicas: 1,
			MaxAge: p.retention, Duplicates: Duplicates, Discard: jetstream.DiscardOld,
		})
	}
	if err != nil {
		return fmt.Errorf("cannot create the stream %s: %w", Stream, err)
	}
	p.ready = true
	return nil
}

func (p *Publisher) setReady(ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready = ready
}

// faultOf returns the fault for an error.
func faultOf(err error) error {
	switch {
	case fault.Is(err, fault.InvalidRequest):
		return err
	case errors.Is(err, client.ErrMaxPayload), errors.Is(err, jetstream.ErrStreamMessageExceedsMaximum):
		return fault.Wrap(err, fault.InvalidRequest, "the message is too large for the NATS server")
	}
	return fault.Wrap(err, fault.Unavailable, "the NATS server is unavailable")
}
