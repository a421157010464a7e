package container_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/container"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

func spec(name, does string) port.LaunchSpec {
	return port.LaunchSpec{
		Name: name, Image: image, MemoryMB: 512, CPUs: 8, Env: map[string]string{"RUNNER_DOES": does},
		Owner: port.MachineOwner{Tenant: "acme", RunID: "run of " + name, Attempt: 1},
	}
}

func launch(t *testing.T, r *container.Runner, s port.LaunchSpec) port.MachineStatus {
	t.Helper()
	m, err := r.Launch(limited(t), s)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func gone(t *testing.T, r *container.Runner, m port.Machine) port.Exit {
	t.Helper()
	got, err := r.Wait(limited(t), m, port.MachineGone, 30*time.Second)
	if err != nil || got.Phase != port.MachineGone || got.Exit == nil {
		t.Fatalf("got %+v, %v, want a machine that is gone with its exit", got, err)
	}
	return *got.Exit
}

// TestContainerHasAnAddress inspects a container in two networks, one of which gave it no
// address.
func TestContainerHasAnAddress(t *testing.T) {
	t.Parallel()
	p := setup(t)
	m := launch(t, p.runner, spec("r-address", "rest"))
	running, err := p.runner.Wait(limited(t), m.Machine, port.MachineRunning, 30*time.Second)
	if err != nil || running.Address != "172.17.0.9" {
		t.Errorf("got address %q and %v, want 172.17.0.9", running.Address, err)
	}
}

func TestContainerIsConfined(t *testing.T) {
	t.Parallel()
	p := setup(t, func(c *container.Config) {
		c.Join = func(_ context.Context, at container.Place) (container.Route, error) {
			if at.Gateway.String() != "172.17.0.1" || at.Rootless || at.Podman {
				t.Errorf("got place %+v, want Docker with its gateway", at)
			}
			return container.Route{Network: "workers", Addresses: map[string]string{"127.0.0.1:8080": "172.17.0.1:8080"}}, nil
		}
	})
	s := spec("r-confined", "rest")
	s.Env["CALLBACK_URL"], s.Env["OTHER"] = "http://127.0.0.1:8080/callback/x?token=1", "http://127.0.0.1:80/"
	launch(t, p.runner, s)
	request := p.engine.all[0].request
	host := request.HostConfig
	for key, want := range map[string]any{
		"Memory": float64(512 << 20), "MemorySwap": float64(512 << 20), "NanoCpus": 2e9, // the CPUs that the engine has
		"ReadonlyRootfs": true, "Privileged": false, "NetworkMode": "workers", "Init": true, "PidsLimit": float64(4096), "AutoRemove": false,
	} {
		if host[key] != want {
			t.Errorf("%s: got %v, want %v", key, host[key], want)
		}
	}
	for key, want := range map[string]string{"CapDrop": "ALL", "SecurityOpt": "no-new-privileges"} {
		if list, ok := host[key].([]any); !ok || len(list) != 1 || list[0] != want {
			t.Errorf("%s: got %v, want %s", key, host[key], want)
		}
	}
	for _, want := range []string{"CALLBACK_URL=http://172.17.0.1:8080/callback/x?token=1", "OTHER=http://127.0.0.1:80/"} {
		if !slices.Contains(request.Env, want) {
			t.Errorf("got environment %v, want %s", request.Env, want)
		}
	}
}

func TestLaunchFailuresHaveTheEnginesWords(t *testing.T) {
	t.Parallel()
	p := setup(t)
	missing := spec("r-missing", "rest")
	missing.Command = []string{"missing"}
	limitedImage, none, malformed := spec("r-limited", "rest"), spec("r-none", "rest"), spec("r-malformed", "rest")
	limitedImage.Image, none.Image, malformed.Image = "limited:v1", "none", "UPPER CASE"
	for _, test := range []struct {
		spec port.LaunchSpec
		code fault.Code
		says string
	}{
		{missing, fault.LaunchRefused, "executable file not found"},
		{limitedImage, fault.Throttled, "toomanyrequests"},
		{none, fault.Image, "manifest for docker.io/library/none:latest not found"},
		{malformed, fault.Image, "malformed image name"},
	} {
		_, err := p.runner.Launch(limited(t), test.spec)
		if !fault.Is(err, test.code) || !strings.Contains(fault.Of(err).Message, test.says) {
			t.Errorf("%s: got %v, want %s with %q", test.spec.Name, err, test.code, test.says)
		}
	}
	if count := len(p.engine.all); count != 0 {
		t.Errorf("got %d containers, want none", count)
	}
}

func TestMissingImageIsPulled(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.engine.remote = []string{"docker.io/library/alpine:latest"}
	s := spec("r-pull", "rest")
	s.Image = "alpine"
	launch(t, p.runner, s)
	if !slices.Contains(p.engine.images, "docker.io/library/alpine:latest") {
		t.Errorf("got images %v, want alpine", p.engine.images)
	}
}

// TestEndedAttemptIsNotRunAgain repeats a launch whose program has ended by itself.
func TestEndedAttemptIsNotRunAgain(t *testing.T) {
	t.Parallel()
	p := setup(t)
	s := spec("r-once", "exit 3")
	first := launch(t, p.runner, s)
	gone(t, p.runner, first.Machine)
	if again := launch(t, p.runner, s); again.ID != first.ID || again.Exit == nil || again.Exit.Code != 3 {
		t.Errorf("got %+v, want the container that has ended", again)
	}
}

// TestCreatedContainerIsStarted adopts a container that was created and whose start failed.
func TestCreatedContainerIsStarted(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.engine.failStart = true
	s := spec("r-created", "rest")
	if _, err := p.runner.Launch(limited(t), s); !fault.Is(err, fault.Unavailable) {
		t.Errorf("got %v, want %s", err, fault.Unavailable)
	}
	if m := launch(t, p.runner, s); m.Phase != port.MachineRunning {
		t.Errorf("got phase %s, want running", m.Phase)
	}
}

func TestRestartContinues(t *testing.T) {
	t.Parallel()
	p := setup(t)
	stubborn := launch(t, p.runner, spec("r-stubborn", "ignore"))
	ended := launch(t, p.runner, spec("r-ended", "rest"))
	if err := p.runner.Stop(limited(t), ended.Machine, time.Minute); err != nil {
		t.Fatal(err)
	}
	gone(t, p.runner, ended.Machine)
	if err := p.runner.Stop(limited(t), stubborn.Machine, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if err := p.runner.Close(); err != nil { // most likely before the kill
		t.Fatal(err)
	}
	next := open(t, p.config)
	if exit := gone(t, next, stubborn.Machine); exit.Signal != 9 || !exit.Requested {
		t.Errorf("got exit %+v, want SIGKILL, requested", exit)
	}
	if exit := gone(t, next, ended.Machine); exit.Code != 0 || !exit.Requested {
		t.Errorf("got exit %+v, want 0, requested", exit)
	}
}

func TestShutdownOfTheHost(t *testing.T) {
	t.Parallel()
	p := setup(t)
	running, destroyed := launch(t, p.runner, spec("r-running", "rest")), launch(t, p.runner, spec("r-destroyed", "rest"))
	if err := p.runner.Destroy(limited(t), destroyed.Machine); err != nil {
		t.Fatal(err)
	}
	gone(t, p.runner, destroyed.Machine)
	if err := p.runner.StopAll(limited(t), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if exit := gone(t, p.runner, running.Machine); !exit.Host || exit.Code != 0 {
		t.Errorf("got exit %+v, want one by the host", exit)
	}
	if exit := gone(t, p.runner, destroyed.Machine); exit.Host {
		t.Errorf("got exit %+v, want one that was not by the host", exit)
	}
}

func TestOOM(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.engine.oom = true
	if exit := gone(t, p.runner, launch(t, p.runner, spec("r-oom", "exit 1")).Machine); !exit.OOM || exit.Code != 137 || exit.Signal != 9 || exit.Requested {
		t.Errorf("got exit %+v, want a kill for memory", exit)
	}
}

func TestPruneRemovesContainersThatEnded(t *testing.T) {
	t.Parallel()
	p := setup(t, func(c *container.Config) { c.KeepFor = time.Nanosecond })
	ended, destroyed := launch(t, p.runner, spec("r-ended", "exit 0")), launch(t, p.runner, spec("r-destroyed", "exit 0"))
	for _, m := range []port.MachineStatus{ended, destroyed} {
		gone(t, p.runner, m.Machine)
	}
	if err := p.runner.Destroy(limited(t), destroyed.Machine); err != nil {
		t.Fatal(err)
	}
	if err := p.runner.Prune(limited(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.runner.Inspect(limited(t), destroyed.Machine); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v, want the destroyed container removed", err)
	}
	gone(t, p.runner, ended.Machine) // Prune saw the end for the first time
	if err := p.runner.Prune(limited(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := p.runner.Inspect(limited(t), ended.Machine); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v, want the container removed that ended by itself", err)
	}
	if notes, err := os.ReadDir(p.config.Dir); err != nil || len(notes) != 0 {
		t.Errorf("got %d notes, %v, want none", len(notes), err)
	}
}

func TestLogsAreCut(t *testing.T) {
	t.Parallel()
	p := setup(t)
	m := launch(t, p.runner, spec("r-logs", "exit 0"))
	if text, err := p.runner.Logs(limited(t), m.Machine); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("got %q, %v, want both streams in order", text, err)
	}
	p.engine.mu.Lock()
	p.engine.frame = 32 << 10
	p.engine.log = append(bytes.Repeat([]byte{'x'}, 8<<20), []byte("end\n")...)
	p.engine.mu.Unlock()
	text, err := p.runner.Logs(limited(t), m.Machine)
	if err != nil || !bytes.HasPrefix(text, []byte("[4 bytes are cut out here]\nxxx")) || !bytes.HasSuffix(text, []byte("xend\n")) {
		t.Errorf("got %d bytes %q, %v, want the last 8 MiB after a mark", len(text), text[:min(40, len(text))], err)
	}
	if _, err := p.runner.Logs(limited(t), unknown); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v for an unknown machine, want ErrNotFound", err)
	}
}

// TestMachineOfAnotherSortie inspects, stops and destroys a container with the labels of
// another Sortie instance.
func TestMachineOfAnotherSortie(t *testing.T) {
	t.Parallel()
	p := setup(t)
	m := launch(t, p.runner, spec("r-other", "rest"))
	other, _ := newRunner(t, p.proxy.url, "other")
	if _, err := other.Inspect(limited(t), m.Machine); !errors.Is(err, port.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if err := errors.Join(other.Stop(limited(t), m.Machine, 0), other.Destroy(limited(t), m.Machine)); err != nil {
		t.Error(err)
	}
	if got, err := p.runner.Inspect(limited(t), m.Machine); err != nil || got.Phase != port.MachineRunning {
		t.Errorf("got %s, %v, want running", got.Phase, err)
	}
}
