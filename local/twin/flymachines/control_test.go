package flymachines_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/local/twin/flymachines/faults"
)

const (
	forever  = `read < <(sleep 600)`
	stubborn = `trap "" TERM INT; ` // bash keeps the trap across exec
)

func TestStop(t *testing.T) {
	t.Parallel()
	m := setup(t)
	for name, test := range map[string]struct {
		script       string
		stop         fly.StopMachineInput
		code, signal int
	}{
		"the config's signal": {saying("up") + forever, fly.StopMachineInput{}, 143, 15},
		"another signal":      {saying("up") + forever, fly.StopMachineInput{Signal: "SIGHUP"}, 129, 1},
		"handled":             {`trap "exit 4" TERM; ` + saying("up") + "sleep 600 & wait", fly.StopMachineInput{}, 4, -1},
		"ignored until the grace is over": {
			stubborn + saying("up") + "while :; do sleep 600; done",
			fly.StopMachineInput{Timeout: fly.Duration{Duration: 50 * time.Millisecond}},
			137, 9,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := connect(t, m.url)
			made := mine.launch(mine.input("", test.script))
			mine.receive()
			test.stop.ID = made.ID
			if err := mine.client.Stop(t.Context(), app, test.stop, ""); err != nil {
				t.Fatal(err)
			}
			exit := mine.exit(made.ID)
			if exit.ExitCode != test.code || exit.Signal != test.signal || !exit.RequestedStop {
				t.Errorf("exit = %+v, want code %d, signal %d, requested", exit, test.code, test.signal)
			}
			err := mine.client.Stop(t.Context(), app, test.stop, "")
			refused(t, err, http.StatusPreconditionFailed, "current state: 'destroyed'")
		})
	}
}

func TestSignalIsNoStopRequest(t *testing.T) {
	t.Parallel()
	m := setup(t)
	made := m.launch(m.input("", saying("up")+"sleep 600 & wait"))
	m.wait(made.ID, "started")
	m.receive()
	if err := m.client.Kill(t.Context(), app, made.ID); err != nil {
		t.Fatal(err)
	}
	if exit := m.exit(made.ID); exit.ExitCode != 137 || exit.Signal != 9 || exit.RequestedStop {
		t.Errorf("exit = %+v", exit)
	}
	for _, signal := range []any{"SIGNOPE", 99, true, nil} {
		status, body := m.call("POST", "/v1/apps/"+app+"/machines/"+made.ID+"/signal", "Bearer "+token, map[string]any{"signal": signal})
		if status != http.StatusBadRequest {
			t.Errorf("signal %v: %d %v", signal, status, body)
		}
	}
}

func TestDestroy(t *testing.T) {
	t.Parallel()
	m := setup(t)
	in := m.input("", saying("$$")+"sleep 600 & wait")
	made := m.launch(in)
	m.receive()
	m.wait(made.ID, "started")
	err := m.client.Destroy(t.Context(), app, fly.RemoveMachineInput{ID: made.ID}, "")
	refused(t, err, http.StatusPreconditionFailed, "unable to destroy machine from current state: 'started'")
	for range 2 {
		if err := m.client.Destroy(t.Context(), app, fly.RemoveMachineInput{ID: made.ID, Kill: true}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if exit := m.exit(made.ID); exit.Signal != 9 || !exit.RequestedStop {
		t.Errorf("exit = %+v", exit)
	}
	if err := m.client.Destroy(t.Context(), app, fly.RemoveMachineInput{ID: made.ID, Kill: true}, ""); err != nil {
		t.Errorf("second destroy of a destroyed machine: got %v, want no error", err)
	}
	err = m.client.Destroy(t.Context(), app, fly.RemoveMachineInput{ID: "00000000000000", Kill: true}, "")
	refused(t, err, http.StatusNotFound, "machine not found")
}

func TestStoppedMachineStartsAgain(t *testing.T) {
	t.Parallel()
	m := setup(t)
	in := m.input("kept", saying("up")+forever)
	in.Config.AutoDestroy = false
	in.SkipLaunch = true
	made := m.launch(in)
	if made.State != "stopped" {
		t.Fatalf("machine with skip_launch: got state %s, want stopped", made.State)
	}
	for range 7 {
		if _, err := m.client.Start(t.Context(), app, made.ID, ""); err != nil {
			t.Fatal(err)
		}
		m.receive()
		if err := m.client.Stop(t.Context(), app, fly.StopMachineInput{ID: made.ID}, ""); err != nil {
			t.Fatal(err)
		}
		m.wait(made.ID, "stopped")
	}
	got := m.get(made.ID)
	if len(got.Events) != 20 || got.Events[0].Type != "exit" {
		t.Errorf("%d events: %s", len(got.Events), events(got))
	}
	if _, err := m.client.Start(t.Context(), app, made.ID, ""); err != nil {
		t.Fatal(err)
	}
	m.receive()
	m.wait(made.ID, "started")
	if err := m.client.Restart(t.Context(), app, fly.RestartMachineInput{ID: made.ID, ForceStop: true}, ""); err != nil {
		t.Fatal(err)
	}
	m.receive()
	if e := m.get(made.ID).GetLatestEventOfType("exit").Request.ExitEvent; !e.Restarting || !e.RequestedStop || e.Signal != 9 {
		t.Errorf("the restart's exit = %+v", e)
	}
	if err := m.client.Destroy(t.Context(), app, fly.RemoveMachineInput{ID: made.ID, Kill: true}, ""); err != nil {
		t.Fatal(err)
	}
	m.wait(made.ID, "destroyed")
	_, err := m.client.Start(t.Context(), app, made.ID, "")
	refused(t, err, http.StatusPreconditionFailed, "unable to start machine from current state: 'destroyed'")
}

func TestListByMetadata(t *testing.T) {
	t.Parallel()
	m := setup(t)
	for name, metadata := range map[string]map[string]string{
		"a": {"run_id": "job:2025-01-01T00:00:00Z", "attempt": "1"},
		"b": {"run_id": "job:2025-01-01T00:00:00Z", "attempt": "2"},
		"c": {"run_id": "x&y=z", "attempt": "1"},
	} {
		in := m.input(name, forever)
		in.Config.Metadata = metadata
		if name == "b" {
			in.Region = "fra"
		}
		m.launch(in)
	}
	for query, want := range map[string][]string{
		"": {"a", "b", "c"},
		"metadata.run_id=job%3A2025-01-01T00%3A00%3A00Z":                    {"a", "b"},
		"metadata.run_id=job%3A2025-01-01T00%3A00%3A00Z&metadata.attempt=2": {"b"},
		"metadata.run_id=x%26y%3Dz":                                         {"c"},
		"metadata.nothing=":                                                 {},
		"region=fra":                                                        {"b"},
		"state=stopped":                                                     {},
	} {
		if got := m.list(query); !slices.Equal(got, want) {
			t.Errorf("%q: got %v, want %v", query, got, want)
		}
	}
	found, err := m.client.List(t.Context(), app, "region=fra")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.client.SetMetadata(t.Context(), app, found[0].ID, "late", "yes"); err != nil {
		t.Fatal(err)
	}
	if got := m.list("metadata.late=yes"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("after the metadata change: got %v", got)
	}
	if err := m.client.DeleteMetadata(t.Context(), app, found[0].ID, "late"); err != nil {
		t.Fatal(err)
	}
	metadata, err := m.client.GetMetadata(t.Context(), app, found[0].ID)
	if err != nil || len(metadata) != 2 || metadata["attempt"] != "2" {
		t.Errorf("metadata = %v, %v", metadata, err)
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	m := setup(t)
	made := m.launch(m.input("", saying("up")+forever))
	m.receive()
	m.wait(made.ID, "started")
	err := m.client.Wait(t.Context(), app, made.ID, flaps.WithWaitStates("destroyed"), flaps.WithWaitTimeout(time.Second))
	refused(t, err, http.StatusRequestTimeout, "deadline_exceeded: machine failed to reach desired state, destroyed, currently started")
	path := "/v1/apps/" + app + "/machines/" + made.ID + "/wait?"
	for query, want := range map[string]int{
		"timeout=0":                           http.StatusBadRequest,
		"timeout=61":                          http.StatusBadRequest,
		"timeout=x":                           http.StatusBadRequest,
		"state=nowhere":                       http.StatusBadRequest,
		"":                                    http.StatusOK,
		"states=stopped,started":              http.StatusOK,
		"state=settled":                       http.StatusOK,
		"version=" + made.InstanceID:          http.StatusOK,
		"version=other":                       http.StatusPreconditionFailed,
		"state=started&from_event_id=unknown": http.StatusOK,
	} {
		status, body := m.call("GET", path+query, "FlyV1 "+token, nil)
		if status != want || (want == http.StatusOK && (body["ok"] != true || body["state"] != "started" || body["version"] != made.InstanceID)) {
			t.Errorf("%q: %d %v, want %d", query, status, body, want)
		}
		if want == http.StatusBadRequest && !strings.HasPrefix(body["error"].(string), "invalid_argument: invalid WaitMachineRequest.") {
			t.Errorf("%q: %v", query, body)
		}
	}
	if err := m.client.Kill(t.Context(), app, made.ID); err != nil {
		t.Fatal(err)
	}
	m.wait(made.ID, "destroyed")
	err = m.client.Wait(t.Context(), app, made.ID, flaps.WithWaitStates("started"))
	refused(t, err, http.StatusNotFound, "machine not found")
	err = m.client.Wait(t.Context(), app, "00000000000000", flaps.WithWaitStates("destroyed"))
	refused(t, err, http.StatusNotFound, "machine not found")
}

func TestToken(t *testing.T) {
	t.Parallel()
	m := setup(t)
	for auth, want := range map[string]int{
		"": 401, "Bearer ": 401, "Bearer wrong": 401, "Basic " + token: 401, token: 401,
		"Bearer " + token: 200, "FlyV1 " + token: 200,
	} {
		status, body := m.call("GET", "/v1/apps/"+app, auth, nil)
		if status != want || (want == 401 && body["error"] != "unauthorized") {
			t.Errorf("%q: %d %v, want %d", auth, status, body, want)
		}
	}
}

func TestCreateValidation(t *testing.T) {
	t.Parallel()
	m := setup(t)
	for name, test := range map[string]struct {
		change func(*fly.LaunchMachineInput)
		text   string
	}{
		"unknown image":  {func(in *fly.LaunchMachineInput) { in.Config.Image = "example/unknown:it" }, "failed to get manifest example/unknown:it"},
		"no image":       {func(in *fly.LaunchMachineInput) { in.Config.Image = "" }, "config.image is required"},
		"no config":      {func(in *fly.LaunchMachineInput) { in.Config = nil }, "config is required"},
		"unknown region": {func(in *fly.LaunchMachineInput) { in.Region = "mars" }, `region "mars" not found`},
		"bad name":       {func(in *fly.LaunchMachineInput) { in.Name = "A b" }, `name "A b"`},
		"odd memory":     {func(in *fly.LaunchMachineInput) { in.Config.Guest.MemoryMB = 300 }, "config.guest.memory_mb"},
		"little memory":  {func(in *fly.LaunchMachineInput) { in.Config.Guest.CPUKind = "performance" }, "config.guest.memory_mb"},
		"unknown cpu":    {func(in *fly.LaunchMachineInput) { in.Config.Guest.CPUKind = "quantum" }, "config.guest.cpu_kind"},
		"unknown policy": {func(in *fly.LaunchMachineInput) { in.Config.Restart.Policy = "maybe" }, "config.restart.policy"},
		"unknown signal": {func(in *fly.LaunchMachineInput) { s := "SIGNOPE"; in.Config.StopConfig.Signal = &s }, "config.stop_config.signal"},
		"a file outside": {func(in *fly.LaunchMachineInput) { in.Config.Files = []*fly.File{{GuestPath: "../x"}} }, "config.files[0].guest_path"},
		"no file at all": {func(in *fly.LaunchMachineInput) { in.Config.Files = []*fly.File{{GuestPath: "/x"}} }, "raw_value is required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := m.input("", "true")
			test.change(&in)
			_, err := m.client.Launch(t.Context(), app, in)
			refused(t, err, http.StatusBadRequest, test.text)
		})
	}
}

func TestServerStopEndsMachines(t *testing.T) {
	t.Parallel()
	dir := ""
	m := setup(t, func(c *flymachines.Config) { dir = c.Dir })
	polite := m.launch(m.input("polite", saying("up")+forever))
	m.receive()
	in := m.input("stubborn", stubborn+saying("up")+"while :; do sleep 600; done")
	in.Config.StopConfig.Timeout = &fly.Duration{Duration: 20 * time.Millisecond}
	rude := m.launch(in)
	m.receive()
	if err := m.server.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	_, err := m.client.Launch(t.Context(), app, m.input("late", "true"))
	refused(t, err, http.StatusServiceUnavailable, "shutting down")

	next := setup(t, func(c *flymachines.Config) { c.Dir = dir })
	for id, want := range map[string]syscall.Signal{polite.ID: syscall.SIGTERM, rude.ID: syscall.SIGKILL} {
		if exit := next.exit(id); exit.Signal != int(want) || !exit.RequestedStop {
			t.Errorf("exit = %+v, want %v and requested", exit, want)
		}
		if e := next.get(id).GetLatestEventOfType("exit"); e.Source != "host" {
			t.Errorf("got exit event from %q, want it from the host", e.Source)
		}
	}
}

// A stop before the program starts records an exit event, because a stop without one looks like
// a failed start.
func TestStopBeforeStartHasExitEvent(t *testing.T) {
	t.Parallel()
	m := setup(t)
	if err := m.server.SetFaults(faults.Plan{Rules: []faults.Rule{{Kind: faults.StuckCreated}}}); err != nil {
		t.Fatal(err)
	}
	made := m.launch(m.input("created", "exit 6"))
	if err := m.client.Stop(t.Context(), app, fly.StopMachineInput{ID: made.ID}, ""); err != nil {
		t.Fatal(err)
	}
	if exit := m.exit(made.ID); !exit.RequestedStop || exit.ExitCode != 0 {
		t.Errorf("exit = %+v", exit)
	}
	if got := events(m.get(made.ID)); strings.Contains(got, "start/started") {
		t.Errorf("events: %s", got)
	}
}

func TestServerStopIsBounded(t *testing.T) {
	t.Parallel()
	m := setup(t)
	in := m.input("stubborn", stubborn+saying("up")+"while :; do sleep 600; done")
	in.Config.StopConfig.Timeout = &fly.Duration{Duration: time.Hour}
	made := m.launch(in)
	m.receive()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.server.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if exit := m.exit(made.ID); exit.Signal != 9 || !exit.RequestedStop {
		t.Errorf("exit = %+v", exit)
	}
}
