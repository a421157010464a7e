package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/local/proof/acceptance"
	"github.com/sortie-dev/sortie/local/proof/localstack/deployment"
	"github.com/sortie-dev/sortie/local/proof/localstack/step"
)

// acceptanceTests is the package with the tests of a deployment.
const acceptanceTests = "./local/proof/acceptance"

// adapterTests returns the packages whose tests need LocalStack, and the packages whose tests
// need only DynamoDB Local. These are adapters, and fakes that behave like the services.
func adapterTests(p place) (alone, table []string, err error) {
	for _, parent := range []string{"./shared/adapter/", "./local/proof/port/"} {
		files, err := filepath.Glob(filepath.Join(p.repository, filepath.FromSlash(parent), "*", "*localstack_test.go"))
		if err != nil {
			return nil, nil, fmt.Errorf("cannot list the adapters: %w", err)
		}
		for _, file := range files {
			name := filepath.Base(filepath.Dir(file))
			list := &alone
			if name == "dynamo" || name == "awsfake" {
				list = &table
			}
			if path := parent + name; !slices.Contains(*list, path) {
				*list = append(*list, path)
			}
		}
	}
	if len(alone) == 0 || len(table) == 0 {
		return nil, nil, errors.New("found no adapter tests for LocalStack, or none for DynamoDB Local")
	}
	return alone, table, nil
}

func (a *app) test() *cobra.Command {
	every, named := 1, ""
	c := a.acceptance(&cobra.Command{
		Use:   "test",
		Short: "Start, deploy, run the suite, deploy again during runs, destroy and stop",
		Long: `Start LocalStack, deploy to it, run the suite that every Sortie passes, deploy
another release during runs, remove the deployment, and stop.
A running LocalStack is used.`,
	}, func() string { return deployedTests(named) }, func() []string { return []string{"SORTIE_SUITE_EVERY=" + strconv.Itoa(every)} })
	c.Flags().IntVar(&every, "every", 1, "run only every n-th test of the suite")
	c.Flags().StringVar(&named, "named", "", "run only the tests of the suite whose names match this regular expression")
	return c
}

// deployedTests returns the pattern of go test for all tests of a deployment, or for those tests
// of the suite whose names match named.
func deployedTests(named string) string {
	const all = "^TestDeployed$"
	if named == "" {
		return all
	}
	return all + "/^the_suite$/(parallel|" + named + ")/(" + named + ")"
}

func (a *app) chaos() *cobra.Command {
	return a.acceptance(&cobra.Command{
		Use:   "chaos",
		Short: "Start, deploy, kill functions during 100 runs, break functions, destroy and stop",
		Long: `Start LocalStack, deploy to it, kill processes of functions at random moments during
a hundred runs, of which none may be lost, break functions permanently, remove the
deployment, and stop.`,
	}, func() string { return "^TestFaults$" }, func() []string { return nil })
}

// acceptance returns a command that deploys to LocalStack and runs the tests of the deployment
// that match a pattern, with additional variables.
func (a *app) acceptance(c *cobra.Command, tests func() string, more func() []string) *cobra.Command {
	return a.passing(c, func(ctx context.Context, p place, output *lines, keep bool) error {
		d, err := a.deployment(ctx, p)
		if err != nil {
			return err
		}
		if err := a.prepare(ctx, p, d); err != nil {
			return err
		}
		outputs, err := d.Deploy(ctx)
		if err != nil {
			return err
		}
		if err := d.Fill(ctx); err != nil {
			return err
		}
		err = a.goTest(ctx, p, output, append(variables(p, outputs), more()...), acceptanceTests, "-run", tests())
		if err != nil || keep {
			return err
		}
		return d.Destroy(ctx)
	})
}

func (a *app) adapters() *cobra.Command {
	return a.passing(&cobra.Command{
		Use:   "adapters",
		Short: "Start, run the tests of the adapters of AWS, and stop",
		Long: `Start LocalStack, run the port suites of the adapters of Step Functions, KMS,
EventBridge and Secrets Manager there, and that of DynamoDB with its own DynamoDB
Local, and stop. A running LocalStack is used.`,
	}, func(ctx context.Context, p place, output *lines, _ bool) error {
		if err := a.serve(ctx, p); err != nil {
			return err
		}
		alone, table, err := adapterTests(p)
		if err != nil {
			return err
		}
		both, going := errgroup.WithContext(ctx)
		both.Go(func() error { return a.goTest(going, p, output, variables(p, nil), alone...) })
		both.Go(func() error { return a.testTable(going, p, output, table) })
		return both.Wait()
	})
}

// passing returns a command that runs try with LocalStack and then removes everything, unless
// --keep is set.
func (a *app) passing(c *cobra.Command, try func(ctx context.Context, p place, output *lines, keep bool) error) *cobra.Command {
	keep := false
	c.Args = cobra.NoArgs
	c.Flags().BoolVar(&keep, "keep", false, "do not stop LocalStack afterwards")
	c.RunE = does(func(ctx context.Context) error {
		p, err := a.equipped(ctx)
		if err != nil {
			return err
		}
		started := a.Clock.Now()
		err = try(ctx, p, &lines{to: a.Stdout}, keep)
		if err != nil && ctx.Err() == nil {
			a.say("the end of LocalStack's log:\n%s", p.server.Tail(ctx))
		}
		if !keep {
			// Clean up even if the context has ended.
			err = errors.Join(err, p.server.Stop(context.WithoutCancel(ctx)))
		}
		a.say("total: %.1f s", a.Clock.Now().Sub(started).Seconds())
		return err
	})
	return c
}

// prepare builds the deployment and starts a LocalStack for it.
func (a *app) prepare(ctx context.Context, p place, d deployment.Deployment) error {
	maps.Copy(d.Settings, acceptance.Settings())
	if !p.server.Running(ctx) {
		// Files of an earlier server must not be mixed with the prepared ones.
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

// goTest runs tests with the build tag localstack.
func (a *app) goTest(ctx context.Context, p place, output io.Writer, env []string, packages ...string) error {
	started := a.Clock.Now()
	what := strings.Join(packages, " ")
	err := step.Run(ctx, "run the tests of "+what, step.Program{
		Path: p.cache.Tools.Go, Args: append([]string{"test", "-tags", "localstack", "-count", "1", "-timeout", "30m"}, packages...),
		Dir: p.repository, Env: step.Environ(a.Environ, append(env, "SORTIE_LOCALSTACK_PROGRAM="+a.Executable)...), Output: output,
	})
	a.say("tested %s in %.1f s", what, a.Clock.Now().Sub(started).Seconds())
	return err
}

// lines is a writer that several programs can use concurrently.
type lines struct {
	mu sync.Mutex
	to io.Writer
}

// Write writes p in one call.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(p)
}
