package harness

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// Slowest limits the time of a slow commit.
const Slowest = 20 * time.Second

// crashingStore is a store whose process can crash before and after a commit.
type crashingStore struct {
	port.Store
	W *Base
}

// Create implements port.Store.
func (s *crashingStore) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	s.W.MaybeCrash()
	existing, err := s.Store.Create(ctx, first, key, with...)
	s.W.MaybeCrash()
	return existing, err
}

// SaveJob implements port.Store.
func (s *crashingStore) SaveJob(ctx context.Context, j job.Job, notes ...port.Note) error {
	return s.around(func() error { return s.Store.SaveJob(ctx, j, notes...) })
}

// FireJob implements port.Store.
func (s *crashingStore) FireJob(ctx context.Context, j job.Job, firings ...port.Write) error {
	return s.around(func() error { return s.Store.FireJob(ctx, j, firings...) })
}

// DeleteJob implements port.Store.
func (s *crashingStore) DeleteJob(ctx context.Context, j job.Job, notes ...port.Note) error {
	return s.around(func() error { return s.Store.DeleteJob(ctx, j, notes...) })
}

// WriteResources implements port.Store.
func (s *crashingStore) WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error {
	if !s.W.Serves() && s.W.Items == nil { // no check depends on the platforms' last refusals
		return s.Store.WriteResources(ctx, save, remove, notes...)
	}
	return s.around(func() error { return s.Store.WriteResources(ctx, save, remove, notes...) })
}

// around makes a commit, which may be slow. The process can crash before and after it.
func (s *crashingStore) around(commit func() error) error {
	s.W.MaybeCrash()
	if s.W.Injects("overlapping commit", s.W.Plan.SlowCommits) {
		s.W.Time.Sleep(s.W.UpTo(Slowest))
	}
	err := commit()
	s.W.MaybeCrash()
	return err
}

// Commit implements port.Store.
func (s *crashingStore) Commit(ctx context.Context, writes ...port.Write) error {
	return s.around(func() error { return s.Store.Commit(ctx, writes...) })
}

// observedStore records which data may have changed.
type observedStore struct {
	port.Store
	W *Base
}

// Create implements port.Store.
func (s observedStore) Create(ctx context.Context, first port.Write, key *port.IdempotencyKey, with ...port.Write) (*run.Run, error) {
	if err := Interrupted(ctx); err != nil {
		return nil, err
	}
	existing, err := s.Store.Create(ctx, first, key, with...)
	for _, each := range append(with, first) {
		s.W.Records.touch(each.Run.Ref())
	}
	s.W.Watch.Written(err)
	return existing, err
}

// Commit implements port.Store.
func (s observedStore) Commit(ctx context.Context, writes ...port.Write) error {
	if err := Interrupted(ctx); err != nil {
		return err
	}
	err := s.Store.Commit(ctx, writes...)
	for _, each := range writes {
		s.W.Records.touch(each.Run.Ref())
		if each.Warm != nil {
			s.W.Watch.TouchWarm(*each.Warm)
		}
	}
	s.W.Watch.Written(err)
	return err
}

// SavePool implements port.Store.
func (s observedStore) SavePool(ctx context.Context, p platform.Pool, notes ...port.Note) error {
	if err := Interrupted(ctx); err != nil {
		return err
	}
	err := s.Store.SavePool(ctx, p, notes...)
	s.W.Watch.Written(err, notes...)
	return err
}

// DeletePool implements port.Store.
func (s observedStore) DeletePool(ctx context.Context, p platform.Pool, notes ...port.Note) error {
	if err := Interrupted(ctx); err != nil {
		return err
	}
	err := s.Store.DeletePool(ctx, p, notes...)
	s.W.Watch.Written(err, notes...)
	return err
}

// WriteResources implements port.Store.
func (s observedStore) WriteResources(ctx context.Context, save, remove []port.Resource, notes ...port.Note) error {
	if err := Interrupted(ctx); err != nil {
		return err
	}
	err := s.Store.WriteResources(ctx, save, remove, notes...)
	s.W.Watch.SetsWritten(err, save, remove)
	if len(notes) > 0 {
		s.W.Watch.Written(err, notes...)
	}
	return err
}

// SaveJob implements port.Store.
func (s observedStore) SaveJob(ctx context.Context, j job.Job, notes ...port.Note) error {
	return s.observeJob(ctx, j, func() error { return s.Store.SaveJob(ctx, j, notes...) }, notes...)
}

// FireJob implements port.Store.
func (s observedStore) FireJob(ctx context.Context, j job.Job, firings ...port.Write) error {
	err := s.observeJob(ctx, j, func() error { return s.Store.FireJob(ctx, j, firings...) })
	for _, each := range firings {
		s.W.Records.touch(each.Run.Ref())
	}
	return err
}

// DeleteJob implements port.Store.
func (s observedStore) DeleteJob(ctx context.Context, j job.Job, notes ...port.Note) error {
	return s.observeJob(ctx, j, func() error { return s.Store.DeleteJob(ctx, j, notes...) }, notes...)
}

func (s observedStore) observeJob(ctx context.Context, j job.Job, commit func() error, notes ...port.Note) error {
	if err := Interrupted(ctx); err != nil {
		return err
	}
	err := commit()
	s.W.Watch.TouchJob(j.ID)
	s.W.Watch.Written(err, notes...)
	return err
}

// crashingRunner is a runner whose caller can crash before and after a call.
type crashingRunner struct {
	port.Runner
	W *Base
}

// ListOf implements port.RunnerLists.
func (r crashingRunner) ListOf(ctx context.Context, runner string, each func(port.MachineStatus) bool) error {
	if lists, ok := r.Runner.(port.RunnerLists); ok {
		return lists.ListOf(ctx, runner, each)
	}
	return r.List(ctx, each)
}

// Launch implements port.Runner.
func (r crashingRunner) Launch(ctx context.Context, spec port.LaunchSpec) (port.MachineStatus, error) {
	r.W.MaybeCrash()
	m, err := r.Runner.Launch(ctx, spec)
	r.W.MaybeCrash()
	return m, err
}

// crashingWarm is a crashingRunner with warm machines.
type crashingWarm struct {
	crashingRunner
	machines port.WarmMachines
}

// Prepare implements port.WarmMachines.
func (r crashingWarm) Prepare(ctx context.Context, spec port.WarmSpec) (port.MachineStatus, error) {
	r.W.MaybeCrash()
	m, err := r.machines.Prepare(ctx, spec)
	r.W.MaybeCrash()
	return m, err
}

// StartWarm implements port.WarmMachines.
func (r crashingWarm) StartWarm(ctx context.Context, m port.Machine, spec port.LaunchSpec) (port.MachineStatus, error) {
	r.W.MaybeCrash()
	status, err := r.machines.StartWarm(ctx, m, spec)
	r.W.MaybeCrash()
	return status, err
}

// SaveWarm implements port.Store.
func (s *crashingStore) SaveWarm(ctx context.Context, m platform.WarmMachine) error {
	return s.around(func() error { return s.Store.SaveWarm(ctx, m) })
}

// DeleteWarm implements port.Store.
func (s *crashingStore) DeleteWarm(ctx context.Context, m platform.WarmMachine) error {
	return s.around(func() error { return s.Store.DeleteWarm(ctx, m) })
}

// Holders implements port.Store. It adds the tasks of simulated dispatchers, which are not in
// the database.
func (s *crashingStore) Holders(ctx context.Context, tenant, pool string, limit int) ([]run.Ref, error) {
	found, err := s.Store.Holders(ctx, tenant, pool, limit)
	if err == nil && s.W.TasksOf(pool, "") > 0 {
		for _, t := range s.W.Tasks {
			if t.Pool == pool {
				found = append(found, t.Ref)
			}
		}
	}
	return found, err
}

// Load implements port.Store.
func (s *crashingStore) Load(ctx context.Context, ref run.Ref) (run.Run, error) {
	if !s.W.Serves() || !strings.HasPrefix(ref.ID, "task-") {
		return s.Store.Load(ctx, ref)
	}
	for _, t := range s.W.Tasks {
		if t.Ref == ref {
			r := run.Run{Tenant: ref.Tenant, ID: ref.ID, State: run.Running, Slot: platform.Slot{Pool: t.Pool, State: platform.SlotHeld}}
			r.Attempt.Replica = t.Replica
			return r, nil
		}
	}
	return run.Run{}, port.ErrNotFound
}

// TasksOf counts the tasks of a replica. An empty replica means all of the pool.
func (w *Base) TasksOf(pool, replica string) (n int) {
	w.Tasks = slices.DeleteFunc(w.Tasks, func(t *ReplicaTask) bool { return !w.Time.Now.Before(t.Until) })
	for _, t := range w.Tasks {
		if t.Pool == pool && (replica == "" || t.Replica == replica) {
			n++
		}
	}
	return n
}

// ReplicaTask is a task with a slot of a replica.
type ReplicaTask struct {
	Ref           run.Ref
	Pool, Replica string
	// Of is the id of the replica's run.
	Of    string
	Until time.Time
}

// SaveWarm implements port.Store.
func (s observedStore) SaveWarm(ctx context.Context, m platform.WarmMachine) error {
	defer s.W.Watch.TouchWarm(m)
	return s.Store.SaveWarm(ctx, m)
}

// DeleteWarm implements port.Store.
func (s observedStore) DeleteWarm(ctx context.Context, m platform.WarmMachine) error {
	defer s.W.Watch.TouchWarm(m)
	return s.Store.DeleteWarm(ctx, m)
}

// Recycle implements port.WarmMachines.
func (r crashingWarm) Recycle(ctx context.Context, m port.Machine, spec port.WarmSpec) (port.MachineStatus, error) {
	r.W.MaybeCrash()
	status, err := r.machines.Recycle(ctx, m, spec)
	r.W.MaybeCrash()
	return status, err
}
