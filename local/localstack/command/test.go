package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/local/localstack/deployment"
	"github.com/sortie-dev/sortie/local/localstack/step"
	"github.com/sortie-dev/sortie/local/localstack/trial"
)

// trials are the tests of what is deployed.
const trials = "./local/localstack/trial"

// adapters are the packages of adapters that have a test with LocalStack alone,
// and those of which DynamoDB Local is enough.
func adapters(p place) (alone, table []string, err error) {
	files, err := filepath.Glob(filepath.Join(p.repository, "shared", "adapter", "*", "*localstack_test.go"))
	if err != nil {
		return nil, nil, fmt.Errorf("cannot list the adapters: %w", err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		list := &alone
		if name == "dynamo" {
			list = &table
		}
		if path := "./shared/adapter/" + name; !slices.Contains(*list, path) {
			*list = append(*list, path)
		}
	}
	if len(alone) == 0 || len(table) == 0 {
		return nil, nil, errors.New("no adapter has a test with LocalStack, or that of DynamoDB has none")
	}
	return alone, table, nil
}

func (a *app) test() *cobra.Command {
	return a.trial(&cobra.Command{
		Use:   "test",
		Short: "Start, deploy, run the tests with the tag localstack, destroy and stop",
		Long: `Start LocalStack, deploy to it, run the tests of the adapters, play the suite that
every Sortie passes, deploy another release while runs are in flight, remove what
was deployed, and stop. What takes time and needs nothing of the other goes on at
once. A LocalStack that runs already is used.`,
	}, "TestDeployed", true)
}

func (a *app) chaos() *cobra.Command {
	return a.trial(&cobra.Command{
		Use:   "chaos",
		Short: "Start, deploy, kill processes of functions during 100 runs, break functions, destroy and stop",
		Long: `Start LocalStack, deploy to it, kill processes of functions at random moments during
a hundred runs, of which none may be lost, break functions for good, remove what was
deployed, and stop.`,
	}, "TestStruck", false)
}

// trial makes a command that has a deployment pass a test of package trial, and
// the adapters theirs where that is wanted.
func (a *app) trial(c *cobra.Command, name string, adapters bool) *cobra.Command {
	keep := false
	c.Args = cobra.NoArgs
	c.Flags().BoolVar(&keep, "keep", false, "leave LocalStack and what is deployed there, to look at it")
	c.RunE = does(func(ctx context.Context) error {
		p, err := a.equipped(ctx)
		if err != nil {
			return err
		}
		begun := a.Clock.Now()
		err = a.try(ctx, p, name, adapters, keep)
		if err != nil && ctx.Err() == nil {
			a.say("the end of LocalStack's log:\n%s", p.server.Tail(ctx))
		}
		if !keep {
			// Whatever has ended the context: nothing is left.
			err = errors.Join(err, p.server.Stop(context.WithoutCancel(ctx)))
		}
		a.say("all of it took %.1f s", a.Clock.Now().Sub(begun).Seconds())
		return err
	})
	return c
}

func (a *app) try(ctx context.Context, p place, name string, ports, keep bool) error {
	d, err := a.deployment(ctx, p)
	if err != nil {
		return err
	}
	if err := a.prepare(ctx, p, d); err != nil {
		return err
	}
	output := &lines{to: a.Stdout}
	var alone, table []string
	if ports {
		if alone, table, err = adapters(p); err != nil {
			return err
		}
	}
	// The tests of Step Functions measure limits in real seconds: they go beside
	// the deployment, which leaves them room, and not beside the trial.
	var outputs deployment.Outputs
	first, going := errgroup.WithContext(ctx)
	if ports {
		first.Go(func() error { return a.goTest(going, p, output, variables(p, nil), alone...) })
	}
	first.Go(func() (err error) {
		if outputs, err = d.Deploy(going); err != nil {
			return err
		}
		return d.Fill(going)
	})
	if err := first.Wait(); err != nil {
		return err
	}
	second, trying := errgroup.WithContext(ctx)
	if ports {
		second.Go(func() error { return a.testTable(trying, p, output, table) })
	}
	second.Go(func() error { return a.goTest(trying, p, output, variables(p, outputs), trials, "-run", "^"+name+"$") })
	if err := second.Wait(); err != nil || keep {
		return err
	}
	return d.Destroy(ctx)
}

// prepare builds what is deployed, and has a LocalStack run that is ready for it.
func (a *app) prepare(ctx context.Context, p place, d deployment.Deployment) error {
	maps.Copy(d.Settings, trial.Settings())
	if !p.server.Running(ctx) {
		// What is left of another would be in the way of what is prepared now.
		if err := p.server.Stop(ctx); err != nil {
			return err
		}
	}
	preparation, preparing := errgroup.WithContext(ctx)
	preparation.Go(func() error { return d.Prepare(preparing) })
	preparation.Go(func() error {
		if err := a.serve(preparing, p); err != nil {
			return err
		}
		return d.Bootstrap(preparing)
	})
	return preparation.Wait()
}

// goTest runs tests with the tag localstack.
func (a *app) goTest(ctx context.Context, p place, output io.Writer, env []string, packages ...string) error {
	begun := a.Clock.Now()
	what := strings.Join(packages, " ")
	err := step.Run(ctx, "pass the tests of "+what, step.Program{
		Path: p.cache.Tools.Go, Args: append([]string{"test", "-tags", "localstack", "-count", "1", "-timeout", "15m"}, packages...),
		Dir: p.repository, Env: step.Environ(a.Environ, append(env, "SORTIE_LOCALSTACK_PROGRAM="+a.Executable)...), Output: output,
	})
	a.say("tested %s in %.1f s", what, a.Clock.Now().Sub(begun).Seconds())
	return err
}

// lines lets several programs write to one place.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

// Write passes a piece on, whole.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}
