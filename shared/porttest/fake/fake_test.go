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

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
	"github.com/sortie-dev/sortie/shared/job"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/porttest"
	"github.com/sortie-dev/sortie/shared/porttest/fake"
	"github.com/sortie-dev/sortie/shared/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSigner(t *testing.T) {
	t.Parallel()
	porttest.Signer(t, func(*testing.T) (port.Signer, func() port.Signer) {
		open := func() port.Signer { return fake.NewSigner(nil, "new", "old") }
		return open(), open
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
		return porttest.PublisherHarness{Publisher: p, TooLarge: fake.MaxDetail, Listen: func(context.Context) ([]porttest.Delivered, bool) {
			events := p.Events()[next:]
			next += len(events)
			var all []porttest.Delivered
			for _, e := range events {
				all = append(all, porttest.Delivered{Type: string(e.Event.Type), Detail: e.Detail})
			}
			return all, len(all) > 0
		}}
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
				_, err := publisher.Publish(t.Context(), []port.PublishedEvent{{Event: run.Event{ID: s}, Detail: []byte("{}")}})
				return err
			},
			func() string {
				var ids []string
				for _, e := range publisher.Events() {
					ids = append(ids, e.Event.ID)
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
