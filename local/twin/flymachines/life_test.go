package flymachines_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

func TestLifecycle(t *testing.T) {
	t.Parallel()
	m := setup(t)
	made := m.launch(m.input("r-one-a1", saying("up")+"read < <(sleep 600)"))
	if made.State != "created" || made.Name != "r-one-a1" || made.Region != "ord" || len(made.ID) != 14 ||
		events(made) != "launch/pending/flyd launch/created/user" || made.HostStatus != fly.HostStatusOk {
		t.Errorf("created %+v with events %s", made, events(made))
	}
	if !strings.HasPrefix(made.FullImageRef(), image+"@sha256:") || made.InstanceID == "" || made.Config.Metadata["run_id"] != "r-one-a1" {
		t.Errorf("image %s, instance %q, config %+v", made.FullImageRef(), made.InstanceID, made.Config)
	}
	m.wait(made.ID, "started")
	m.receive()
	if got := m.list("metadata.run_id=r-one-a1"); !slices.Equal(got, []string{"r-one-a1"}) {
		t.Errorf("list: got %v", got)
	}
	if err := m.client.Stop(t.Context(), app, fly.StopMachineInput{ID: made.ID}, ""); err != nil {
		t.Fatal(err)
	}
	exit := m.exit(made.ID)
	if exit.ExitCode != 143 || exit.Signal != 15 || !exit.RequestedStop || exit.OOMKilled || exit.ExitedAt.IsZero() {
		t.Errorf("exit = %+v", exit)
	}
	gone := m.get(made.ID)
	want := "launch/pending/flyd launch/created/user start/started/flyd stop/stopping/user exit/stopped/flyd destroy/destroyed/flyd"
	if gone.State != "destroyed" || events(gone) != want {
		t.Errorf("destroyed machine: got %s with events %s", gone.State, events(gone))
	}
	if got := m.list(""); len(got) != 0 {
		t.Errorf("list: got %v", got)
	}
	if got := m.list("include_deleted=true"); !slices.Equal(got, []string{"r-one-a1"}) {
		t.Errorf("list with deleted machines: got %v", got)
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	m := setup(t)
	for script, want := range map[string]fly.MachineExitEvent{
		"true":          {ExitCode: 0, GuestExitCode: 0, Signal: -1, GuestSignal: -1},
		"exit 3":        {ExitCode: 3, GuestExitCode: 3, Signal: -1, GuestSignal: -1},
		"kill -KILL $$": {ExitCode: 137, GuestExitCode: 137, Signal: 9, GuestSignal: 9},
		"kill -ABRT $$": {ExitCode: 134, GuestExitCode: 134, Signal: 6, GuestSignal: 6},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			exit := m.exit(m.launch(m.input("", script)).ID)
			exit.ExitedAt = time.Time{}
			if diff := cmp.Diff(want, *exit); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNameIsUnique(t *testing.T) {
	t.Parallel()
	m := setup(t)
	first := m.launch(m.input("same", "sleep 600"))
	_, err := m.client.Launch(t.Context(), app, m.input("same", "sleep 600"))
	refused(t, err, http.StatusConflict,
		fmt.Sprintf("already_exists: unique machine name violation, machine ID %s already exists with name %q", first.ID, "same"))
	if elsewhere, err := m.client.Launch(t.Context(), "other", m.input("same", "true")); err != nil {
		t.Errorf("the same name in another app: %v %v", elsewhere, err)
	}
	if err := m.client.Destroy(t.Context(), app, fly.RemoveMachineInput{ID: first.ID, Kill: true}, ""); err != nil {
		t.Fatal(err)
	}
	m.wait(first.ID, "destroyed")
	if again := m.launch(m.input("same", "sleep 600")); again.ID == first.ID {
		t.Error("the next machine of the name has the old id")
	}
}

func TestConcurrentLaunchesOfOneName(t *testing.T) {
	t.Parallel()
	m := setup(t)
	type result struct {
		id  string
		err error
	}
	results := make(chan result)
	for range 20 {
		go func() {
			made, err := m.client.Launch(t.Context(), app, m.input("race", "sleep 600"))
			if err != nil {
				results <- result{err: err}
				return
			}
			results <- result{id: made.ID}
		}()
	}
	won := ""
	var lost []error
	for range 20 {
		if r := <-results; r.err == nil {
			won += r.id
		} else {
			lost = append(lost, r.err)
		}
	}
	if len(won) != 14 {
		t.Fatalf("got winners %q, want one", won)
	}
	for _, err := range lost {
		refused(t, err, http.StatusConflict, "machine ID "+won+" already exists")
	}
}

func TestProgramEnvironment(t *testing.T) {
	t.Setenv("SORTIE_SECRET_OF_THE_HOST", "x") // Not parallel: it sets environment variables.
	m := setup(t)
	in := m.input("", `env | cut -d= -f1 | grep -v -e ^_ -e SHLVL -e PWD -e OLDPWD | sort; cat $HOME/etc/motd; stat -c %a $HOME/etc/motd; touch $TMPDIR/x`)
	content := "aGVsbG8K"
	in.Config.Files = []*fly.File{{GuestPath: "/etc/motd", RawValue: &content, Mode: 0o600}}
	in.Config.Env["TASK_ID"] = "t"
	made := m.launch(in)
	if exit := m.exit(made.ID); exit.ExitCode != 0 {
		t.Errorf("exit = %+v", exit)
	}
	got, err := m.server.Logs(made.ID)
	want := "EAR FLY_ALLOC_ID FLY_APP_NAME FLY_IMAGE_REF FLY_MACHINE_ID FLY_MACHINE_VERSION FLY_PRIVATE_IP FLY_PROCESS_GROUP " +
		"FLY_REGION FLY_VM_MEMORY_MB HOME PATH PRIMARY_REGION TASK_ID TMPDIR hello 600"
	if err != nil || strings.Join(strings.Fields(string(got)), " ") != want {
		t.Errorf("got environment %q, %v", got, err)
	}
}

// TestMachineHasALoopbackAddress checks that programs get distinct loopback addresses.
func TestMachineHasALoopbackAddress(t *testing.T) {
	t.Parallel()
	m := setup(t, func(c *flymachines.Config) { c.Loopback = true })
	first, second := m.launch(m.input("", "echo $FLY_PRIVATE_IP")), m.launch(m.input("", "true"))
	m.exit(first.ID)
	got, err := m.server.Logs(first.ID)
	at, parsed := netip.ParseAddr(first.PrivateIP)
	if err != nil || parsed != nil || !at.IsLoopback() || strings.TrimSpace(string(got)) != first.PrivateIP || second.PrivateIP == first.PrivateIP {
		t.Errorf("got %q in the program, %q and %q of the API, %v, want one loopback address each", got, first.PrivateIP, second.PrivateIP, err)
	}
}

func TestDestroyedMachineOnDisk(t *testing.T) {
	t.Parallel()
	dir := ""
	m := setup(t, func(c *flymachines.Config) { dir, c.KeepMost = c.Dir, 1 })
	first := m.launch(m.input("first", "echo out; echo err >&2; touch $TMPDIR/scratch; mkdir x"))
	m.wait(first.ID, "destroyed")
	files, err := filepath.Glob(filepath.Join(dir, "machines", first.ID, "*"))
	for i := range files {
		files[i] = filepath.Base(files[i])
	}
	if err != nil || !slices.Equal(files, []string{"machine.json", "output.0"}) {
		t.Errorf("leftover files: got %v, %v", files, err)
	}
	if text, err := m.server.Logs(first.ID); err != nil || string(text) != "out\nerr\n" {
		t.Errorf("output %q, %v", text, err)
	}
	second := m.launch(m.input("second", "true"))
	m.wait(second.ID, "destroyed")
	if _, err := m.client.Get(t.Context(), app, second.ID); err != nil {
		t.Error(err)
	}
	_, err = m.client.Get(t.Context(), app, first.ID)
	refused(t, err, http.StatusNotFound, "machine not found")
	if _, err := m.server.Logs(first.ID); err == nil {
		t.Error("output of a forgotten machine: got content, want an error")
	}
	third := m.launch(m.input("third", "true")) // the folder of the first machine is removed when the second is gone
	m.wait(third.ID, "destroyed")
	if _, err := os.Stat(filepath.Join(dir, "machines", first.ID)); !os.IsNotExist(err) {
		t.Errorf("the forgotten machine's folder: %v", err)
	}
}

func TestFolderLock(t *testing.T) {
	t.Parallel()
	var cfg flymachines.Config
	setup(t, func(c *flymachines.Config) { cfg = *c })
	if _, err := flymachines.Open(cfg); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Errorf("err = %v", err)
	}
}

func TestConfigReportsEveryProblem(t *testing.T) {
	t.Parallel()
	_, err := flymachines.Open(flymachines.Config{Images: map[string][]string{"x": {}}})
	for _, want := range []string{"folder", "app", "starter", "clock", "logger", "program of image x"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want %q in it", err, want)
		}
	}
}

func TestRestartPolicies(t *testing.T) {
	t.Parallel()
	m := setup(t)
	mark := filepath.Join(t.TempDir(), "again") // a start resets the machine's own disk
	for name, test := range map[string]struct {
		restart *fly.MachineRestart
		script  string
		exits   int
	}{
		"no":                 {&fly.MachineRestart{Policy: "no"}, "exit 1", 1},
		"on failure":         {&fly.MachineRestart{Policy: "on-failure", MaxRetries: 1}, "exit 1", 2},
		"on failure, worked": {&fly.MachineRestart{Policy: "on-failure", MaxRetries: 1}, "true", 1},
		"default":            {nil, "test -e again && exit; touch again; test -e " + mark + " || { touch " + mark + "; exit 1; }", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := m.input("", test.script)
			in.Config.Restart = test.restart
			made := m.launch(in)
			m.wait(made.ID, "destroyed")
			got := m.get(made.ID)
			if exits := strings.Count(events(got), "exit/stopped"); exits != test.exits {
				t.Errorf("%d exits, want %d: %s", exits, test.exits, events(got))
			}
			if last := got.GetLatestEventOfType("exit"); last.Request.ExitEvent.Restarting {
				t.Error("last exit event: got restarting, want not restarting")
			}
		})
	}
}

func TestAppsAndRegions(t *testing.T) {
	t.Parallel()
	m := setup(t)
	if _, err := m.client.GetApp(t.Context(), "new"); err == nil {
		t.Error("app that was not created: got an app, want not found")
	}
	if made, err := m.client.CreateApp(t.Context(), flaps.CreateAppRequest{Name: "new"}); err != nil || made.Name != "new" {
		t.Fatalf("created %+v, %v", made, err)
	}
	_, err := m.client.CreateApp(t.Context(), flaps.CreateAppRequest{Name: "new"})
	refused(t, err, http.StatusUnprocessableEntity, "Name has already been taken")
	got, err := m.client.GetApp(t.Context(), "new")
	if err != nil || !got.Deployed() {
		t.Errorf("app = %+v, %v", got, err)
	}
	regions, err := m.client.GetRegions(t.Context())
	if err != nil || len(regions.Regions) < 10 || regions.Nearest != "ord" {
		t.Errorf("regions = %+v, %v", regions, err)
	}
	if _, err := m.client.Launch(t.Context(), "new", m.input("", "true")); err != nil {
		t.Errorf("launch in the new app: got %v", err)
	}
	_, err = m.client.Launch(t.Context(), "nowhere", m.input("", "true"))
	refused(t, err, http.StatusNotFound, "app not found")
}

func TestDamagedRecordIsRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for id, record := range map[string]string{"00000000000001": "", "00000000000002": `{"id":`} {
		folder := filepath.Join(dir, "machines", id)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "machine.json"), []byte(record), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "machines", "00000000000003"), 0o700); err != nil {
		t.Fatal(err)
	}
	m := setup(t, func(c *flymachines.Config) { c.Dir = dir })
	if left, err := os.ReadDir(filepath.Join(dir, "machines")); err != nil || len(left) != 0 {
		t.Errorf("leftover files: got %v, %v", left, err)
	}
	m.launch(m.input("", "true"))
}

func TestRetentionExcludesDowntime(t *testing.T) {
	t.Parallel()
	now := clock.NewVirtual(time.Date(2025, 5, 1, 12, 0, 0, 0, time.UTC))
	dir := t.TempDir()
	open := func() *machines {
		return setup(t, func(c *flymachines.Config) {
			c.Dir, c.Clock, c.KeepFor = dir, now, time.Hour
			c.Images = map[string][]string{image: {"nothing"}}
			c.Starter = flymachines.Functions{Clock: now, Programs: map[string]flymachines.Function{
				"nothing": func(context.Context, flymachines.Program, io.Writer) int { return 0 },
			}}
		})
	}
	m := open()
	made := m.launch(m.input("", ""))
	m.wait(made.ID, "destroyed")
	if err := m.server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	now.Advance(24 * time.Hour)
	m = open()
	if got := m.get(made.ID); got.State != "destroyed" {
		t.Errorf("state after a day: got %s", got.State)
	}
	now.Advance(time.Hour)
	m.wait(m.launch(m.input("", "")).ID, "destroyed") // its end drops the expired records
	next := m.launch(m.input("", ""))
	m.wait(next.ID, "destroyed")
	_, err := m.client.Get(t.Context(), app, made.ID)
	refused(t, err, http.StatusNotFound, "machine not found")
}

func TestRecordOfVersion00IsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "machines", "00000000000001")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	record := `{"id":"00000000000001","app":"` + app + `","name":"n","region":"ord","state":"stopped","wish":"destroy",` +
		`"lies":{"unreachable":true},"config":{"image":"bash:latest"},"createdAt":"2026-11-21T09:00:00Z","updatedAt":"2026-11-21T09:00:00Z"}`
	if err := os.WriteFile(filepath.Join(folder, "machine.json"), []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	m := setup(t, func(c *flymachines.Config) { c.Dir = dir })
	m.wait("00000000000001", "destroyed")
	if got := m.get("00000000000001"); got.State != "destroyed" || got.HostStatus != "unreachable" {
		t.Errorf("got state %s and host %s, want destroyed and unreachable", got.State, got.HostStatus)
	}
}
