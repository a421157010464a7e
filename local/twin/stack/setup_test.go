package stack_test

import (
	"context"
	"log/slog"
	"os"
	"syscall"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestMain(m *testing.M) {
	stacktest.AtOnce(8)
	stacktest.Main(m, os.Args, os.Environ(), map[string]stacktest.Program{wordEngine: engineServer})
}

// served configures the stack of a test.
type served = stacktest.Config

func configure(given served) (stack.Config, error) {
	return given.Stack(slog.New(slog.DiscardHandler))
}

// target is a running stack with a client.
type target struct {
	*outside.Client
	stack.Addresses
	stack *stack.Stack
}

func client(t *testing.T, at stack.Addresses) *outside.Client {
	t.Helper()
	return &outside.Client{T: t, URL: at.URL}
}

// start starts a stack in this process. It stops at the end of the test.
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
			t.Errorf("stop: got error %v", err)
		}
		show(t, log)
	})
	return &target{client(t, s.Addresses()), s.Addresses(), s}
}

// show prints the log if the test has failed. It fails the test if the log contains a secret.
func show(t *testing.T, log *stacktest.Log) {
	t.Helper()
	if t.Failed() {
		t.Logf("log of the stack:\n%s", log)
	}
	if err := log.Secrets(); err != nil {
		t.Error(err)
	}
}

// child is a stack in another process.
type child struct {
	*target
	process *stacktest.Process
}

// spawn starts a stack in another process.
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

// kill sends a signal and waits for the process.
func (c *child) kill(s syscall.Signal) {
	if _, err := c.process.End(s); err != nil {
		c.T.Error(err)
	}
}

// post starts an export of the sample.
func (g *target) post(options contract.ExportOptions) string {
	g.T.Helper()
	return g.Export("mods", contract.ExportRequest{PI: samples.SampleRoot, Options: &options})
}
