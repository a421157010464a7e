package container_test

import (
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/adapter/container"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
}

func TestFindAddresses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env   map[string]string
		want  string
		count int
	}{
		"Docker's variable first": {map[string]string{"DOCKER_HOST": "tcp://engine:2376", "CONTAINER_HOST": "unix:///p"}, "tcp://engine:2376", 1},
		"Podman's variable":       {map[string]string{"CONTAINER_HOST": "unix:///run/p.sock"}, "unix:///run/p.sock", 1},
		"a path":                  {map[string]string{"DOCKER_HOST": "/run/d.sock"}, "unix:///run/d.sock", 1},
		"usual sockets":           {nil, "unix:///var/run/docker.sock", 2},
		"those of the user":       {map[string]string{"HOME": "/home/u", "XDG_RUNTIME_DIR": "/run/user/1"}, "unix:///var/run/docker.sock", 9},
	} {
		got, err := container.FindAddresses(lookup(test.env))
		if err != nil || len(got.Tried) != test.count || got.Tried[0] != test.want || (got.Variable != "") != (test.count == 1) {
			t.Errorf("%s: got %+v, %v, want %d with %s", name, got, err, test.count, test.want)
		}
	}
	for _, malformed := range []string{"ssh://host/run/podman.sock", "engine:2375", "unix://"} {
		if _, err := container.FindAddresses(lookup(map[string]string{"DOCKER_HOST": malformed})); err == nil || !strings.Contains(err.Error(), "DOCKER_HOST") {
			t.Errorf("%s: got error %v, want one that names DOCKER_HOST", malformed, err)
		}
	}
}

func TestWithoutAnEngine(t *testing.T) {
	t.Parallel()
	missing := "unix://" + t.TempDir() + "/none.sock"
	r, _ := newRunner(t, missing, "test")
	_, err := r.Launch(limited(t), spec("r-none", "rest"))
	if !fault.Is(err, fault.Image) || fault.Of(err).Retryable || !strings.HasPrefix(fault.Of(err).Message, "no container engine: ") || !strings.Contains(fault.Of(err).Message, "Start Docker or Podman") {
		t.Errorf("got %v, want an error that says what to do", err)
	}
	if err := r.List(limited(t), func(port.MachineStatus) bool { return true }); err != nil {
		t.Errorf("got %v, want an empty list", err)
	}
	if _, err := r.Inspect(limited(t), unknown); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s: a machine whose engine is missing is not gone", err, fault.Unavailable)
	}
	named, _ := newRunner(t, missing, "test", func(c *container.Config) { c.Addresses.Variable = "DOCKER_HOST" })
	if _, err := named.Launch(limited(t), spec("r-none", "rest")); !fault.Is(err, fault.Unavailable) || !strings.Contains(fault.Of(err).Message, "DOCKER_HOST") {
		t.Errorf("got %v, want %s that names the variable", err, fault.Unavailable)
	}
}

func TestConfigNamesAllProblems(t *testing.T) {
	t.Parallel()
	_, err := container.New(container.Config{Cluster: "A"})
	for _, want := range []string{"the folder", "the clock", "the logger", "the cluster"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q in it", err, want)
		}
	}
}
