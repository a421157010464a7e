package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// sweepInterval is the interval of the sweeps while a run has not ended or a fault is in
// progress. Otherwise a sweep only deletes, and one in an hour is enough.
const (
	sweepInterval = time.Minute
	idleInterval  = time.Hour
	afterFault    = 15 * time.Minute
)

// memoryDir is a file system in memory on Linux. The store of a play need not survive the host.
const memoryDir = "/dev/shm"

// Play plays a scenario. progress is called after each simulated day; nil is allowed. The error
// is that of the play itself or of ctx: runs that fail are part of the answer.
func Play(ctx context.Context, s Scenario, progress func(day, of int)) (r Result, err error) {
	dir, err := os.MkdirTemp(memoryDir, "sortie-scenario-")
	if err != nil {
		dir, err = os.MkdirTemp("", "sortie-scenario-")
	}
	if err != nil {
		return r, fmt.Errorf("cannot make a temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := newWorld(s, dir)
	if err == nil {
		err = w.startProcess(ctx)
	}
	if err != nil {
		return r, err
	}
	err = w.play(ctx, progress)
	w.process.killed = true
	w.time.Abandon()
	if err = errors.Join(err, w.broken, w.process.db.Close()); err != nil {
		return r, fmt.Errorf("cannot play %s: %w", s.Name, err)
	}
	return w.result(), nil
}

func (w *world) play(ctx context.Context, progress func(day, of int)) error {
	w.time.After(0, func() {
		w.storeJobs()
		for _, j := range w.s.jobs {
			if j.perHour > 0 {
				w.time.Spawn(true, func() { w.arrive(j) })
			}
		}
		w.sweep(restartHorizon)
	})
	w.time.Push(sweepInterval, true, func() { w.keepSweeping(w.s.start) })
	for _, f := range w.s.faults {
		if f.Type == StoppedServer {
			w.time.Push(f.from.Sub(w.s.start), true, func() { w.stop(f) })
		}
	}
	if progress != nil {
		for day := range w.s.File.Days {
			w.time.Push(time.Duration(day+1)*24*time.Hour-time.Nanosecond, true, func() { progress(day+1, w.s.File.Days) })
		}
	}
	for w.broken == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !w.next() {
			break
		}
	}
	return nil
}

// next advances to the next event before the end and handles it. It returns false at the end.
func (w *world) next() bool {
	at, ok := w.time.Next()
	due, has := w.process.engine.NextDue()
	if has && !w.process.killed {
		due = due.Add(-w.offset())
		if !ok || !due.After(at) {
			if !due.Before(w.s.End()) {
				return false
			}
			if due.After(w.time.Now) {
				w.time.Now = due
			}
			w.time.Spawn(false, w.step)
			return true
		}
	}
	if !ok || !at.Before(w.s.End()) {
		return false
	}
	w.time.Step()
	return true
}

// storeJobs stores the jobs, each after those that it comes after.
func (w *world) storeJobs() {
	left := w.s.jobs
	for len(left) > 0 && w.broken == nil {
		var refused []plannedJob
		var why error
		for _, j := range left {
			if err := w.store(j); err != nil {
				refused, why = append(refused, j), fmt.Errorf("job %s: %w", j.definition.ID, err)
			}
		}
		if len(refused) == len(left) {
			w.broken = why
		}
		left = refused
	}
}

func (w *world) store(j plannedJob) error {
	document, err := json.Marshal(j.definition)
	if err != nil {
		return fmt.Errorf("definition: %w", err)
	}
	w.call(func(ctx context.Context) {
		_, _, err = w.process.system.Jobs.Put(ctx, owner, j.definition.ID, document, change.Precondition{})
	})
	return err
}

// keepSweeping sweeps now if something can be due, and schedules the next sweep. last is the time
// of the last sweep.
func (w *world) keepSweeping(last time.Time) {
	now := w.time.Now
	if w.tally.open > 0 || now.Sub(last) >= idleInterval || w.faulty() {
		last = now
		w.time.Spawn(true, func() { w.sweep(0) })
	}
	w.time.Push(sweepInterval, true, func() { w.keepSweeping(last) })
}

// faulty reports whether a fault is in progress or has just ended.
func (w *world) faulty() bool {
	for _, f := range w.s.faults {
		if f.Type != LostCallbacks && !w.time.Now.Before(f.from) && w.time.Now.Before(f.to.Add(afterFault)) {
			return true
		}
	}
	return false
}

// stop kills the server, and starts it again at the end of the fault.
func (w *world) stop(f span) {
	p := w.process
	if p.killed {
		return
	}
	p.killed = true
	w.time.Push(f.to.Sub(w.time.Now), true, func() {
		err := p.db.Close()
		if err == nil {
			err = w.startProcess(context.Background())
		}
		if err != nil {
			w.broken = fmt.Errorf("cannot restart the server: %w", err)
			return
		}
		w.time.Spawn(true, func() { w.sweep(restartHorizon) })
	})
}

// arrive requests runs of a job at random times.
func (w *world) arrive(j plannedJob) {
	random := rand.New(rand.NewPCG(w.s.Seed(), hashOf("arrivals of "+j.definition.ID))) //nolint:gosec // the seed must determine everything
	for n := 1; ; n++ {
		w.time.Sleep(time.Duration(random.ExpFloat64() / j.perHour * float64(time.Hour)))
		w.time.Spawn(true, func() { w.request(j.definition.ID, n) })
	}
}

// requestPause is the time after which a client repeats a request without an answer.
const requestPause = 10 * time.Second

// request requests a run. The client repeats the request until it gets an answer.
func (w *world) request(id string, n int) {
	key := fmt.Sprintf("%s#%d", id, n)
	for {
		var err error
		ok := w.call(func(ctx context.Context) {
			var accepted string
			accepted, err = w.accepted(ctx, id, key)
			w.tally.keys[accepted] = key
		})
		f, known := errors.AsType[*fault.Fault](err)
		switch {
		case !ok, known && f.Code == fault.Unavailable:
			w.time.Sleep(requestPause)
			continue
		case err != nil:
			w.tally.refuse[id]++
		}
		return
	}
}

// accepted requests a run and returns its id.
func (w *world) accepted(ctx context.Context, id, key string) (string, error) {
	r, _, err := w.process.system.Jobs.RunJob(ctx, jobs.RunRequest{Identity: owner, JobID: id, IdempotencyKey: key, CorrelationID: key})
	return r.ID, err
}
