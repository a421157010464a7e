//go:build kubernetes

package kubernetes_test

import (
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestAPIServerIsKilled has its own cluster.
func TestAPIServerIsKilled(t *testing.T) {
	t.Parallel()
	c, admin := ownCluster(t)
	s := setupOn(t, c, admin)
	m := s.launch(t, job("survives", forever))
	if err := c.Kill("kube-apiserver"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Inspect(t.Context(), m.Machine); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got error %v without an API server, want %s", err, fault.Unavailable)
	}
	if _, err := s.Launch(t.Context(), job("too-early", "exit 0")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got error %v without an API server, want %s", err, fault.Unavailable)
	}
	if err := c.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if now, err := s.Inspect(t.Context(), m.Machine); err != nil || now.Phase != port.MachineRunning {
		t.Errorf("got %+v, %v after the restart, want a running machine", now, err)
	}
	if err := s.Stop(t.Context(), m.Machine, time.Minute); err != nil {
		t.Fatal(err)
	}
	if exit := s.gone(t, m); exit == nil || !exit.Requested || exit.Code != 0 {
		t.Errorf("got exit %v, want one on request", exit)
	}
	s.await(t, "complete list", func() bool {
		return s.List(t.Context(), func(port.MachineStatus) bool { return true }) == nil
	})
}
