package stream_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/events/eventtype"
	functionevents "github.com/sortie-dev/sortie/functions/events"
	functionstream "github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

const (
	token    = "token-of-the-reader"
	stranger = "token-of-a-stranger"

	retention = time.Hour
)

// bench is a server with a stream.
type bench struct {
	*apitest.Stage
	*streamtest.Writer

	feed    *fake.Feed
	streams *stream.Streams
	tickets httpkit.TicketSource
	tokens  *clientTokens
	tally   *porttest.Tally
}

// clientTokens has the records of tokens, which tests replace.
type clientTokens struct {
	current atomic.Pointer[[]access.Token]
}

func (c *clientTokens) set(tokens ...access.Token) { c.current.Store(&tokens) }

// Refused implements httpkit.TokenSource.
func (c *clientTokens) Refused() {}

// Current implements httpkit.TokenSource.
func (c *clientTokens) Current(context.Context) (tokens []access.Token, required bool, err error) {
	return *c.current.Load(), true, nil
}

// settings are the settings of most tests.
var settings = stream.Config{Life: 14 * time.Minute, Readers: 200}

func setup(t *testing.T, config stream.Config) *bench {
	t.Helper()
	parts := apitest.NewParts(t)
	b := &bench{feed: fake.NewFeed(parts.Clock, retention, nil, func(err error) { t.Error(err) }), tokens: &clientTokens{}}
	b.tokens.set(access.Full("reader", token, apitest.Tenant, "main"), access.Full("stranger", stranger, "tenant-b", "theirs"))
	var err error
	if b.Writer, err = streamtest.New(b.feed, apitest.Tenant, parts.Clock); err != nil {
		t.Fatal(err)
	}
	b.tally = &porttest.Tally{}
	config.Record = b.tally.Record
	b.streams = stream.New(b.feed, parts.Clock, slog.New(slog.DiscardHandler), rand.Float64, config)
	tokens := grants.NewTokens(parts.Signer, parts.Clock, func(n int) string { return strings.Repeat("0", 2*n) })
	b.tickets = tokens.OpenTicket
	b.Stage = apitest.New(t, parts, func(*app.System) []httpkit.Route {
		return append(append(functionevents.Routes(b.streams, tokens), functionstream.Routes(b.streams, parts.Clock)...),
			functionstream.SocketRoutes(b.streams, parts.Clock)...)
	}, func(s *apitest.Settings) {
		s.Server.Tickets = tokens.OpenTicket
		s.Server.Tokens = b.tokens
	})
	t.Cleanup(func() {
		if err := b.streams.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) add(t *testing.T, types ...eventtype.Type) {
	t.Helper()
	if err := b.Add(t.Context(), true, types...); err != nil {
		t.Fatal(err)
	}
}

// opened is an open stream of Server-Sent Events.
type opened struct {
	*bufio.Reader

	header http.Header
	leave  context.CancelFunc
}

// open opens a stream. headers alternates names and values.
func (b *bench) open(t *testing.T, path string, headers ...string) opened {
	t.Helper()
	ctx, leave := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(leave)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(path, "ticket=") {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := b.Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(response.Body)
		t.Fatalf("%s: got %d %s, %v, want 200", path, response.StatusCode, text, err)
	}
	return opened{bufio.NewReader(response.Body), response.Header, leave}
}

// message reads a message up to its empty line.
func (o opened) message(t *testing.T) (fields map[string]string) {
	t.Helper()
	fields = map[string]string{}
	for {
		line, err := o.ReadString('\n')
		if err != nil {
			t.Fatalf("got %q, %v, want a message", line, err)
		}
		if line == "\n" {
			return fields
		}
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if _, twice := fields[name]; !ok || twice {
			t.Fatalf("got the line %q, want a new field", line)
		}
		fields[name] = value
	}
}

// rest reads the stream to its end.
func (o opened) rest(t *testing.T) string {
	t.Helper()
	text, err := io.ReadAll(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
