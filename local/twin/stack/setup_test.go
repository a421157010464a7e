package stack_test

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/local/twin/stacktest"
	"github.com/sortie-dev/sortie/shared/contract"
)

func TestMain(m *testing.M) { stacktest.Main(m, os.Args, os.Environ(), nil) }

// served is the configuration of a test's stack.
type served = stacktest.Config

func configure(given served) (stack.Config, error) {
	return given.Stack(slog.New(slog.DiscardHandler))
}

// target is a running stack as a client sees it.
type target struct {
	*outside.Client
	stack.Addresses
	stack *stack.Stack
}

func client(t *testing.T, at stack.Addresses) *outside.Client {
	t.Helper()
	return &outside.Client{T: t, URL: at.URL}
}

// start starts a stack in this process; the test's end stops it.
func start(t *testing.T, given served) *target {
	t.Helper()
	if given.Data == "" {
		given.Data = t.TempDir()
	}
	log := &stacktest.Log{}
	config, err := given.Stack(slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("the stack does not stop: %v", err)
		}
		show(t, log)
	})
	return &target{client(t, s.Addresses()), s.Addresses(), s}
}

// show prints a log where the test has failed, and fails it where the log
// holds what it must not.
func show(t *testing.T, log *stacktest.Log) {
	t.Helper()
	if t.Failed() {
		t.Logf("the stack's log:\n%s", log)
	}
	if err := log.Secrets(); err != nil {
		t.Error(err)
	}
}

// child is a stack in a process of its own.
type child struct {
	*target
	process *stacktest.Process
}

// spawn starts a stack in a process of its own.
func spawn(t *testing.T, given served) *child {
	t.Helper()
	log := &stacktest.Log{}
	process, err := stacktest.Launch(given, log)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{target: &target{}, process: process}
	t.Cleanup(func() {
		c.kill(syscall.SIGTERM)
		show(t, log)
	})
	select {
	case <-process.Ready():
		c.Addresses = process.Addresses()
		c.Client = client(t, c.Addresses)
	case <-process.Ended():
		t.Fatalf("the stack does not start:\n%s", log)
	}
	return c
}

// kill sends a signal and waits for the process's end.
func (c *child) kill(s syscall.Signal) {
	if _, err := c.process.End(s); err != nil {
		c.T.Error(err)
	}
}

// post accepts an export of the sample.
func (g *target) post(options contract.ExportOptions) string {
	g.T.Helper()
	return g.Export("mods", contract.ExportRequest{PI: samples.SampleRoot, Options: &options})
}
