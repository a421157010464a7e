package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

const (
	// admissionKeys is the number of keys with queued runs. admissionRounds is the number of
	// runs per key.
	admissionKeys   = 1000
	admissionRounds = 100
	// admissionGoal is the target rate, in decisions a second on two cores. It is printed with
	// the figure and not asserted.
	admissionGoal = 2000
	// admissions is the number of measured decisions of each kind.
	admissions = 10_000
)

// queueStore is a store with a full pool and its queue.
type queueStore struct {
	port.Store
	starts [admissionKeys]int
	// spread is the largest observed difference between the starts of two keys.
	spread int
}

// measureAdmissions measures decisions for a pool with 100,000 queued runs of 1,000 keys, each
// with its reads and its durable commit.
func measureAdmissions(ctx context.Context, t *table) error {
	db, remove, err := newDB(ctx)
	if err != nil {
		return err
	}
	defer remove()
	inner, err := sqlite.NewStore(ctx, db, clock.System{})
	if err != nil {
		return err
	}
	s := &queueStore{Store: inner}
	for round := range admissionRounds {
		if err := s.all(admissionKeys, func(i int) error {
			r, err := s.create(ctx, i, round)
			if err != nil {
				return err
			}
			return s.enqueue(ctx, r)
		}); err != nil {
			return err
		}
	}
	joining := make([]run.Run, admissions)
	if err := s.all(admissions, func(i int) (err error) {
		joining[i], err = s.create(ctx, i%admissionKeys, admissionRounds+i/admissionKeys)
		return err
	}); err != nil {
		return err
	}
	name := fmt.Sprintf("%d queued runs of %d keys, SQLite", admissionKeys*admissionRounds, admissionKeys)
	startedAt := time.Now()
	if err := s.all(admissions, func(i int) error { return s.enqueue(ctx, joining[i]) }); err != nil {
		return err
	}
	t.add(name, "admissions that join the queue", "%.0f/s (goal %d/s)", admissions/time.Since(startedAt).Seconds(), admissionGoal)
	startedAt = time.Now()
	var holder *run.Run
	for range admissions {
		if holder, err = s.grant(ctx, holder); err != nil {
			return err
		}
	}
	t.add(name, "ends of runs that start the next, with one slot, each", "%.2f ms", millis(time.Since(startedAt))/admissions)
	t.add(name, "difference between most and least starts of keys, largest", "%d (goal 1)", s.spread)
	return nil
}

// newDB opens a database in a new folder. remove closes and deletes it.
func newDB(ctx context.Context) (db *sqlite.DB, remove func(), err error) {
	folder, err := os.MkdirTemp("", "sortie-bench-")
	if err != nil {
		return nil, nil, err
	}
	if db, err = sqlite.Open(ctx, filepath.Join(folder, "sortie.db")); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(folder))
	}
	return db, func() { _ = errors.Join(db.Close(), os.RemoveAll(folder)) }, nil
}

func (s *queueStore) all(n int, do func(i int) error) error {
	errs := make([]error, n)
	each(n, inFlight, func(i int) { errs[i] = do(i) })
	return errors.Join(errs...)
}

// create creates a run of a key.
func (s *queueStore) create(ctx context.Context, key, round int) (run.Run, error) {
	now := time.Now().UTC()
	r := run.Run{
		Tenant: "default", ID: fmt.Sprintf("run-%d-%d", key, round), Workspace: "default", CorrelationID: "c",
		Concurrency: &spec.Concurrency{Key: fmt.Sprintf("customer-%d", key), Limit: admissionRounds * 10},
		Work:        spec.Work{Kind: spec.KindJob, Image: "worker", Program: &spec.Program{Completion: spec.CompletionExit}},
		Policy:      spec.Policy{QueueTimeout: time.Hour, StartTimeout: time.Hour, TimeLimit: time.Hour, RecordRetention: time.Hour, Retry: spec.Retry{MaxAttempts: 1}},
	}
	r.TaskID = r.ID
	d := run.New(r, now)
	_, err := s.Create(ctx, port.WriteOf(d), nil)
	d.Run.Version = 1
	return d.Run, err
}

// enqueue adds a run to the queue of the pool, as its admission does.
func (s *queueStore) enqueue(ctx context.Context, r run.Run) error {
	line, err := s.QueueState(ctx, r.Tenant, r.SlotOf("default", 1))
	if err != nil {
		return err
	}
	d, err := run.Decide(r, run.Enqueued{Pool: "default", Limit: 1, Queue: line}, time.Now())
	if err != nil {
		return err
	}
	return s.Commit(ctx, port.WriteOf(d))
}

// grant ends the holder of the slot and starts the first queued run in one commit. It returns
// the new holder.
func (s *queueStore) grant(ctx context.Context, holder *run.Run) (*run.Run, error) {
	now := time.Now().UTC()
	queue, err := s.Queue(ctx, "default", "default", 8)
	if err != nil || len(queue) == 0 {
		return nil, fmt.Errorf("got an empty queue, %w", err)
	}
	r, err := s.Load(ctx, queue[0])
	if err != nil {
		return nil, err
	}
	granted, err := run.Decide(r, run.Granted{Limit: 1}, now)
	if err != nil {
		return nil, err
	}
	writes := []port.Write{port.WriteOf(granted)}
	if holder != nil {
		ended, err := run.Decide(*holder, run.Abandoned{Message: "done"}, now)
		if err != nil {
			return nil, err
		}
		ended.Run.Version++
		settled, err := run.Decide(ended.Run, run.Settled{}, now)
		if err != nil {
			return nil, err
		}
		settled.Run.Version = holder.Version
		w := port.WriteOf(settled)
		w.Events = append(ended.Events, w.Events...)
		writes = append(writes, w)
	}
	if err := s.Commit(ctx, writes...); err != nil {
		return nil, err
	}
	s.started(r.Concurrency.Key)
	granted.Run.Version++
	return &granted.Run, nil
}

// started counts a start of the key. All keys have queued runs, so it also updates spread.
func (s *queueStore) started(key string) {
	var i int
	_, _ = fmt.Sscanf(key, "customer-%d", &i)
	s.starts[i]++
	least, most := s.starts[0], s.starts[0]
	for _, n := range s.starts {
		least, most = min(least, n), max(most, n)
	}
	s.spread = max(s.spread, most-least)
}
