package kubernetes

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// TestPodThatGetsNoNodeAfterItsLaunch suspends the Job during its launch, as a queue of the
// cluster does.
func TestPodThatGetsNoNodeAfterItsLaunch(t *testing.T) {
	t.Parallel()
	c, r := setup(t)
	c.held["queued"] = true
	m, err := r.Launch(t.Context(), spec("queued"))
	if err != nil || m.Phase != port.MachineCreating || m.StartFault != nil {
		t.Fatalf("got %+v, %v, want a machine that may start", m, err)
	}
	c.resume(m.App, m.Name, true)
	now, err := r.Wait(t.Context(), m.Machine, port.MachineRunning, time.Minute)
	if f := now.StartFault; err != nil || f == nil || f.Code != fault.Capacity || !strings.Contains(f.Message, "0/1 nodes are available") {
		t.Errorf("got %+v, %v, want a %s fault with the cluster's words", now, err, fault.Capacity)
	}
	listed := false
	err = r.List(t.Context(), func(s port.MachineStatus) bool {
		listed = s.Machine == m.Machine && s.StartFault != nil
		return true
	})
	if err != nil || !listed {
		t.Errorf("got listed %v, %v, want the machine with its fault", listed, err)
	}
}

// TestEndOfAFailedLaunchIsShown inspects the machine like a sweep that found it during the
// launch.
func TestEndOfAFailedLaunchIsShown(t *testing.T) {
	t.Parallel()
	c, r := setup(t)
	refused := spec("refused")
	refused.Image = noImage
	if _, err := r.Launch(t.Context(), refused); !fault.Is(err, fault.Image) {
		t.Fatalf("got error %v, want %s", err, fault.Image)
	}
	made, err := c.BatchV1().Jobs(namespaces[0]).Get(t.Context(), "refused", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := port.Machine{Runner: kind, Cluster: "test", App: namespaces[0], ID: "refused." + string(made.UID)}
	if now, err := r.Inspect(t.Context(), m); err != nil || now.Phase != port.MachineGone || now.StartFault != nil {
		t.Errorf("got %+v, %v, want a machine that is gone", now, err)
	}
}
