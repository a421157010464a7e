package kubernetes

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestCurrentFollowsItsCredentials changes the client, as a rotation does, and fails to get
// one.
func TestCurrentFollowsItsCredentials(t *testing.T) {
	t.Parallel()
	one, other := newCluster(t), newCluster(t)
	var client Client = one
	var failure error
	r, err := NewCurrent(Config{
		Cluster: "test", Orchestrator: "sortie", Namespaces: namespaces, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
	}, func(context.Context) (Client, error) { return client, failure })
	if err != nil {
		t.Fatal(err)
	}
	list := func() error { return r.List(t.Context(), func(port.MachineStatus) bool { return true }) }
	for want := range 2 {
		if err := list(); err != nil {
			t.Fatal(err)
		}
		if got, first := other.calls("list jobs"), one.calls("list jobs"); got != want*len(namespaces) || first != len(namespaces) {
			t.Errorf("got %d calls of the first cluster and %d of the other one, want %d and %d", first, got, len(namespaces), want*len(namespaces))
		}
		client = other
	}
	failure = errors.New("no secret")
	m := port.Machine{Runner: kind, Cluster: "test", App: namespaces[0], ID: "job.0f9b6a0c-5a36-4e7e-b9f6-6f5f6f2f0a10"}
	for what, call := range map[string]func() error{
		"launch":  func() error { _, err := r.Launch(t.Context(), port.LaunchSpec{}); return err },
		"inspect": func() error { _, err := r.Inspect(t.Context(), m); return err },
		"wait":    func() error { _, err := r.Wait(t.Context(), m, port.MachineGone, 0); return err },
		"list":    list,
		"stop":    func() error { return r.Stop(t.Context(), m, 0) },
		"destroy": func() error { return r.Destroy(t.Context(), m) },
		"logs":    func() error { _, err := r.Logs(t.Context(), m); return err },
	} {
		err := call()
		if f, is := errors.AsType[*fault.Fault](err); !is || f.Code != fault.Unavailable || errors.Is(err, port.ErrNotFound) || !strings.Contains(err.Error(), "credentials of the cluster") {
			t.Errorf("%s: got %v, want Unavailable", what, err)
		}
	}
	if _, err := NewCurrent(Config{}, nil); err == nil || !strings.Contains(err.Error(), "cluster's name is missing") {
		t.Errorf("got %v, want the problems of the configuration", err)
	}
}
