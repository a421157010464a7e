package fake_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/events"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSigner(t *testing.T) {
	t.Parallel()
	porttest.Signer(t, func(*testing.T) (port.Signer, func() port.Signer) {
		open := func() port.Signer { return fake.NewSigner(nil, "new", "old") }
		return open(), open
	})
}

func TestSeats(t *testing.T) {
	t.Parallel()
	porttest.Seats(t, func(t *testing.T) porttest.SeatsHarness {
		now := clock.NewVirtual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
		s := fake.NewSeats(now, nil)
		return porttest.SeatsHarness{Seats: s, Other: s, Now: now.Now, Advance: now.Advance}
	})
}

func TestConnections(t *testing.T) {
	t.Parallel()
	porttest.Connections(t, func(*testing.T) port.Connections { return fake.NewConnections(nil) })
}

func TestSockets(t *testing.T) {
	t.Parallel()
	porttest.Sockets(t, func(*testing.T) porttest.SocketsHarness {
		s := fake.NewSockets(nil)
		return porttest.SocketsHarness{Sockets: s, Connect: s.Connect, Sent: s.Sent, Open: s.Open}
	})
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	porttest.Secrets(t, func(*testing.T) porttest.SecretsHarness {
		s := fake.NewSecrets(nil)
		return porttest.SecretsHarness{Secrets: s, Put: s.Put, Delete: s.Delete}
	})
}

func TestPublisher(t *testing.T) {
	t.Parallel()
	porttest.Publisher(t, func(*testing.T) porttest.PublisherHarness {
		p := fake.NewPublisher(nil)
		next := 0
		return porttest.PublisherHarness{Publisher: p, TooLarge: fake.MaxSigned, Listen: func(context.Context) ([]porttest.Delivered, bool) {
			events := p.Events()[next:]
			next += len(events)
			var all []porttest.Delivered
			for _, e := range events {
				detail, err := json.Marshal(e)
				if err != nil {
					panic(err)
				}
				all = append(all, porttest.Delivered{Type: e.Type, Detail: detail})
			}
			return all, len(all) > 0
		}}
	})
}

func TestEventKeyStore(t *testing.T) {
	t.Parallel()
	porttest.EventKeyStore(t, func(*testing.T) port.EventKeyStore { return fake.NewEventKeyStore(nil) })
}

func TestEventKeys(t *testing.T) {
	t.Parallel()
	porttest.EventKeys(t, func(*testing.T) porttest.EventKeysHarness {
		keys := fake.NewEventKeys(nil)
		return porttest.EventKeysHarness{Keys: keys, Rotate: keys.Rotate}
	})
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	porttest.Outputs(t, func(*testing.T) porttest.OutputsHarness {
		o := fake.NewOutputs(clock.System{}, nil)
		return porttest.OutputsHarness{
			Outputs: o, Big: 1 << 20, HTTP: &http.Client{Transport: o},
			OutputsAt: func(now time.Time) port.Outputs { return fake.NewOutputs(clock.NewVirtual(now), nil) },
			Put: func(t *testing.T, key, contentType string, body io.ReaderAt, size int64) {
				content, err := io.ReadAll(io.NewSectionReader(body, 0, size))
				if err != nil {
					t.Fatal(err)
				}
				o.Store(port.Uploads, key, contentType, string(content))
			},
			Begin:      func(_ *testing.T, key string) { o.BeginUpload(key) },
			Unfinished: func(_ *testing.T, prefix string) int { return o.Unfinished(prefix) },
		}
	})
}

// recorder is an Executions that counts its calls.
type recorder struct {
	port.Executions
	started []string
}

func (r *recorder) Start(_ context.Context, name string, _ json.RawMessage) error {
	r.started = append(r.started, name)
	return nil
}

func TestFakesFailInBothWays(t *testing.T) {
	t.Parallel()
	plan := func() fake.Plan { return fake.Script(fake.Lost, fake.Unsure, fake.Applied) }
	inner, outputs, publisher := &recorder{}, fake.NewOutputs(clock.System{}, plan()), fake.NewPublisher(plan())
	executions := fake.NewExecutions(inner, plan())
	for name, row := range map[string]struct {
		write func(subject string) error
		wrote func() string
	}{
		"executions": {
			func(s string) error { return executions.Start(t.Context(), s, nil) },
			func() string { return strings.Join(inner.started, " ") },
		},
		"outputs": {
			func(s string) error { return outputs.Put(t.Context(), port.Uploads, s, "text/plain", nil) },
			func() string {
				var keys []string
				for _, key := range []string{"a", "b", "c"} {
					if _, err := outputs.Head(t.Context(), port.Uploads, key); err == nil {
						keys = append(keys, key)
					} else if !errors.Is(err, port.ErrNotFound) {
						t.Error(err)
					}
				}
				return strings.Join(keys, " ")
			},
		},
		"publisher": {
			func(s string) error {
				_, err := publisher.Publish(t.Context(), []port.PublishedEvent{{Message: events.Message{ID: s, Data: []byte("{}")}}})
				return err
			},
			func() string {
				var ids []string
				for _, e := range publisher.Events() {
					ids = append(ids, e.ID)
				}
				return strings.Join(ids, " ")
			},
		},
	} {
		for i, subject := range []string{"a", "b", "c"} {
			if err := row.write(subject); fault.Is(err, fault.Unavailable) != (i < 2) {
				t.Errorf("%s: write %s: got %v", name, subject, err)
			}
		}
		if got := row.wrote(); got != "b c" {
			t.Errorf("%s: got %q applied, want %q", name, got, "b c")
		}
	}
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	porttest.Schedules(t, func(*testing.T) porttest.SchedulesHarness {
		s, now := fake.NewSchedules(nil), time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
		return porttest.SchedulesHarness{Schedules: s, Now: now, Advance: func(d time.Duration) []job.Ref {
			now = now.Add(d)
			return s.Take(now)
		}}
	})
}

func TestFeed(t *testing.T) {
	t.Parallel()
	porttest.Feed(t, func(t *testing.T) porttest.FeedHarness {
		now := clock.NewVirtual(newYear)
		f := fake.NewFeed(now, time.Hour, nil, func(err error) { t.Error(err) })
		return porttest.FeedHarness{Feed: f, Other: f, Retention: time.Hour, Now: now.Now, Advance: now.Advance, Lose: f.Lose}
	})
}

// TestFeedWithFailures checks that writers that read again after a failure store each record
// once.
func TestFeedWithFailures(t *testing.T) {
	t.Parallel()
	f := fake.NewFeed(clock.System{}, time.Hour, fake.Seeded(3, 0.3), func(err error) { t.Error(err) })
	porttest.FeedWriters(t, f, f, time.Now)
	if lost, unsure := f.Failures(); lost == 0 || unsure == 0 {
		t.Errorf("got %d calls lost and %d unsure, want both", lost, unsure)
	}
}

func TestFeedReportsMisuse(t *testing.T) {
	t.Parallel()
	var reports []string
	f := fake.NewFeed(clock.System{}, time.Hour, nil, func(err error) { reports = append(reports, err.Error()) })
	for i, id := range []string{"a", "b", "a"} {
		if _, err := f.Append(t.Context(), "s", port.Batch{After: int64(i), Records: []port.FeedRecord{{ID: id}}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(reports) != 1 || !strings.Contains(reports[0], "record a") {
		t.Errorf("got reports %q, want one about record a", reports)
	}
}

func TestOutbox(t *testing.T) {
	t.Parallel()
	porttest.Outbox(t, func(t *testing.T) (port.Outbox, func()) { return fake.NewOutbox(inner(t), nil), nil })
}

func TestOutboxFailsInBothWays(t *testing.T) {
	t.Parallel()
	store := inner(t)
	o := fake.NewOutbox(store, fake.Script(fake.Lost, fake.Unsure, fake.Lost, fake.Unsure))
	for _, id := range []string{"a", "b"} {
		if err := o.SetAside(t.Context(), port.StoredChange{ID: id, Record: []byte("{}")}); !fault.Is(err, fault.Unavailable) {
			t.Errorf("set aside %s: got %v, want an Unavailable fault", id, err)
		}
	}
	for _, want := range []int{1, 0} { // b, until the second call removes it
		if err := o.Published(t.Context(), "b"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("got %v, want an Unavailable fault", err)
		}
		if changes, _, err := o.Stored(t.Context(), "", 10); err != nil || len(changes) != want {
			t.Errorf("got changes %v, %v, want %d", changes, err, want)
		}
	}
}
