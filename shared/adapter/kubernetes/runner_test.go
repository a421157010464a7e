package kubernetes

import (
	"bytes"
	"context"
	"hash/fnv"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/local/proof/await"
	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type logTo struct{ t *testing.T }

func (l logTo) Write(p []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(p)))
	return len(p), nil
}

var namespaces = []string{"runs-1", "runs-2"}

func setup(t *testing.T, change ...func(*Config)) (*cluster, *Runner) {
	t.Helper()
	c := newCluster(t)
	cfg := Config{
		Client: c, Cluster: "test", Orchestrator: "sortie", Namespaces: namespaces, Unschedulable: time.Millisecond,
		Clock: clock.System{}, Log: slog.New(slog.NewTextHandler(logTo{t}, nil)),
	}
	for _, change := range change {
		change(&cfg)
	}
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return c, r
}

// spread is a Runner whose launches name a namespace, as launches of different pools do.
type spread struct {
	*Runner
	c *cluster
}

func (s spread) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	spec.Runner, spec.Settings = kind, &platform.KubernetesSettings{Namespace: namespaceOf(spec.Name)}
	return s.Runner.Launch(ctx, spec)
}

// Wait implements port.Runner. The cluster resumes a Job that it has suspended.
func (s spread) Wait(ctx context.Context, m port.Machine, phase port.MachinePhase, limit time.Duration) (port.MachineStatus, error) {
	name, _, _ := strings.Cut(m.ID, ".")
	s.c.resume(m.App, name, false)
	return s.Runner.Wait(ctx, m, phase, limit)
}

func namespaceOf(name string) string {
	hash := fnv.New32a()
	hash.Write([]byte(name))
	return namespaces[hash.Sum32()%2]
}

func TestRunner(t *testing.T) {
	t.Parallel()
	suite(t, func(*Config) {})
}

// TestRunnerThatPolls runs the suite without a watch, as functions on AWS do.
func TestRunnerThatPolls(t *testing.T) {
	t.Parallel()
	suite(t, func(c *Config) { c.Poll = true })
}

func suite(t *testing.T, change func(*Config)) {
	porttest.Runner(t, func(t *testing.T) porttest.RunnerHarness {
		c, r := setup(t, change)
		return porttest.RunnerHarness{
			Runner: spread{r, c}, Image: image, NoImage: noImage,
			Unknown: port.Machine{Runner: kind, Cluster: "test", App: "runs-1", ID: "job.0f9b6a0c-5a36-4e7e-b9f6-6f5f6f2f0a10"},
			Occupy:  func(t *testing.T, name string) { c.occupy(t, namespaceOf(name), name) },
			Jam: func(_ *testing.T, name string) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.held[name] = true
			},
			Fault: func(_ *testing.T, name string, how porttest.RunnerFault) {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.faults[name] = how
			},
			FailPart: func(t *testing.T, m port.MachineStatus) {
				c.breakNamespace(m.App)
				if !r.cfg.Poll {
					awaitBroken(t, r.parts[m.App])
				}
			},
		}
	})
}

// awaitBroken returns when the part has detected that it cannot be watched.
func awaitBroken(t *testing.T, p *part) {
	t.Helper()
	await.Until(t, "broken part", func() bool { return p.health() != nil })
}
