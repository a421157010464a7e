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
	keep := false
	c := &cobra.Command{
		Use:   "test",
		Short: "Start, deploy, run the tests with the tag localstack, destroy and stop",
		Long: `Start LocalStack, deploy to it, run the tests that carry the tag localstack, remove
what was deployed, and stop. What takes time and needs nothing of the other goes
on at once. A LocalStack that runs already is used.`,
		Args: cobra.NoArgs,
	}
	c.Flags().BoolVar(&keep, "keep", false, "leave LocalStack and what is deployed there, to look at it")
	c.RunE = does(func(ctx context.Context) error {
		p, err := a.equipped(ctx)
		if err != nil {
			return err
		}
		begun := a.Clock.Now()
		err = a.testAll(ctx, p, keep)
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

func (a *app) testAll(ctx context.Context, p place, keep bool) error {
	d, err := a.deployment(ctx, p)
	if err != nil {
		return err
	}
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
	if err := preparation.Wait(); err != nil {
		return err
	}
	output := &lines{to: a.Stdout}
	alone, table, err := adapters(p)
	if err != nil {
		return err
	}
	// The tests of Step Functions measure limits in real seconds: they go beside
	// the deployment, which leaves them room, and not beside the trial.
	var outputs deployment.Outputs
	first, going := errgroup.WithContext(ctx)
	first.Go(func() error { return a.goTest(going, p, output, variables(p, nil), alone...) })
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
	second.Go(func() error { return a.testTable(trying, p, output, table) })
	second.Go(func() error { return a.goTest(trying, p, output, variables(p, outputs), trials) })
	if err := second.Wait(); err != nil {
		return err
	}
	if keep {
		return nil
	}
	return d.Destroy(ctx)
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
