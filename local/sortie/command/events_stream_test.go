package command_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/events/eventtype"
	functionevents "github.com/sortie-dev/sortie/functions/events"
	functionstream "github.com/sortie-dev/sortie/functions/stream"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/streamtest"
	"github.com/sortie-dev/sortie/shared/app/stream"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// eventServer is a server with a stream of events.
type eventServer struct {
	*streamtest.Writer
	env map[string]string
	// keys is a file with the public keys.
	keys    string
	streams *stream.Streams
}

func newEventServer(t *testing.T) *eventServer {
	t.Helper()
	const bearer = "token-of-the-reader"
	feed := fake.NewFeed(clock.System{}, time.Hour, nil, func(err error) { t.Error(err) })
	w, err := streamtest.New(feed, "tenant-a", clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	s := &eventServer{Writer: w}
	s.streams = stream.New(feed, clock.System{}, slog.New(slog.DiscardHandler), rand.Float64, stream.Config{Life: 2 * time.Second, Readers: 10})
	handler, err := httpkit.New(httpkit.Config{
		Tokens: httpkit.FixedTokens(access.Full("reader", bearer, "tenant-a", "main")), Clock: clock.System{},
		Log: slog.New(slog.DiscardHandler), NewID: uuid.NewString, Loopback: true,
	}, append(functionevents.Routes(s.streams, nil), functionstream.Routes(s.streams, clock.System{})...)...)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	t.Cleanup(func() { _ = s.streams.Close(context.Background()) })
	s.env = map[string]string{"SORTIE_URL": server.URL, "SORTIE_TOKEN": bearer}
	document, err := json.Marshal(s.Keys())
	if err == nil {
		s.keys = filepath.Join(t.TempDir(), "keys.json")
		err = os.WriteFile(s.keys, document, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *eventServer) add(t *testing.T, types ...eventtype.Type) {
	t.Helper()
	if err := s.Add(t.Context(), true, types...); err != nil {
		t.Fatal(err)
	}
}

func TestEventsList(t *testing.T) {
	t.Parallel()
	s := newEventServer(t)
	s.add(t, eventtype.Accepted, eventtype.Failed, eventtype.Queued)
	for _, step := range []struct {
		args  []string
		types string
		next  int
	}{
		{nil, "job.queued job.failed job.accepted", 3},
		{[]string{"--limit", "2"}, "job.queued job.failed", 3},
		{[]string{"--type", "job.f*,job.accepted"}, "job.failed job.accepted", 3},
		{[]string{"--type", "job.f*,job.queued", "--limit", "1", "--after", "earliest"}, "job.failed", 2},
		{[]string{"--after", s.Cursor().Epoch + "-1"}, "job.failed job.queued", 3},
	} {
		got := sortie(t, s.env, "", append([]string{"events", "list"}, step.args...)...)
		types := strings.Join(regexp.MustCompile(`job\.\w+`).FindAllString(got.stdout, -1), " ")
		if want := fmt.Sprintf("what follows: --after %s-%d", s.Cursor().Epoch, step.next); got.code != 0 || types != step.types || !strings.Contains(got.stderr, want) {
			t.Errorf("%v: got %+v, want %s and %q", step.args, got, step.types, want)
		}
	}
	for range 12 {
		s.add(t, slices.Repeat([]eventtype.Type{eventtype.Started}, 100)...)
	}
	if got := sortie(t, s.env, "", "events", "list", "--type", "job.accepted"); strings.Count(got.stdout, "job.accepted") != 1 {
		t.Errorf("got %+v, want the oldest event, which is on the second page", got)
	}
	if got := sortie(t, s.env, "", "events", "list", "--type", "run.*"); got.code != 2 || !strings.Contains(got.stderr, "--type: unknown event type") {
		t.Errorf("got %+v for an unknown type, want exit code 2", got)
	}
	if got := sortie(t, s.env, "", "events", "list", "--after", "other-1"); got.code == 0 || !strings.Contains(got.stderr, "earliest") {
		t.Errorf("got %+v for an unknown cursor, want an error that names earliest", got)
	}
}

// Verification accepts an exported file and refuses a changed one.
func TestExportedEventsAreVerified(t *testing.T) {
	t.Parallel()
	s := newEventServer(t)
	for range 12 {
		s.add(t, slices.Repeat([]eventtype.Type{eventtype.Queued}, 100)...) // two pages
	}
	file := filepath.Join(t.TempDir(), "events.ndjson")
	if got := sortie(t, s.env, "", "events", "export", file); got.code != 0 {
		t.Fatalf("got %+v, want a file", got)
	}
	got := sortie(t, nil, "", "events", "verify", file, "--keys", s.keys, "--json")
	var proof events.Proof
	if err := json.Unmarshal([]byte(got.stdout), &proof); err != nil || proof.Events != 1200 || proof.From != 0 || proof.To != 1200 || proof.Outside != 0 {
		t.Fatalf("got %+v, %v, want 1200 proved events", got, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	for name, changed := range map[string][]string{
		"removed":  slices.Delete(slices.Clone(lines), 700, 701),
		"repeated": slices.Insert(slices.Clone(lines), 700, lines[700]),
		"moved":    append(append(slices.Clone(lines[:500]), lines[501], lines[500]), lines[502:]...),
	} {
		other := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(other, []byte(strings.Join(changed, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := sortie(t, nil, "", "events", "verify", other, "--keys", s.keys); got.code == 0 || !strings.Contains(got.stderr, "is not proved") {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
	for until, code := range map[string]int{"1200": 0, "e-7-1200": 0, "1201": 1, "0": 2, "x": 2, "e-": 2} {
		if got := sortie(t, nil, "", "events", "verify", file, "--keys", s.keys, "--until", until); got.code != code {
			t.Errorf("--until %s: got %+v, want exit code %d", until, got, code)
		}
	}
	if got := sortie(t, nil, "", "events", "verify", file); got.code != 2 || !strings.Contains(got.stderr, "--keys") {
		t.Errorf("got %+v without keys, want exit code 2", got)
	}
}

// The command shows each event once although its stream ends several times.
func TestEventsTailResumes(t *testing.T) {
	t.Parallel()
	s := newEventServer(t)
	s.add(t, eventtype.Accepted)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
	defer stop()
	ended := make(chan int, 1)
	go func() {
		ended <- sortieTo(ctx, in, s.env, "events", "tail", "--json", "--after", "earliest", "--type", "job.*")
		_ = in.Close()
	}()
	lines := json.NewDecoder(out)
	for n := int64(1); n <= 30; n++ {
		var e events.Envelope
		if err := lines.Decode(&e); err != nil || e.Job.ID != streamtest.Task(n) {
			t.Fatalf("got %+v, %v, want the event %d", e.Job, err, n)
		}
		if n == 15 {
			if err := clock.Sleep(ctx, clock.System{}, 3*time.Second); err != nil { // the stream ends during the sleep
				t.Fatal(err)
			}
		}
		s.add(t, eventtype.Queued)
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("got exit code %d after an interrupt, want 0", code)
	}
}
