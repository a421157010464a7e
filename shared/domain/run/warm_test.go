package run_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

var (
	small = platform.WarmKey{Image: "worker", CPUs: 1, MemoryMB: 256}
	large = platform.WarmKey{Image: "report", CPUs: 4, MemoryMB: 1024}
)

// warm returns a machine with a state and an age.
func warm(id string, state platform.WarmState, key platform.WarmKey, age time.Duration) platform.WarmMachine {
	return platform.WarmMachine{
		Tenant: "t", Pool: "p", ID: id, Version: 1, Key: key, Phase: state, CreatedAt: epoch.Add(-age),
		Machine: platform.Machine{Runner: "fly", App: "app", ID: "m-" + id},
	}
}

// unneeded returns the machine as not needed for the time since.
func unneeded(w platform.WarmMachine, since time.Duration) platform.WarmMachine {
	w.UnneededAt = epoch.Add(-since)
	return w
}

// of returns the machine with the digest of its image.
func of(digest string, w platform.WarmMachine) platform.WarmMachine {
	w.Digest = digest
	return w
}

func recycled(w platform.WarmMachine) platform.WarmMachine {
	w.Recycled++
	return w
}

func recycling(w platform.WarmMachine) platform.WarmMachine {
	w.Phase = platform.WarmRecycling
	return w
}

func TestPlanOfWarmMachines(t *testing.T) {
	t.Parallel()
	other := warm("other", platform.WarmReady, small, time.Minute)
	other.Placement = platform.Placement{Runner: platform.RunnerFly}
	for name, row := range map[string]struct {
		settings *platform.Warm
		draining bool
		firing   map[platform.WarmKey]int
		have     []platform.WarmMachine
		create   []platform.WarmKey
		end      []string
		recycle  []string
		stuck    int
		save     int
	}{
		"empty pool is filled":       {settings: &platform.Warm{Min: 2, Max: 5}, create: []platform.WarmKey{small, small}},
		"machines count":             {settings: &platform.Warm{Min: 2, Max: 5}, have: []platform.WarmMachine{warm("a", platform.WarmReady, small, time.Hour), warm("b", platform.WarmCreating, small, time.Minute)}},
		"claimed ones do not":        {settings: &platform.Warm{Min: 1, Max: 5}, have: []platform.WarmMachine{warm("a", platform.WarmClaimed, small, 48*time.Hour)}, create: []platform.WarmKey{small}},
		"other size":                 {settings: &platform.Warm{Min: 1, Max: 5}, have: []platform.WarmMachine{unneeded(warm("a", platform.WarmReady, large, time.Hour), time.Minute)}, create: []platform.WarmKey{small}, end: []string{"a"}},
		"other placement":            {settings: &platform.Warm{Min: 1, Max: 5}, have: []platform.WarmMachine{other}, create: []platform.WarmKey{small}, end: []string{"other"}},
		"too old":                    {settings: &platform.Warm{Min: 1, Max: 5, MaxAge: time.Hour}, have: []platform.WarmMachine{warm("a", platform.WarmReady, small, time.Hour)}, create: []platform.WarmKey{small}, end: []string{"a"}},
		"a day by default":           {settings: &platform.Warm{Min: 1, Max: 5}, have: []platform.WarmMachine{warm("a", platform.WarmReady, small, 24*time.Hour)}, create: []platform.WarmKey{small}, end: []string{"a"}},
		"image has changed":          {settings: &platform.Warm{Min: 2, Max: 5}, have: []platform.WarmMachine{of("sha256:1", warm("old", platform.WarmReady, small, time.Hour)), of("sha256:2", warm("new", platform.WarmClaimed, small, time.Minute)), of("sha256:2", warm("same", platform.WarmReady, small, time.Second))}, create: []platform.WarmKey{small}, end: []string{"old"}},
		"other image has another":    {settings: &platform.Warm{Min: 1, Max: 5}, firing: map[platform.WarmKey]int{large: 1}, have: []platform.WarmMachine{of("sha256:1", warm("a", platform.WarmReady, small, time.Hour)), of("sha256:2", warm("b", platform.WarmReady, large, time.Minute)), warm("unknown", platform.WarmClaimed, small, time.Second)}},
		"stuck in its creation":      {settings: &platform.Warm{Min: 1, Max: 5}, have: []platform.WarmMachine{warm("a", platform.WarmCreating, small, 5*time.Minute)}, create: []platform.WarmKey{small}, end: []string{"a"}, stuck: 1},
		"oldest of too many":         {settings: &platform.Warm{Min: 1, Max: 5}, have: []platform.WarmMachine{unneeded(warm("old", platform.WarmReady, small, time.Hour), time.Minute), warm("new", platform.WarmReady, small, time.Minute)}, end: []string{"old"}},
		"creation before ready":      {settings: &platform.Warm{Min: 1, Max: 5}, have: []platform.WarmMachine{warm("ready", platform.WarmReady, small, time.Hour), warm("new", platform.WarmCreating, small, 0)}, end: []string{"new"}},
		"ending is repeated":         {settings: &platform.Warm{Min: 0, Max: 5}, have: []platform.WarmMachine{warm("a", platform.WarmEnding, small, time.Minute)}, end: []string{"a"}},
		"firings of the same size":   {settings: &platform.Warm{Min: 1, Max: 5}, firing: map[platform.WarmKey]int{small: 3}, create: []platform.WarmKey{small, small, small}},
		"firings of another size":    {settings: &platform.Warm{Min: 1, Max: 5}, firing: map[platform.WarmKey]int{large: 2}, create: []platform.WarmKey{small, large, large}},
		"firing is just over":        {settings: &platform.Warm{Max: 5}, have: []platform.WarmMachine{warm("a", platform.WarmReady, large, time.Minute)}, save: 1},
		"firing was a moment ago":    {settings: &platform.Warm{Max: 5}, have: []platform.WarmMachine{unneeded(warm("a", platform.WarmReady, large, time.Minute), 59*time.Second)}},
		"firings are over":           {settings: &platform.Warm{Max: 5}, have: []platform.WarmMachine{unneeded(warm("a", platform.WarmReady, large, time.Minute), time.Minute)}, end: []string{"a"}},
		"next firing needs it":       {settings: &platform.Warm{Max: 5}, firing: map[platform.WarmKey]int{large: 1}, have: []platform.WarmMachine{unneeded(warm("a", platform.WarmReady, large, time.Minute), time.Hour)}, save: 1},
		"max limits unneeded ones":   {settings: &platform.Warm{Min: 1, Max: 1}, have: []platform.WarmMachine{warm("a", platform.WarmReady, large, time.Minute)}, create: []platform.WarmKey{small}, end: []string{"a"}},
		"max limits all":             {settings: &platform.Warm{Min: 1, Max: 2}, firing: map[platform.WarmKey]int{large: 7}, create: []platform.WarmKey{small, large}},
		"draining pool has none":     {settings: &platform.Warm{Min: 1, Max: 2}, draining: true, have: []platform.WarmMachine{warm("a", platform.WarmReady, small, time.Minute)}, end: []string{"a"}},
		"pool without the settings":  {have: []platform.WarmMachine{warm("a", platform.WarmReady, small, time.Minute), warm("b", platform.WarmClaimed, small, 0)}, end: []string{"a"}},
		"recycled before created":    {settings: &platform.Warm{Min: 2, Max: 5, After: platform.WarmRecycle}, have: []platform.WarmMachine{warm("a", platform.WarmRecycling, small, time.Hour)}, create: []platform.WarmKey{small}, recycle: []string{"a"}},
		"recycled up to max":         {settings: &platform.Warm{Min: 1, Max: 2, After: platform.WarmRecycle}, have: []platform.WarmMachine{warm("a", platform.WarmReady, small, time.Hour), warm("b", platform.WarmRecycling, small, time.Minute), warm("c", platform.WarmRecycling, small, time.Second)}, end: []string{"b"}, recycle: []string{"c"}},
		"recycled one stays":         {settings: &platform.Warm{Max: 1, After: platform.WarmRecycle}, have: []platform.WarmMachine{unneeded(recycled(warm("a", platform.WarmReady, small, time.Hour)), time.Hour)}},
		"until the setting ends":     {settings: &platform.Warm{Max: 1, After: platform.WarmDestroy}, have: []platform.WarmMachine{unneeded(recycled(warm("a", platform.WarmReady, small, time.Hour)), time.Hour), warm("b", platform.WarmRecycling, small, time.Hour)}, end: []string{"b", "a"}},
		"recycled one is too old":    {settings: &platform.Warm{Min: 1, Max: 2, MaxAge: time.Hour, After: platform.WarmRecycle}, have: []platform.WarmMachine{warm("a", platform.WarmRecycling, small, time.Hour)}, create: []platform.WarmKey{small}, end: []string{"a"}},
		"recycled in another place":  {settings: &platform.Warm{Min: 1, Max: 2, After: platform.WarmRecycle}, have: []platform.WarmMachine{recycling(other)}, create: []platform.WarmKey{small}, end: []string{"other"}},
		"recycled image has changed": {settings: &platform.Warm{Min: 1, Max: 2, After: platform.WarmRecycle}, have: []platform.WarmMachine{of("sha256:1", warm("old", platform.WarmRecycling, small, time.Hour)), of("sha256:2", warm("new", platform.WarmReady, small, time.Minute))}, end: []string{"old"}},
		"draining pool has none now": {settings: &platform.Warm{Min: 1, Max: 2, After: platform.WarmRecycle}, draining: true, have: []platform.WarmMachine{warm("a", platform.WarmRecycling, small, time.Minute)}, end: []string{"a"}},
		"firings do not need a pool": {firing: map[platform.WarmKey]int{small: 1}},
	} {
		p := platform.Pool{Tenant: "t", ID: "p", Warm: row.settings, Draining: row.draining}
		plan := fleet.PlanWarm(p, small, row.firing, row.have, epoch)
		var end, recycle []string
		for _, w := range plan.End {
			end = append(end, w.ID)
		}
		for _, w := range plan.Recycle {
			recycle = append(recycle, w.ID)
		}
		if !slices.Equal(recycle, row.recycle) {
			t.Errorf("%s: got %v recycled, want %v", name, recycle, row.recycle)
		}
		if !slices.Equal(plan.Create, row.create) || !slices.Equal(end, row.end) || plan.Stuck != row.stuck || len(plan.Save) != row.save {
			t.Errorf("%s: got creations %v, ends %v, %d stuck and changes %v, want %v, %v, %d and %d", name, plan.Create, end, plan.Stuck, plan.Save, row.create, row.end, row.stuck, row.save)
		}
	}
}

func TestWarmSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for want, row := range map[string]struct {
		settings platform.Warm
		runner   string
	}{
		"[]":                   {platform.Warm{Min: 2, Max: 2, Ahead: time.Hour, MaxAge: time.Hour, MemoryMB: 512}, platform.RunnerFly},
		"[warm]":               {platform.Warm{Max: 1}, platform.RunnerKubernetes},
		"[warm.max]":           {platform.Warm{}, platform.RunnerProcess},
		"[warm.min warm.max]":  {platform.Warm{Min: -1, Max: 201}, platform.RunnerFly},
		"[warm.max warm.cpus]": {platform.Warm{Min: 3, Max: 2, CPUs: 17}, platform.RunnerFly},
		"[warm.aheadSeconds]":  {platform.Warm{Max: 1, Ahead: 25 * time.Hour}, platform.RunnerFly},
		"[warm.maxAgeSeconds]": {platform.Warm{Max: 1, MaxAge: -time.Second}, platform.RunnerFly},
		"[warm.memoryMb]":      {platform.Warm{Max: 1, MemoryMB: 100}, platform.RunnerFly},
		"[warm.after]":         {platform.Warm{Max: 1, After: "keep"}, platform.RunnerFly},
		"[warm.image]":         {platform.Warm{Max: 1, Image: "a\x00b"}, platform.RunnerFly},
	} {
		fields := []string{}
		for _, f := range row.settings.Check(row.runner) {
			fields = append(fields, f.Field)
		}
		if got := fmt.Sprint(fields); got != want {
			t.Errorf("%+v with %s: got faults of %s, want %s", row.settings, row.runner, got, want)
		}
	}
}

// TestClaimOfAWarmMachine claims machines for an attempt until two have not started.
func TestClaimOfAWarmMachine(t *testing.T) {
	t.Parallel()
	r := run.Run{Tenant: "t", ID: "r", State: run.ContainerCreating, Policy: spec.Policy{StartTimeout: time.Minute}}
	r.Attempt.Number, r.Slot = 1, platform.Slot{Pool: "p", State: platform.SlotHeld}
	apply := func(f run.Fact) bool {
		t.Helper()
		d, err := run.Decide(r, f, epoch)
		if err != nil {
			t.Fatal(err)
		}
		r = d.Run
		return d.Changed
	}
	for i := range 2 {
		w := warm(fmt.Sprint(i), platform.WarmReady, small, 0)
		if apply(run.MachineClaimed{Attempt: 2, Warm: w}) {
			t.Error("got the claim of another attempt")
		}
		if !apply(run.MachineClaimed{Attempt: 1, Warm: w}) || !r.HasClaimed(w.Machine) || !r.Claims(w.ClaimedBy(r.ID, r.Attempt.Number)) {
			t.Fatalf("got attempt %+v, want one with a claim", r.Attempt)
		}
		if apply(run.MachineClaimed{Attempt: 1, Warm: warm("more", platform.WarmReady, small, 0)}) {
			t.Error("got a second claim")
		}
		if i == 1 && !apply(run.MachineCreated{Attempt: 1, Machine: w.Machine}) {
			t.Error("got no machine")
		}
		if apply(run.MachineGone{Attempt: 1}) {
			t.Error("got an end of the attempt by a sweep, want the decision of the launch")
		}
		if apply(run.MachineGivenUp{Attempt: 1, ID: "other"}) || !apply(run.MachineGivenUp{Attempt: 1, ID: w.ID}) {
			t.Error("got no end of the claim, want one by its id")
		}
		if r.Attempt.Machine.Known() || r.Claims(w.ClaimedBy(r.ID, r.Attempt.Number)) || r.Attempt.StuckWarm != i+1 {
			t.Errorf("got attempt %+v, want one without a machine", r.Attempt)
		}
		for _, late := range []run.Fact{
			run.MachineRunning{Attempt: 1},
			run.MachineGone{Attempt: 1},
			run.MachineGone{Attempt: 1, Exit: &run.Exit{Requested: true}},
			run.MachineWaits{Attempt: 1, Message: "x"},
			run.StartFailed{Attempt: 1, Fault: fault.New(fault.LaunchRefused, "x"), Gone: true},
		} {
			if apply(run.Swept{Fact: run.Shown{Machine: w.Machine, Fact: late}}) {
				t.Errorf("got a change by %#v of the machine that was given up", late)
			}
		}
		if apply(run.Evaluated{Machine: w.Machine, Phase: run.PhaseGone}); r.State != run.ContainerCreating {
			t.Errorf("got %s after a look at the machine that was given up, want ContainerCreating", r.State)
		}
	}
	if r.MayClaim() {
		t.Error("got a third claim, want a machine that is created")
	}
	r.State = run.Running
	r.Attempt.Warm = &run.WarmClaim{ID: "x"}
	if apply(run.MachineGivenUp{Attempt: 1, ID: "x"}) {
		t.Error("got an end of the claim of a run that runs")
	}
}

// TestWarmMachineIsHeldByOneAttempt: the hold of a machine ends with the attempt, with the run,
// and with the claim.
func TestWarmMachineIsHeldByOneAttempt(t *testing.T) {
	t.Parallel()
	r := run.Run{ID: "r", State: run.ContainerCreating}
	r.Attempt.Number, r.Attempt.Warm = 2, &run.WarmClaim{ID: "a"}
	w := warm("a", platform.WarmReady, small, 0).ClaimedBy(r.ID, r.Attempt.Number)
	if !r.Claims(w) {
		t.Fatalf("got no hold of %+v, want that of the attempt", w)
	}
	for name, change := range map[string]func(r *run.Run, w *platform.WarmMachine){
		"claim of an earlier attempt": func(_ *run.Run, w *platform.WarmMachine) { w.Attempt = 1 },
		"next attempt":                func(r *run.Run, _ *platform.WarmMachine) { r.Attempt.Number = 3 },
		"attempt without a claim":     func(r *run.Run, _ *platform.WarmMachine) { r.Attempt.Warm = nil },
		"claim of another machine":    func(r *run.Run, _ *platform.WarmMachine) { r.Attempt.Warm = &run.WarmClaim{ID: "b"} },
		"run that has ended":          func(r *run.Run, _ *platform.WarmMachine) { r.State = run.Completed },
		"machine that is recycled":    func(_ *run.Run, w *platform.WarmMachine) { *w = w.Clearing("v2") },
	} {
		r, w := r, w
		change(&r, &w)
		if r.Claims(w) {
			t.Errorf("%s: got a hold of the machine, want none", name)
		}
	}
}

// TestLateWarmMachineCountsAsAStart ends an attempt whose claimed machine started too late and
// was destroyed by the launch. The launch or a sweep sees it, also after a call of the worker.
// It counts as a start, unlike a stop from outside, which is retried without using a start. A
// launch does not give up a machine whose worker has called.
func TestLateWarmMachineCountsAsAStart(t *testing.T) {
	t.Parallel()
	stop := &run.Exit{Code: 137, Signal: 9, Requested: true}
	give, call := run.GiveUpBegun{Attempt: 1, ID: "late"}, run.WorkerContacted{Attempt: 1, WorkerID: "w", Started: true}
	for name, c := range map[string]struct {
		facts []run.Fact
		want  fault.Code
	}{
		"the launch sees its end":             {[]run.Fact{give, run.MachineGone{Attempt: 1, GivenUp: true, Exit: stop}}, fault.StartTimeout},
		"a sweep sees its end":                {[]run.Fact{give, run.MachineGone{Attempt: 1, Exit: stop}}, fault.StartTimeout},
		"its worker calls, says the launch":   {[]run.Fact{give, call, run.MachineGone{Attempt: 1, GivenUp: true, Exit: stop}}, fault.StartTimeout},
		"its worker calls, says a sweep":      {[]run.Fact{give, call, run.MachineGone{Attempt: 1, Exit: stop}}, fault.StartTimeout},
		"its worker notices the stop":         {[]run.Fact{give, call, run.Reported{Attempt: 1, WorkerID: "w", Report: run.Report{Outcome: run.OutcomeCancelled}}, run.Settled{Exit: stop}}, fault.StartTimeout},
		"it is stopped before it is given up": {[]run.Fact{run.MachineGone{Attempt: 1, Exit: stop}}, fault.MachineStopped},
		"its worker has called before":        {[]run.Fact{call, give, run.MachineGone{Attempt: 1, Exit: stop}}, fault.MachineStopped},
		"another one is given up":             {[]run.Fact{run.GiveUpBegun{Attempt: 1, ID: "other"}, run.MachineGone{Attempt: 1, Exit: stop}}, fault.MachineStopped},
	} {
		r := run.Run{Tenant: "t", ID: "r", State: run.ContainerCreating, Policy: fresh().Policy}
		r.Attempt.Number, r.Slot = 1, platform.Slot{Pool: "p", State: platform.SlotHeld}
		w := warm("late", platform.WarmReady, small, 0)
		for _, f := range append([]run.Fact{run.MachineClaimed{Attempt: 1, Warm: w}, run.MachineCreated{Attempt: 1, Machine: w.Machine}}, c.facts...) {
			d, err := run.Decide(r, f, epoch.Add(10*time.Second))
			if err != nil {
				t.Fatal(err)
			}
			r = d.Run
		}
		if r.Fault == nil || r.Fault.Code != c.want {
			t.Errorf("%s: got fault %v, want %s", name, r.Fault, c.want)
		}
	}
}

// TestRecyclableMachine lists the exits after which a machine can be reused: code 0, not
// requested, with the image of the record.
func TestRecyclableMachine(t *testing.T) {
	t.Parallel()
	w := of("sha256:1", warm("a", platform.WarmClaimed, small, time.Hour))
	for name, row := range map[string]struct {
		exit   *run.Exit
		digest string
		want   bool
	}{
		"code 0":        {&run.Exit{}, "sha256:1", true},
		"unknown":       {nil, "sha256:1", false},
		"code 1":        {&run.Exit{Code: 1}, "sha256:1", false},
		"signal":        {&run.Exit{Signal: 15}, "sha256:1", false},
		"memory":        {&run.Exit{OOM: true}, "sha256:1", false},
		"requested":     {&run.Exit{Requested: true}, "sha256:1", false},
		"another image": {&run.Exit{}, "sha256:2", false},
	} {
		if got := w.Recyclable(row.exit.Clean(), row.digest); got != row.want {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
	}
	ready := w.ClaimedBy("r", 0).Clearing("v2").Cleared(platform.Machine{Runner: "fly", App: "app", ID: "m-a", Version: "v3"})
	if ready.Phase != platform.WarmReady || ready.Run != "" || ready.Attempt != 0 || ready.Recycled != 1 || ready.Machine.Version != "v3" || !ready.CreatedAt.Equal(w.CreatedAt) {
		t.Errorf("got %+v, want a ready machine of no run with the age of its creation", ready)
	}
}

// TestClaimKeepsTheMachine: a claim keeps the machine only if the machine has a version.
func TestClaimKeepsTheMachine(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]platform.WarmRef{"": {}, "v1": {Tenant: "t", Pool: "p", ID: "a"}} {
		r := run.Run{Tenant: "t", ID: "r", State: run.ContainerCreating, Policy: spec.Policy{StartTimeout: time.Minute}}
		r.Attempt.Number, r.Slot = 1, platform.Slot{Pool: "p", State: platform.SlotHeld}
		w := warm("a", platform.WarmReady, small, 0)
		w.Machine.Version = version
		for _, f := range []run.Fact{run.MachineClaimed{Attempt: 1, Warm: w, Recycle: true}, run.MachineCreated{Attempt: 1, Machine: w.Machine}} {
			d, err := run.Decide(r, f, epoch)
			if err != nil {
				t.Fatal(err)
			}
			r = d.Run
		}
		if got := r.WarmForReuse(); got != want || r.Attempt.Machine.Version != version {
			t.Errorf("got %+v with version %q, want %+v with %q", got, r.Attempt.Machine.Version, want, version)
		}
	}
}
