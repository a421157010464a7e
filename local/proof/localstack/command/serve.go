package command

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/sortie-dev/sortie/local/proof/localstack/components"
	"github.com/sortie-dev/sortie/local/proof/localstack/server"
)

func (a *app) start() *cobra.Command {
	return &cobra.Command{
		Use:   "start",
		Short: "Install LocalStack if it is missing, and start it",
		Long: `Install LocalStack where it is missing, start it in the background, and wait until
it is ready. One that runs already stays.

It keeps nothing: what is deployed is gone with "stop".`,
		Args: cobra.NoArgs,
		RunE: does(func(ctx context.Context) error {
			p, err := a.equipped(ctx)
			if err != nil {
				return err
			}
			// The CDK's command line is needed later. It is installed in the meantime.
			both, ctx := errgroup.WithContext(ctx)
			both.Go(func() error { return a.serve(ctx, p) })
			both.Go(func() error {
				_, err := p.cache.CDK(ctx, p.packages())
				return err
			})
			return both.Wait()
		}),
	}
}

// serve installs what the server needs and starts it.
func (a *app) serve(ctx context.Context, p place) error {
	way, err := a.way(ctx, p)
	if err != nil {
		return err
	}
	return p.server.Start(ctx, way)
}

// way installs what the server needs and returns the way to run it.
func (a *app) way(ctx context.Context, p place) (server.Way, error) {
	plugin, err := p.cache.Plugin(ctx)
	if err != nil {
		return nil, err
	}
	if p.docker {
		return server.Docker{Docker: p.cache.Tools.Docker, Plugin: plugin}, nil
	}
	home, err := p.cache.Home()
	if err != nil {
		return nil, err
	}
	way := server.Python{Java: p.cache.Tools.Java, Plugin: plugin, Home: home, Path: a.lookup("PATH", "/usr/bin:/bin")}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		way.Python, err = p.cache.Python(ctx)
		return err
	})
	both.Go(func() (err error) {
		way.DynamoDB, err = p.cache.DynamoDB(ctx)
		return err
	})
	if err := both.Wait(); err != nil {
		return nil, err
	}
	return way, nil
}

func (a *app) stop() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "Stop LocalStack and remove everything except downloads",
		Args:  cobra.NoArgs,
		RunE: does(func(ctx context.Context) error {
			p, err := a.place()
			if err != nil {
				return err
			}
			if _, err := os.Stat(p.server.Dir); os.IsNotExist(err) {
				a.say("no LocalStack runs on port %d", p.server.Port)
				return nil
			}
			started := a.Clock.Now()
			if err := p.server.Stop(ctx); err != nil {
				return err
			}
			a.say("LocalStack stopped in %.1f s", a.Clock.Now().Sub(started).Seconds())
			return nil
		}),
	}
}

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Print whether LocalStack runs; exit code 1 if it does not",
		Args:  cobra.NoArgs,
		RunE: does(func(ctx context.Context) error {
			p, err := a.place()
			if err != nil {
				return err
			}
			if !p.server.Running(ctx) {
				return fmt.Errorf("no LocalStack of this cache runs on port %d: start it with \"make localstack\"", p.server.Port)
			}
			_, err = fmt.Fprintf(a.Stdout, "LocalStack %s runs on %s; its log is %s\n", components.Version, p.server.URL(), p.server.Log())
			return err
		}),
	}
}
