package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// controlPlane responds like Sortie and prints the worker's reports.
func controlPlane(answers map[string]string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		if name != "heartbeat" {
			fmt.Println(r.Method, name)
		}
		if answer, ok := answers[name]; ok {
			fmt.Fprint(w, answer)
			return
		}
		fmt.Fprint(w, `{"acknowledged": true, "finalState": "SUCCEEDED"}`)
	}))
}

// assignment returns the assignment that worker.ReadAssignment reads from the environment of a
// machine.
func assignment(plane string) worker.Assignment {
	return worker.Assignment{TaskID: "task-1", Envelope: &contract.TaskEnvelope{
		TaskID: "task-1", Attempt: 1, CallbackBaseURL: plane, TaskToken: "a-token",
		HeartbeatIntervalMS: 10, HeartbeatTimeoutMS: 5000, CancelGracePeriodMS: 5000,
		Output: &contract.Upload{URL: plane + "/bucket/output", Key: "exports/task-1/attempt-1/output"},
	}}
}

// A worker is a function. Main, which calls Run with the environment's
// assignment, is all that a program needs.
func ExampleRun() {
	plane := controlPlane(nil)
	defer plane.Close()
	err := worker.Run(context.Background(), assignment(plane.URL), worker.Options{},
		func(ctx context.Context, t *worker.Task) (worker.Result, error) {
			t.Progress(50, "half of the work is done")
			text := strings.NewReader("<records/>")
			return worker.Result{}, t.UploadOutput(ctx, text, text.Size(), "application/xml")
		})
	fmt.Println("error:", err)
	// Output:
	// POST started
	// PUT output
	// POST completed
	// error: <nil>
}

// The context ends when the task is cancelled; its cause says why.
func ExampleRun_cancel() {
	plane := controlPlane(map[string]string{
		"heartbeat": `{"acknowledged": true, "shouldCancel": true, "cancelReason": "user_requested"}`,
		"completed": `{"acknowledged": true, "finalState": "CANCELLED"}`,
	})
	defer plane.Close()
	err := worker.Run(context.Background(), assignment(plane.URL), worker.Options{},
		func(ctx context.Context, t *worker.Task) (worker.Result, error) {
			t.Phase("reading")
			<-ctx.Done()
			return worker.Result{PartialProgress: map[string]int{"records": 7}}, context.Cause(ctx)
		})
	fmt.Println("cancelled:", errors.Is(err, worker.ErrCancelled))
	// Output:
	// POST started
	// POST completed
	// cancelled: true
}

// Fail sets the category of a failure and whether another attempt may succeed.
func ExampleFail() {
	plane := controlPlane(map[string]string{"completed": `{"acknowledged": true, "finalState": "FAILED"}`})
	defer plane.Close()
	err := worker.Run(context.Background(), assignment(plane.URL), worker.Options{},
		func(context.Context, *worker.Task) (worker.Result, error) {
			return worker.Result{}, worker.Fail(contract.CategoryDataQuality, false, errors.New("record 7 has no title"))
		})
	fmt.Println("error:", err)
	// Output:
	// POST started
	// POST completed
	// error: record 7 has no title
}

// Start, Complete and Close are the parts of Run, for a program with its own
// main loop.
func ExampleStart() {
	plane := controlPlane(nil)
	defer plane.Close()
	ctx := context.Background()
	task, err := worker.Start(ctx, assignment(plane.URL), worker.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer task.Close()
	task.Progress(100, "done")
	state, err := task.Complete(ctx, worker.Result{Metrics: map[string]int{"records": 72}}, nil)
	fmt.Println(state, err)
	// Output:
	// POST started
	// POST completed
	// SUCCEEDED <nil>
}

// ReadAssignment names every problem of the environment at once and never
// prints a value, because the values are secrets.
func ExampleReadAssignment() {
	_, err := worker.ReadAssignment([]string{"PATH=/bin"})
	fmt.Println(errors.Is(err, worker.ErrNoTask))
	_, err = worker.ReadAssignment([]string{`TASK_ENVELOPE={"taskId": "t", "attempt": 1, "taskToken": "secret"}`})
	fmt.Println(strings.Contains(err.Error(), "callbackBaseUrl"), strings.Contains(err.Error(), "secret"))
	// Output:
	// true
	// true false
}
