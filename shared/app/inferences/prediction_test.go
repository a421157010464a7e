package inferences_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sortie-dev/sortie/shared/adapter/mockengine"
	"github.com/sortie-dev/sortie/shared/app/inferences"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/spec"
	"github.com/sortie-dev/sortie/shared/port"
)

// timed is an engine whose answers take answerTime after hold is closed.
type timed struct {
	port.Engine
	h    *inferring
	hold func() <-chan struct{}
}

// answerTime is the duration of each answer of timed.
const answerTime = 4 * time.Second

// Generate implements port.Engine.
func (e timed) Generate(ctx context.Context, in port.Generation, each func(port.Piece) error) (port.GenerationEnd, error) {
	select {
	case <-e.hold():
	case <-ctx.Done():
		return port.GenerationEnd{}, ctx.Err()
	}
	e.h.clock.Advance(answerTime)
	return e.Engine.Generate(ctx, in, each)
}

// TestPredictedStartOfATask: the prediction is 100 ms for each task ahead while no task was
// measured. Then it follows from the leases and the measured tasks, as in the explanation of
// the run. The actual start is compared with it.
func TestPredictedStartOfATask(t *testing.T) {
	t.Parallel()
	var hold chan struct{}
	h := newInferring(t, 1, 1, func(h *inferring) {
		h.wrap = func(e port.Engine) port.Engine { return timed{e, h, func() <-chan struct{} { return hold }} }
	})
	create := func() inferences.Accepted {
		t.Helper()
		h.clock.Advance(time.Millisecond) // the order of the queue is that of the time
		accepted, err := h.tasks.Create(t.Context(), inferences.NewTask{
			Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count"}, MaxTokens: 2,
		})
		h.ok(err)
		return accepted
	}
	hold = make(chan struct{})
	before := []inferences.Accepted{create(), create(), create()}
	if last := before[2]; last.QueuePosition != 1 || last.PredictedStart != 100*time.Millisecond {
		t.Errorf("got the position %d and a start in %s, want 1 and 100 ms while nothing was measured", last.QueuePosition, last.PredictedStart)
	}
	close(hold)
	for _, each := range before {
		h.ended(each.Run.TaskID)
	}
	for range 6 {
		h.ended(create().Run.TaskID)
	}
	h.clock.Advance(2 * time.Minute) // the measured tasks are read again
	hold = make(chan struct{})
	after := []inferences.Accepted{create(), create(), create()}
	for i, each := range after[1:] {
		want := time.Duration(i+1) * answerTime
		if each.QueuePosition != i || each.PredictedStart < want*3/4 || each.PredictedStart > want*3/2 || each.Run.Prediction == nil || each.Run.Prediction.Measured == 0 {
			t.Errorf("got the position %d and a start in %s by %+v, want %d and about %s", each.QueuePosition, each.PredictedStart, each.Run.Prediction, i, want)
		}
		explained, err := h.explains.ExplainRun(t.Context(), client, each.Run.TaskID)
		h.ok(err)
		if explained.Expected == nil || explained.Expected.P50.Sub(h.clock.Now().Add(each.PredictedStart)).Abs() > time.Second {
			t.Errorf("got %+v as the explanation at %s, want the same start in %s", explained.Expected, h.clock.Now(), each.PredictedStart)
		}
	}
	close(hold)
	for _, each := range after[1:] {
		begun := h.read(each.Run.TaskID, inference.EventID{})[0].Data
		if got, ok := begun.(*inference.Started); !ok || got.QueuePosition != each.QueuePosition || got.PredictedStartMS != each.PredictedStart.Milliseconds() {
			t.Errorf("got the first event %+v, want the position %d and a start in %s, as when it was accepted", begun, each.QueuePosition, each.PredictedStart)
		}
		r := h.ended(each.Run.TaskID)
		late, covered, ok := r.Prediction.Error()
		if !ok || late.Abs() > answerTime || !covered {
			t.Errorf("got a start %s later than predicted by %+v, want it compared, and covered", late, r.Prediction)
		}
	}
}

// TestStartedSaysWhatTheAcceptanceSaid: the first event of a stream has the position and the
// predicted start that the acceptance returned. This holds for a task that starts at once and
// for queued ones, also if a task with a higher priority starts before them, and after a crash.
func TestStartedSaysWhatTheAcceptanceSaid(t *testing.T) {
	t.Parallel()
	h := newInferring(t, 1, 1)
	h.engines["r1"].FailNext(mockengine.FailStall, 1)
	var accepted []inferences.Accepted
	for _, priority := range []spec.Priority{spec.PriorityNormal, spec.PriorityNormal, spec.PriorityNormal, spec.PriorityInteractive, spec.PriorityNormal} {
		h.clock.Advance(time.Millisecond) // the order of the queue is that of the time
		a, err := h.tasks.Create(t.Context(), inferences.NewTask{
			Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count"}, MaxTokens: 2, Priority: priority,
		})
		h.ok(err)
		accepted = append(accepted, a)
	}
	h.seen(accepted[0].Run.TaskID, inference.NameToken)
	h.restart()
	for _, a := range accepted {
		h.ok(h.sweeper.Advance(t.Context(), a.Run.Ref()))
	}
	for i, position := range []int{0, 0, 1, 0, 3} {
		want := inference.Started{QueuePosition: position, PredictedStartMS: 100 * int64(position)}
		if got := accepted[i]; got.QueuePosition != position || got.PredictedStart.Milliseconds() != want.PredictedStartMS {
			t.Errorf("task %d: got the position %d and a start in %s, want %d and 100 ms for each", i, got.QueuePosition, got.PredictedStart, position)
		}
		events := h.read(accepted[i].Run.TaskID, inference.EventID{})
		if got, ok := events[0].Data.(*inference.Started); !ok || *got != want {
			t.Errorf("task %d: got the first event %+v, want %+v", i, events[0].Data, want)
		}
	}
}

// TestFirstEndsOfABurstAreMeasured: after the first tasks of a burst have ended, predictions
// for new tasks use their duration.
func TestFirstEndsOfABurstAreMeasured(t *testing.T) {
	t.Parallel()
	var hold chan struct{}
	h := newInferring(t, 1, 1, func(h *inferring) {
		h.wrap = func(e port.Engine) port.Engine { return timed{e, h, func() <-chan struct{} { return hold }} }
	})
	create := func() inferences.Accepted {
		t.Helper()
		h.clock.Advance(time.Millisecond)
		accepted, err := h.tasks.Create(t.Context(), inferences.NewTask{
			Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count"}, MaxTokens: 2,
		})
		h.ok(err)
		return accepted
	}
	hold = make(chan struct{})
	first := create()
	var waiting []inferences.Accepted
	for range 3 {
		waiting = append(waiting, create())
	}
	if last := waiting[2]; last.PredictedStart != 200*time.Millisecond {
		t.Errorf("got a start in %s, want 200 ms while nothing is known", last.PredictedStart)
	}
	close(hold)
	h.ended(first.Run.TaskID)
	for _, each := range waiting {
		h.ended(each.Run.TaskID)
	}
	h.clock.Advance(3 * time.Second) // less than a minute after the first read
	hold = make(chan struct{})
	create()
	create()
	if next := create(); next.QueuePosition != 1 || next.Run.Prediction.Measured == 0 || next.PredictedStart < answerTime {
		t.Errorf("got the position %d and a start in %s by %+v, want 1 and one from what was measured", next.QueuePosition, next.PredictedStart, next.Run.Prediction)
	}
	close(hold)
}

// TestPositionsOfABurstDiffer creates tasks concurrently: the position of each counts the tasks
// before it.
func TestPositionsOfABurstDiffer(t *testing.T) {
	t.Parallel()
	const tasks = 24
	h := newInferring(t, 1, 1)
	h.engines["r1"].FailNext(mockengine.FailStall, 1)
	h.seen(h.ask(2), inference.NameToken)
	for range 3 {
		positions := make([]int, tasks)
		var calls sync.WaitGroup
		for i := range tasks {
			calls.Go(func() {
				accepted, err := h.tasks.Create(t.Context(), inferences.NewTask{
					Identity: client, Model: "mock", Workload: port.WorkloadCompletion, Request: inference.Request{Prompt: "count"}, MaxTokens: 2,
				})
				if err != nil {
					t.Error(err)
				}
				positions[i] = accepted.QueuePosition
			})
		}
		calls.Wait()
		slices.Sort(positions)
		if distinct := len(slices.Compact(slices.Clone(positions))); distinct < tasks-1 || positions[tasks-1]-positions[0] < tasks-2 {
			t.Errorf("got the positions %v, want %d different ones", positions, tasks)
		}
		h.clock.Advance(5 * time.Second) // the queue is counted again
	}
}

// TestBurstOfLongerTasksIsPredicted predicts the starts of a burst of tasks that are fifty
// times as long as the measured ones.
func TestBurstOfLongerTasksIsPredicted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newInferring(t, 1, 1, func(h *inferring) {
			h.engines["r1"] = mockengine.New(mockengine.Config{Clock: h.clock, Slots: 1, TokenEvery: 100 * time.Millisecond})
		})
		for range 8 {
			task := h.ask(2)
			h.steps(10*time.Second, func() bool { return h.stored(task).State == run.Completed })
		}
		h.steps(11*time.Second, func() bool { return h.clock.Now().Sub(epoch) > 11*time.Second }) // the measured tasks are read again
		const tokens, took = 100, 10 * time.Second
		burst := make([]string, 6)
		for i := range burst {
			h.clock.Advance(time.Millisecond)
			burst[i] = h.ask(tokens)
		}
		for i, task := range burst[1:] {
			want := time.Duration(i+1) * took
			r := h.stored(task)
			if got := time.Duration(r.Expectation.StartMS) * time.Millisecond; got < want/2 || got > 2*want {
				t.Errorf("task %d: got a start in %s by %+v, want about %s", i+1, got, r.Prediction, want)
			}
			explained, err := h.explains.ExplainRun(t.Context(), client, task)
			h.ok(err)
			if at := explained.Expected.P50.Sub(h.clock.Now()); (at - time.Duration(r.Expectation.StartMS)*time.Millisecond).Abs() > time.Second {
				t.Errorf("task %d: got the explanation %s, want the same as of the acceptance, %d ms", i+1, at, r.Expectation.StartMS)
			}
		}
		h.steps(2*time.Minute, func() bool { return h.stored(burst[5]).State == run.Completed })
	})
}
