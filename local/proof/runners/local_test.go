//go:build unix

package runners_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/sortie-dev/sortie/local/proof/runners"
	"github.com/sortie-dev/sortie/local/proof/runners/program"
	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/local/twin/stack"
)

// wordProgram is the argument with which this test binary runs the program of the jobs.
const wordProgram = "program"

func TestMain(m *testing.M) {
	stacktest.AtOnce(8)
	stacktest.Main(m, os.Args, os.Environ(), map[string]stacktest.Program{wordProgram: program.Main})
}

// TestProcessesAndFly runs the job files on the two runners that use the machines of the local
// Machines API.
func TestProcessesAndFly(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, runner := range []string{"process", "fly"} {
		t.Run(runner, func(t *testing.T) {
			t.Parallel()
			broken := filepath.Join(t.TempDir(), "broken")
			if err := os.WriteFile(broken, []byte(runners.BrokenProgram), 0o700); err != nil {
				t.Fatal(err)
			}
			runners.Run(t, runners.Platform{
				Runner: runner,
				Change: func(c *stack.Config) {
					c.Images = map[string][]string{runners.Image: {self, wordProgram}, runners.Plain: {self, wordProgram}, runners.Broken: {broken}}
				},
				Left: machinesLeft,
				Differs: map[string]runners.Difference{
					"out-of-memory": {Reason: "a process of the host has no memory limit of its own"},
				},
			})
		})
	}
}

// machinesLeft returns the task's machines that are not destroyed, and the host's processes
// with the task in their environment.
func machinesLeft(ctx context.Context, at stack.Addresses, task string) (left []string, err error) {
	machines, _, err := outside.LocalStack(at)
	if err != nil {
		return nil, err
	}
	all, err := machines.Of(ctx, task)
	for _, m := range all {
		if m.State != "destroyed" {
			left = append(left, m.Name+" is "+m.State)
		}
	}
	environments, globbed := filepath.Glob("/proc/[0-9]*/environ")
	for _, name := range environments {
		if env, err := os.ReadFile(name); err == nil && bytes.Contains(env, []byte("SORTIE_TASK_ID="+task+"\x00")) {
			left = append(left, "process of "+name)
		}
	}
	return left, errors.Join(err, globbed)
}
