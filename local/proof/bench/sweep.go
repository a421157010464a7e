package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/sortie-dev/sortie/local/proof/port/awsfake"
	"github.com/sortie-dev/sortie/local/proof/port/fake"
	"github.com/sortie-dev/sortie/shared/adapter/dynamo"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/app/grants"
	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// sweepMemory is the default memory of the function sweep, in bytes.
const sweepMemory = 128 << 20

// measureSweep measures the memory of a process that sweeps a table through DynamoDB's adapter.
func measureSweep(ctx context.Context, t *table) error {
	for _, living := range []int{10_000, 100_000} {
		s, err := sweepOf(ctx, living)
		if err != nil {
			return err
		}
		t.add("sweep with DynamoDB's adapter", fmt.Sprintf("%d living runs, memory / duration", living), "%.0f MiB / %.1f s", mebi(s.Resident), s.Took.Seconds())
		if s.Resident > sweepMemory {
			return fmt.Errorf("the sweep of %d living runs took %d bytes, want at most %d", living, s.Resident, sweepMemory)
		}
	}
	return nil
}

// swept is the report of a process after its sweep.
type swept struct {
	// Resident is the peak resident memory of the process, in bytes.
	Resident int64
	Took     time.Duration
	// Checked is the number of executions that the sweep checked.
	Checked int64
}

const sweptTable = "sortie"

// sweepOf runs a sweep of living runs in its own process. Half of the runs have a running
// machine, and half are queued for a slot. One in a hundred is overdue.
func sweepOf(ctx context.Context, living int) (swept, error) {
	db := awsfake.NewDynamoDB(awsfake.DynamoDBConfig{Clock: clock.System{}})
	if err := awsfake.CreateTable(ctx, db.AWS(), sweptTable); err != nil {
		return swept{}, err
	}
	store, err := dynamo.Open(db.AWS(), dynamo.Config{Table: sweptTable, Clock: clock.System{}})
	if err != nil {
		return swept{}, err
	}
	errs := make([]error, living)
	each(living, 2, func(i int) { _, errs[i] = store.Create(ctx, livingRun(i), nil) })
	if err := errors.Join(errs...); err != nil {
		return swept{}, err
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := db.Do(r)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		defer func() { _ = answer.Body.Close() }()
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	}))
	defer api.Close()
	executable, err := os.Executable()
	if err != nil {
		return swept{}, err
	}
	sweeper := exec.CommandContext(ctx, executable, "sweep", api.URL, strconv.Itoa(living))
	sweeper.Stderr = os.Stderr
	text, err := sweeper.Output()
	if err != nil {
		return swept{}, fmt.Errorf("cannot sweep: %w", err)
	}
	var s swept
	if err := json.Unmarshal(text, &s); err != nil {
		return swept{}, err
	}
	if want := int64(living / 100); s.Checked != want {
		return swept{}, fmt.Errorf("got %d executions checked, want %d", s.Checked, want)
	}
	return s, nil
}

// livingRun returns the record of run i.
func livingRun(i int) port.Write {
	now := time.Now().UTC()
	m := livingMachine(i)
	w := port.WriteOf(run.New(run.Run{
		Tenant: m.Owner.Tenant, ID: m.Owner.RunID, TaskID: m.Owner.RunID, Workspace: "default", CorrelationID: "0f8fad5b-d9cb-469f-a165-70867728950e",
		Work: spec.Work{Kind: "export", Format: "mods", PI: "01K9XVBAQZF9EHDRXGBEADTZYY", Options: json.RawMessage(`{"recursive":true}`), Image: "registry.fly.io/worker:v1"},
	}, now))
	w.Run.Execution.ActBy = now.Add(time.Hour)
	if i%100 == 0 {
		w.Run.Execution.ActBy = now.Add(-time.Minute)
	}
	w.Run.Execution.Pending = nil
	if i%2 == 0 {
		w.Run.State, w.Run.Slot = run.Running, platform.Slot{Pool: "default", State: platform.SlotHeld}
		w.Run.Attempt = run.Attempt{Number: 1, MachineName: m.Name, Machine: m.Machine, StartedAt: now}
		return w
	}
	w.Run.Slot = platform.Slot{Pool: "default", Limit: 10, State: platform.SlotQueued, Since: now}
	w.Lease = run.LeaseEnqueue
	return w
}

// livingMachine returns the machine of run i.
func livingMachine(i int) port.MachineStatus {
	id := fmt.Sprintf("export_mods_%013d_%08x", 1_772_352_000_000+i, i)
	return port.MachineStatus{
		Machine: port.Machine{Runner: "fly", App: fmt.Sprintf("workers-%d", i%100), Region: "fra", ID: fmt.Sprintf("%014x", i)},
		Name:    run.MachineName(run.Ref{Tenant: "default", ID: id}, 1), Phase: port.MachineRunning,
		Owner: port.MachineOwner{Tenant: "default", RunID: id, Attempt: 1},
	}
}

// listOnly is a runner that only lists machines.
type listOnly struct {
	port.Runner
	living int
}

// List implements port.Runner.
func (l listOnly) List(_ context.Context, each func(port.MachineStatus) bool) error {
	for i := 0; i < l.living; i += 2 {
		if !each(livingMachine(i)) {
			break
		}
	}
	return nil
}

// Inspect implements port.Runner. It returns an error, because no listed machine needs an
// inspection.
func (listOnly) Inspect(context.Context, port.Machine) (port.MachineStatus, error) {
	return port.MachineStatus{}, fault.New(fault.Internal, "a listed machine was inspected")
}

// allRunning are executions that are all running. It counts the calls of Describe.
type allRunning struct {
	port.Executions
	checked atomic.Int64
}

// Describe implements port.Executions.
func (a *allRunning) Describe(_ context.Context, name string) (port.Execution, error) {
	a.checked.Add(1)
	return port.Execution{Name: name, Status: port.ExecutionRunning}, nil
}

// sweepOnce sweeps the table at the URL and prints its usage.
func sweepOnce(url, living string) int {
	n, err := strconv.Atoi(living)
	if err != nil {
		return failed(err)
	}
	store, err := dynamo.Open(aws.Config{
		Region: "us-east-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	}, dynamo.Config{Table: sweptTable, Clock: clock.System{}})
	if err != nil {
		return failed(err)
	}
	executions := &allRunning{}
	config := runs.Config{Pool: "default", MaxMachines: 10, SweepWorkers: 16}
	records := runs.NewRecords(store, clock.System{}, slog.New(slog.DiscardHandler))
	leave := runs.LeaveToSweep{}
	life := runs.NewLifecycle(records, executions, leave, leave, leave, config)
	machines := runs.NewMachines(life, listOnly{living: n})
	firing := runs.NewFiring(life, fake.NewSchedules(nil))
	tokens := grants.NewTokens(fake.NewSigner(nil), clock.System{}, func(n int) string { return strings.Repeat("0", 2*n) })
	reception := runs.NewReception(records, tokens, func(context.Context, string) error { return nil }, config)
	registry := artifacts.NewRegistry(store, nil, clock.System{}, slog.New(slog.DiscardHandler), nil, 0, 0)
	sweeper := runs.NewSweeper(machines, runs.NewOutputs(records, nil), registry, firing, reception, runs.LeaveToDatabase{}, app.Drains(life, config), app.Warm(life, listOnly{living: n}, nil, config), config)
	began := time.Now()
	if err := sweeper.Sweep(context.Background(), 0); err != nil {
		return failed(err)
	}
	took := time.Since(began)
	used, err := usageOf(os.Getpid())
	if err != nil {
		return failed(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(swept{used.peak, took, executions.checked.Load()}); err != nil {
		return failed(err)
	}
	return 0
}
