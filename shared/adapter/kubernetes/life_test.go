package kubernetes

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// spec is the launch of a program that exits with 0.
func spec(name string) port.LaunchSpec {
	return port.LaunchSpec{
		Name: name, Image: image, CPUs: 1, MemoryMB: 256, StopGrace: time.Second, Env: map[string]string{"RUNNER_DOES": "exit 0"},
		Owner: port.MachineOwner{Tenant: "acme", RunID: "run", Attempt: 1},
	}
}

// launched creates a machine and waits until it is gone.
func launched(t *testing.T, r *Runner, s port.LaunchSpec) port.MachineStatus {
	t.Helper()
	m, err := r.Launch(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = r.Wait(t.Context(), m.Machine, port.MachineGone, time.Minute); err != nil || m.Phase != port.MachineGone {
		t.Fatalf("got %+v, %v, want a machine that is gone", m, err)
	}
	return m
}

// TestGoneMachineIsDeleted keeps the Job and its pod for the time in which the exit and the log
// are read. The first list after that deletes them.
func TestGoneMachineIsDeleted(t *testing.T) {
	t.Parallel()
	c, r := setup(t, func(c *Config) { c.KeepFor = time.Nanosecond })
	m := launched(t, r, spec("r-reaped"))
	list := func() {
		t.Helper()
		if err := r.List(t.Context(), func(m port.MachineStatus) bool { t.Errorf("got %+v listed, want no live machine", m); return true }); err != nil {
			t.Fatal(err)
		}
	}
	list() // sees it gone
	if c.calls("delete jobs") != 0 || c.pod("runs-1", "r-reaped-x") == nil {
		t.Error("got the Job deleted as soon as it was gone, want it kept")
	}
	changed, end := r.parts["runs-1"].subscribe(placeAt(t, m).uid)
	defer end()
	list()
	for r.parts["runs-1"].seen(placeAt(t, m).uid).known() {
		<-changed
	}
	if c.pod("runs-1", "r-reaped-x") != nil {
		t.Error("got the pod of a deleted Job, want its finalizer removed")
	}
	if _, err := r.Inspect(t.Context(), m.Machine); err == nil {
		t.Error("got a machine that was deleted")
	}
}

func placeAt(t *testing.T, m port.MachineStatus) place {
	t.Helper()
	at, ok := placeOf("test", m.Machine)
	if !ok {
		t.Fatalf("got machine %+v, want one of this cluster", m)
	}
	return at
}

// TestStoppedPodIsMarked stops a machine whose pod has changed since it was read, so that
// it is read again.
func TestStoppedPodIsMarked(t *testing.T) {
	t.Parallel()
	c, r := setup(t)
	s := spec("r-marked")
	s.Env["RUNNER_DOES"] = "rest"
	m, err := r.Launch(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	changed := false
	c.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		if changed {
			return false, nil, nil
		}
		changed = true
		return true, nil, apierrors.NewConflict(podsKind.GroupResource(), "r-marked-x", errors.New("the object has been modified"))
	})
	if err := r.Stop(t.Context(), m.Machine, time.Minute); err != nil {
		t.Fatal(err)
	}
	if m, err = r.Wait(t.Context(), m.Machine, port.MachineGone, time.Minute); err != nil || m.Exit == nil || !m.Exit.Requested {
		t.Errorf("got %+v, %v, want an end that was requested", m, err)
	}
	if p := c.pod("runs-1", "r-marked-x"); p == nil || p.Annotations[keyStopped] == "" || !changed {
		t.Errorf("got pod %+v, want one that is marked as stopped at the second try", p)
	}
}

// TestFinishedMachineIsAdopted checks that a launch whose response was lost does not run its
// program again after its end.
func TestFinishedMachineIsAdopted(t *testing.T) {
	t.Parallel()
	c, r := setup(t)
	first := launched(t, r, spec("r-lost"))
	again, err := r.Launch(t.Context(), spec("r-lost"))
	if err != nil || again.ID != first.ID || again.Exit == nil {
		t.Errorf("got %+v, %v, want the machine that is gone", again, err)
	}
	if len(c.programs) != 1 {
		t.Errorf("got %d programs started, want 1", len(c.programs))
	}
}

func TestPlacementIsChecked(t *testing.T) {
	t.Parallel()
	_, r := setup(t)
	for want, settings := range map[string]platform.KubernetesSettings{
		`unknown cluster "other"`: {Cluster: "other"},
		`namespace "other" is not one of the deployment, want runs-1 or runs-2`: {Namespace: "other"},
		`settings.podDefaults: unknown field "x"`:                               {PodDefaults: []byte(`{"x": 1}`)},
	} {
		s := spec("r-misplaced")
		s.Settings = &settings
		_, err := r.Launch(t.Context(), s)
		if !fault.Is(err, fault.LaunchRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// TestLogEnds checks that the middle of a long log is omitted and marked.
func TestLogEnds(t *testing.T) {
	t.Parallel()
	for _, length := range []int{0, 10, limit.Log, 2 * limit.Log, 5*limit.Log + 7} {
		text := bytes.Repeat([]byte("0123456789abcdef"), length/16+1)[:length]
		got, err := readEnds(io.MultiReader(bytes.NewReader(text)), limit.Log)
		switch {
		case err != nil:
			t.Errorf("%d bytes: %v", length, err)
		case length <= 2*limit.Log && !bytes.Equal(got, text):
			t.Errorf("%d bytes: got %d, want all", length, len(got))
		case length > 2*limit.Log && (!bytes.HasPrefix(got, text[:limit.Log]) || !bytes.HasSuffix(got, text[len(text)-limit.Log:]) || len(got) > 2*limit.Log+200):
			t.Errorf("%d bytes: got %d, want both ends", length, len(got))
		}
	}
}

// TestForeignJobIsNotAMachine does not adopt a Job of another Sortie instance with the same
// name and attempt.
func TestForeignJobIsNotAMachine(t *testing.T) {
	t.Parallel()
	c, r := setup(t)
	other, err := jobFor(Config{Orchestrator: "other"}, "runs-1", spec("r-theirs"), "s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.BatchV1().Jobs("runs-1").Create(context.Background(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Launch(t.Context(), spec("r-theirs")); !fault.Is(err, fault.LaunchRefused) {
		t.Errorf("got %v, want %s", err, fault.LaunchRefused)
	}
}
