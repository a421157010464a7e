//go:build kubernetes

package kubernetes_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// names returns the names of the machines.
func (s stage) names(t *testing.T) (names []string, err error) {
	t.Helper()
	err = s.List(t.Context(), func(m port.MachineStatus) bool { names = append(names, m.Name); return true })
	return names, err
}

// TestWatchIsCut ends one program and starts another while the namespace cannot be watched.
// Both changes are seen after the outage.
func TestWatchIsCut(t *testing.T) {
	t.Parallel()
	s := setup(t)
	end := filepath.Join(folder(t), "end")
	m := s.launch(t, job("watched", until(end, 6)))
	s.faults.cutWatches(m.App, true)
	s.await(t, "a broken watch", func() bool { _, err := s.names(t); return err != nil })
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.await(t, "end that the API server shows", func() bool {
		now, err := s.Inspect(t.Context(), m.Machine)
		return err == nil && now.Phase == port.MachineGone && now.Exit != nil && now.Exit.Code == 6
	})
	other := s.launch(t, job("unwatched", forever))
	s.faults.cutWatches(m.App, false)
	if exit := s.gone(t, m); exit == nil || exit.Code != 6 {
		t.Errorf("got exit %v after the outage, want code 6", exit)
	}
	s.await(t, "list with the other machine alone", func() bool {
		names, err := s.names(t)
		return err == nil && slices.Equal(names, []string{other.Name})
	})
}

// TestVersionOfAWatchExpires checks that a watch that gets 410 lists the namespace again.
func TestVersionOfAWatchExpires(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.launch(t, job("before", forever))
	s.faults.expire(m.App)
	s.await(t, "refused watch", func() bool { return s.faults.hasExpired(m.App) })
	other := s.launch(t, job("behind", forever))
	s.await(t, "list with both machines", func() bool {
		names, err := s.names(t)
		return err == nil && slices.Equal(names, []string{m.Name, other.Name})
	})
	if err := s.Stop(t.Context(), m.Machine, time.Minute); err != nil {
		t.Fatal(err)
	}
	if exit := s.gone(t, m); exit == nil || !exit.Requested {
		t.Errorf("got exit %v, want one on request", exit)
	}
}

// TestTooManyRequests checks a cluster that refuses every call for a while. No machine counts
// as gone, and no machine is created.
func TestTooManyRequests(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.launch(t, job("busy", forever))
	s.faults.setBusy(true)
	late := job("too-many", "exit 0")
	for call, do := range map[string]func(context.Context) error{
		"Inspect": func(ctx context.Context) error { _, err := s.Inspect(ctx, m.Machine); return err },
		"Stop":    func(ctx context.Context) error { return s.Stop(ctx, m.Machine, time.Minute) },
		"Destroy": func(ctx context.Context) error { return s.Destroy(ctx, m.Machine) },
		"Launch":  func(ctx context.Context) error { _, err := s.Launch(ctx, late); return err },
	} {
		if err := do(t.Context()); !fault.Is(err, fault.Throttled) {
			t.Errorf("%s: got %v, want %s", call, err, fault.Throttled)
		}
	}
	if refused := s.faults.setBusy(false); refused < 4 {
		t.Errorf("got %d refused calls, want at least one of each", refused)
	}
	if now, err := s.Inspect(t.Context(), m.Machine); err != nil || now.Phase != port.MachineRunning {
		t.Errorf("got %+v, %v, want the running machine", now, err)
	}
	if names, err := s.names(t); err != nil || !slices.Equal(names, []string{m.Name}) {
		t.Errorf("got %v, %v, want the machine that runs", names, err)
	}
	if exit := s.gone(t, s.launch(t, late)); exit == nil || exit.Code != 0 {
		t.Errorf("got exit %v of the later launch, want code 0", exit)
	}
}
