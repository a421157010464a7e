package kubernetes

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/sortie-dev/sortie/shared/port"
)

// TestStateIsWatchedAndCached checks that the informers read each namespace once, and that
// further reads of machines make no call.
func TestStateIsWatchedAndCached(t *testing.T) {
	t.Parallel()
	c, r := setup(t)
	m := launched(t, r, spec("r-cached"))
	for range 20 {
		if err := r.List(t.Context(), func(port.MachineStatus) bool { return true }); err != nil {
			t.Fatal(err)
		}
	}
	reads := func() int { return c.calls("list pods") + c.calls("list jobs") + c.calls("get jobs") }
	before := reads()
	for range 20 {
		if err := r.List(t.Context(), func(port.MachineStatus) bool { return true }); err != nil {
			t.Fatal(err)
		}
		if now, err := r.Wait(t.Context(), m.Machine, port.MachineGone, time.Minute); err != nil || now.Phase != port.MachineGone {
			t.Fatalf("got %+v, %v, want the machine from the cache", now, err)
		}
		if now, err := r.Inspect(t.Context(), m.Machine); err != nil || now.Exit == nil {
			t.Fatalf("got %+v, %v, want the exit from the cache", now, err)
		}
	}
	if after := reads(); after != before {
		t.Errorf("got %d calls for 60 looks, want none", after-before)
	}
	if got, want := c.calls("watch pods"), len(namespaces); got != want {
		t.Errorf("got %d watches of pods, want one of each of %d namespaces", got, want)
	}
}

// TestCallsAreLimited checks the limit of the client that Connect returns.
func TestCallsAreLimited(t *testing.T) {
	t.Parallel()
	client, err := ConnectWith(&rest.Config{Host: "https://east.example.org"})
	if err != nil {
		t.Fatal(err)
	}
	limiter := client.(*calls).batch.GetRateLimiter()
	if limiter.QPS() != CallsPerSecond {
		t.Errorf("got %g calls a second, want %d", limiter.QPS(), CallsPerSecond)
	}
	accepted := 0
	for range 2 * CallBurst {
		if limiter.TryAccept() {
			accepted++
		}
	}
	if accepted < CallBurst || accepted > CallBurst+CallsPerSecond {
		t.Errorf("got %d calls at once, want %d", accepted, CallBurst)
	}
}
