package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// temporalPeer is Temporal's development server on a file, with one worker whose activity
// runs the program.
type temporalPeer struct {
	process, worker *process
	client          client.Client
	address         string
}

const taskQueue = "programs"

// runsProgram is the workflow: one activity, with Temporal's policy of retries.
func runsProgram(ctx workflow.Context, command []string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 5},
	})
	return workflow.ExecuteActivity(ctx, execute, command).Get(ctx, nil)
}

func execute(ctx context.Context, command []string) error {
	activity.RecordHeartbeat(ctx)
	return exec.CommandContext(ctx, command[0], command[1:]...).Run()
}

// quiet drops what the SDK logs.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

var _ log.Logger = quiet{}

func temporalWorker(address string) error {
	c, err := client.Dial(client.Options{HostPort: address, Logger: quiet{}})
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflow(runsProgram)
	w.RegisterActivity(execute)
	return w.Run(worker.InterruptCh())
}

func (*temporalPeer) name() string       { return "Temporal" }
func (t *temporalPeer) server() *process { return t.process }

func (t *temporalPeer) stop() {
	t.client.Close()
	t.worker.stop()
	t.process.stop()
}

func (t *temporalPeer) start(ctx context.Context, folder string) error {
	path, err := program("temporal")
	if err != nil {
		return err
	}
	if t.address == "" {
		port, err := freePort()
		if err != nil {
			return err
		}
		t.address = fmt.Sprintf("127.0.0.1:%d", port)
	}
	_, port, err := splitPort(t.address)
	if err != nil {
		return err
	}
	t.process, err = launch(folder, nil, path, "server", "start-dev", "--headless", "--log-level", "error",
		"--ip", "127.0.0.1", "--port", strconv.Itoa(port), "--db-filename", filepath.Join(folder, "temporal.db"))
	if err != nil {
		return err
	}
	if t.client == nil {
		err := until(ctx, "temporal accepts workflows", time.Minute, func() bool {
			t.client, err = client.Dial(client.Options{HostPort: t.address, Logger: quiet{}})
			return err == nil
		})
		if err != nil {
			return err
		}
		self, err := os.Executable()
		if err != nil {
			return err
		}
		t.worker, err = launch(folder, nil, self, "temporal-worker", t.address)
		return err
	}
	return until(ctx, "temporal accepts requests again", time.Minute, func() bool {
		_, err := t.client.CheckHealth(ctx, &client.CheckHealthRequest{})
		return err == nil
	})
}

func (t *temporalPeer) submit(ctx context.Context, w work, id string) (string, error) {
	path, args := w.command(id)
	run, err := t.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue}, runsProgram, append([]string{path}, args...))
	if err != nil {
		return "", err
	}
	return run.GetID(), nil
}

func (t *temporalPeer) wait(ctx context.Context, run string) error {
	return t.client.GetWorkflow(ctx, run, "").Get(ctx, nil)
}
